import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { TestClock } from '../../../tests/harness/test-clock.ts';
import type { EventRows } from '../../engines/store/rows/events.ts';
import type { HandoffRow } from '../../engines/store/rows/handoffs.ts';
import type { AtomicTables } from '../../engines/store/store.ts';
import { addMs } from '../../kit/clock.ts';
import type { ApplicationId, HandoffId, SessionId } from '../../kit/ids.ts';
import { silentLog } from '../../kit/log.ts';
import { pollUntil } from '../../kit/wait.ts';
import type { Cover } from '../sessions/live.ts';
import { type AgentInputMode, COMMAND_WAIT_MAX_MS, WAITING_COMMANDS_MAX } from './agent-queue.ts';
import { Lease } from './lease.ts';
import { BY_SERVICE, type LeasedSession } from './lease-parts.ts';
import { VIEWER_GONE_TIMEOUT_MS } from './lease-state.ts';
import { LEASE_DURATION_MS } from './taken-control.ts';

const id = '0192f7c2-6a64-7a0e-9a53-0f1c3a2f7d10' as SessionId;
const applicationId = '0192f7c2-6a64-7a0e-9a53-0f1c3a2f7d20' as ApplicationId;
const handoffId = '0192f7c2-6a64-7a0e-9a53-0f1c3a2f7d30' as HandoffId;
const [ANNA, BEN] = ['00000000-0000-4000-8000-00000000000a', '00000000-0000-4000-8000-00000000000b'];

/**
 * The SQL statements are tested in tests/engines/store-controls.test.ts. This file tests how Lease uses their results.
 */
async function setup(
  agentInput: AgentInputMode = 'queue',
  storedRow?: HandoffRow,
  browser: Partial<LeasedSession['browser']> = {},
) {
  const clock = new TestClock();
  const events: string[] = [];
  const covers: Array<Cover | undefined> = [];
  const rows = new Map<HandoffId, HandoffRow>(storedRow ? [[storedRow.id, storedRow]] : []);
  let fence = storedRow?.fence ?? 0;
  const findOpen = async () => [...rows.values()].find(({ status }) => status === 'requested' || status === 'claimed');
  const trx = {
    controls: {
      lockFence: async () => ({ fence, runs: true }),
      setFence: async (_session: SessionId, next: number) => {
        fence = next;
      },
    },
    handoffs: {
      findOpen,
      get: async (_application: ApplicationId, one: HandoffId) => rows.get(one),
      insert: async (row: HandoffRow) => void rows.set(row.id, row),
      change: async (one: HandoffId, change: object) => {
        const changedRow = { ...rows.get(one), ...change };
        const row = Object.fromEntries(Object.entries(changedRow).filter(([, value]) => value !== null)) as never;
        rows.set(one, row);
        return row;
      },
    },
    audit: { insert: async () => {} },
  } as unknown as AtomicTables;
  const append: EventRows['append'] = async (_session, { type }) => void events.push(type);
  const lease = new Lease(
    {
      store: { atomically: work => work(trx) },
      events: { append },
      audit: { record: async () => {} },
      ...{ clock, log: silentLog },
    },
    {
      ...{ id, applicationId, hold: () => ({ close: () => {} }), setCover: cover => void covers.push(cover) },
      browser: {
        restrictNavigations: async () => ({ close: () => {} }),
        discardConsole: async () => {},
        ...browser,
      },
    },
    agentInput,
  );
  await lease.adopt(storedRow);
  return { clock, lease, events, covers, row: (one: HandoffId) => rows.get(one) };
}

function requestedRow(now: Date): HandoffRow {
  return {
    ...{ id: handoffId, applicationId, sessionId: id, origin: 'api', status: 'requested', instructions: 'x' },
    ...{ reason: 'other', claimableBy: 'members', record: 'mask', leaseSeconds: 120, fence: 0 },
    ...{ requesterKind: 'account', createdAt: now, expiresAt: addMs(now, 600_000), claimTries: 0 },
  };
}

const CLAIMER = { kind: 'account', id: 'a', source: BY_SERVICE } as const;
const ACTOR = { kind: 'viewer' } as const;

const requireWait = (verdict: ReturnType<Lease['judgeInput']>): Promise<unknown> => {
  assert.ok(typeof verdict === 'object' && 'wait' in verdict);
  return verdict.wait;
};

describe('control by a viewer', () => {
  test('agent input passes while no viewer has control', async () => {
    assert.equal((await setup()).lease.judgeInput('Input.insertText'), 'pass');
  });

  test('is refused to a second viewer, and is granted to the first viewer again, with a higher fence', async () => {
    const { lease, events } = await setup();
    const first = await lease.take(ANNA);
    assert.equal(await lease.take(BEN), undefined);
    const second = await lease.take(ANNA);
    assert.ok(first && second && second.fence > first.fence);
    assert.equal(lease.isFresh(first.fence), false);
    assert.equal(lease.isFresh(second.fence), true);
    assert.deepEqual(events, ['control.taken', 'control.refused']);
    await lease.close(false);
  });

  test('queues agent input, and passes the input in order when control is given back', async () => {
    const { lease, events } = await setup();
    const control = await lease.take(ANNA);
    const passedInputs: string[] = [];
    for (const name of ['one', 'two', 'three'])
      void requireWait(lease.judgeInput('Input.dispatchKeyEvent')).then(verdict =>
        passedInputs.push(`${name} ${verdict}`),
      );
    await lease.giveBack(control?.fence ?? 0);
    await pollUntil(30_000, 'the waiting input to pass', () => (passedInputs.length === 3 ? true : undefined));
    assert.deepEqual(passedInputs, ['one pass', 'two pass', 'three pass']);
    assert.equal(lease.judgeInput('Input.dispatchKeyEvent'), 'pass');
    assert.deepEqual(events, ['control.taken', 'control.given_back']);
    await lease.close(false);
  });

  test('is not restored by a renewal that runs while control is given back', async () => {
    const { lease } = await setup();
    const control = await lease.take(ANNA);
    assert.ok(control);
    const renewal = lease.renewTakenControl(control);
    await lease.giveBack(control.fence);
    assert.equal(await renewal, false);
    assert.equal(lease.control, undefined);
    await lease.close(false);
  });

  test('refuses input that was queued for too long, and names the command in the error', async () => {
    const { lease, clock } = await setup();
    let control = await lease.take(ANNA);
    const pendingVerdict = requireWait(lease.judgeInput('Input.insertText'));
    for (let elapsedMs = 0; elapsedMs < COMMAND_WAIT_MAX_MS; elapsedMs += LEASE_DURATION_MS / 2) {
      if (control) await lease.renewTakenControl(control);
      clock.advance(LEASE_DURATION_MS / 2);
      control = lease.control;
    }
    const verdict = await pendingVerdict;
    assert.match(JSON.stringify(verdict), /Input\.insertText is refused: a person controls this session/);
    await lease.close(false);
  });

  test('refuses input when the queue is full', async () => {
    const { lease } = await setup();
    await lease.take(ANNA);
    for (let count = 0; count < WAITING_COMMANDS_MAX; count++) void requireWait(lease.judgeInput('Input.insertText'));
    assert.match(JSON.stringify(lease.judgeInput('Input.insertText')), /100 commands are already queued/);
    await lease.close(false);
  });

  test('refuses input immediately if the session is configured to do so', async () => {
    const { lease } = await setup('refuse');
    await lease.take(ANNA);
    assert.match(JSON.stringify(lease.judgeInput('Page.navigate')), /Page\.navigate is refused/);
    await lease.close(false);
  });

  test('expires if its holder does not renew the lease, and agent input passes again', async () => {
    const { lease, clock, events } = await setup();
    const control = await lease.take(ANNA);
    clock.advance(LEASE_DURATION_MS / 2);
    const pendingVerdict = requireWait(lease.judgeInput('Input.insertText'));
    clock.advance(LEASE_DURATION_MS / 2);
    assert.equal(await pendingVerdict, 'pass');
    assert.equal(lease.control, undefined);
    assert.equal(control && (await lease.renewTakenControl(control)), false);
    assert.deepEqual(events, ['control.taken', 'control.expired']);
    await lease.close(false);
  });

  test('is kept across a restart, and can be taken again only by its holder', async () => {
    const now = new TestClock().now();
    const takenFields = {
      origin: 'viewer',
      status: 'claimed',
      claimableBy: 'viewer',
      record: 'keep',
      fence: 7,
    } as const;
    const storedRow: HandoffRow = {
      ...requestedRow(now),
      ...takenFields,
      holder: ANNA,
      leaseExpiresAt: addMs(now, LEASE_DURATION_MS),
    };
    const { lease } = await setup('queue', storedRow);
    assert.equal(lease.control?.fence, 7);
    assert.notEqual(lease.judgeInput('Input.insertText'), 'pass');
    assert.equal(await lease.take(BEN), undefined);
    assert.equal((await lease.take(ANNA))?.fence, 8);
    await lease.close(false);
  });

  test('passes queued input when the lease is closed before the session ends', async () => {
    const { lease } = await setup();
    await lease.take(ANNA);
    const pendingVerdict = requireWait(lease.judgeInput('Input.insertText'));
    await lease.close(false);
    assert.equal(await pendingVerdict, 'pass');
  });
});

describe('a hand-off', () => {
  const setUpHandoff = async () => {
    const all = await setup();
    await all.lease.request(requestedRow(all.clock.now()), BY_SERVICE, ACTOR);
    return all;
  };

  test('can be claimed only once, and blocks the agent and masks the pages until it is completed', async () => {
    const { lease, covers, events } = await setUpHandoff();
    assert.equal(lease.judgeInput('Input.insertText'), 'pass', 'nobody has control yet');
    const claimResults = await Promise.allSettled([lease.claim(handoffId, CLAIMER), lease.claim(handoffId, CLAIMER)]);
    assert.deepEqual(claimResults.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
    const pendingVerdict = requireWait(lease.judgeInput('Input.insertText'));
    assert.equal(covers.at(-1), 'mask');
    const { fence = 0 } = lease.control ?? {};
    await assert.rejects(lease.complete(handoffId, fence - 1, { outcome: 'completed' }, BY_SERVICE), /has ended/);
    await lease.complete(handoffId, fence, { outcome: 'completed' }, BY_SERVICE);
    assert.equal(await pendingVerdict, 'pass');
    assert.equal(covers.at(-1), undefined);
    assert.deepEqual(events, ['handoff.requested', 'handoff.claimed', 'handoff.completed']);
    await lease.close(false);
  });

  test('unmasks the pages and resumes the agent only after the consoles of the pages have been cleared', async () => {
    const consoleDiscard = Promise.withResolvers<void>();
    const { lease, covers, clock } = await setup('queue', undefined, { discardConsole: () => consoleDiscard.promise });
    await lease.request(requestedRow(clock.now()), BY_SERVICE, ACTOR);
    const { row } = await lease.claim(handoffId, CLAIMER);
    const pendingVerdict = requireWait(lease.judgeInput('Runtime.evaluate'));
    const completion = lease.complete(handoffId, row.fence, { outcome: 'completed' }, BY_SERVICE);
    await pollUntil(30_000, 'the end', () => (lease.isFresh(row.fence) ? undefined : true));
    assert.ok(lease.control?.isMasked, 'the agent is still held back');
    assert.equal(covers.at(-1), 'mask');
    consoleDiscard.resolve();
    await completion;
    assert.equal(await pendingVerdict, 'pass');
    assert.equal(lease.control, undefined);
    assert.equal(covers.at(-1), undefined);
    await lease.close(false);
  });

  test('is requested again, with a higher fence, when its lease ends, and expires at its time limit', async () => {
    const { lease, clock, events, row } = await setUpHandoff();
    const { row: claimedRow } = await lease.claim(handoffId, CLAIMER);
    clock.advance(120_000);
    await pollUntil(30_000, 'the lease to end', () => (lease.control ? undefined : true));
    assert.equal(lease.open?.status, 'requested');
    assert.equal(lease.open?.fence, claimedRow.fence + 1);
    clock.advance(480_000);
    await pollUntil(30_000, 'the hand-off to expire', () => (lease.open ? undefined : true));
    assert.equal(row(handoffId)?.status, 'expired');
    await pollUntil(30_000, 'the events', () => (events.length === 4 ? true : undefined));
    assert.deepEqual(events.slice(2), ['handoff.returned', 'handoff.expired']);
    await lease.close(false);
  });

  test('ends control after the live view of its holder has been closed for a minute, even if the lease has not expired', async () => {
    const { lease, clock } = await setUpHandoff();
    const { row } = await lease.claim(handoffId, CLAIMER);
    const view = lease.attachView();
    clock.advance(VIEWER_GONE_TIMEOUT_MS + 1_000);
    assert.ok(lease.control, 'the live view is open');
    const { leaseExpiresAt } = await lease.renew(handoffId, row.fence, BY_SERVICE);
    view.close();
    clock.advance(VIEWER_GONE_TIMEOUT_MS / 2);
    lease.attachView().close();
    clock.advance(VIEWER_GONE_TIMEOUT_MS / 2 - 2_000);
    assert.ok(lease.control, 'the live view was opened again');
    clock.advance(VIEWER_GONE_TIMEOUT_MS / 2 + 3_000);
    await pollUntil(10_000, 'the person to have left', () => (lease.control ? undefined : true));
    assert.ok(leaseExpiresAt && clock.now() < leaseExpiresAt, 'the lease has not expired');
    await lease.close(false);
  });

  test('ends control after a restart if its holder opens no live view for a minute', async () => {
    const now = new TestClock().now();
    const claimFields = { status: 'claimed', holder: ANNA, fence: 1, leaseExpiresAt: addMs(now, 120_000) } as const;
    const { lease, clock } = await setup('queue', { ...requestedRow(now), ...claimFields });
    clock.advance(VIEWER_GONE_TIMEOUT_MS - 1_000);
    assert.ok(lease.control);
    clock.advance(2_000);
    await pollUntil(30_000, 'the person to have left', () => (lease.control ? undefined : true));
    await lease.close(false);
  });

  test('prevents a viewer from taking control, and cannot be requested while a viewer has control', async () => {
    const { lease, clock } = await setUpHandoff();
    assert.equal(await lease.take(ANNA), undefined);
    await lease.cancel(handoffId, BY_SERVICE, ACTOR);
    assert.ok(await lease.take(ANNA));
    await assert.rejects(lease.request(requestedRow(clock.now()), BY_SERVICE, ACTOR), /controls session/);
    await lease.close(false);
  });

  test('ends when its session ends', async () => {
    const { lease, row } = await setUpHandoff();
    await lease.claim(handoffId, CLAIMER);
    await lease.close(true);
    assert.equal(row(handoffId)?.status, 'session_ended');
  });
});
