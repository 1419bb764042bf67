import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { TestClock } from '../../../tests/harness/test-clock.ts';
import type { ControlRow, ControlRows } from '../../engines/store/rows/controls.ts';
import type { EventRows } from '../../engines/store/rows/events.ts';
import type { ApplicationId, SessionId } from '../../kit/ids.ts';
import { silentLog } from '../../kit/log.ts';
import { until } from '../../kit/wait.ts';
import { type AgentInput, LEASE_MS, Takeover, WAITING_COMMANDS_MAX, WAITING_MS } from './takeover.ts';

const id = '0192f7c2-6a64-7a0e-9a53-0f1c3a2f7d10' as SessionId;
const applicationId = '0192f7c2-6a64-7a0e-9a53-0f1c3a2f7d20' as ApplicationId;
const [ANNA, BEN] = ['00000000-0000-4000-8000-00000000000a', '00000000-0000-4000-8000-00000000000b'];

/** The SQL statements are tested in tests/engines/store-controls.test.ts; this tests how Takeover uses their results. */
function setup(agentInput: AgentInput = 'queue', stored?: ControlRow) {
  const clock = new TestClock();
  const events: string[] = [];
  let row: ControlRow = stored ?? { sessionId: id, applicationId, fence: 0, linkEpoch: 0 };
  const rows: ControlRows = {
    of: async () => row,
    take: async (_application, _session, holder, now, expiresAt) => {
      if (row.holder !== undefined && row.holder !== holder && row.expiresAt && row.expiresAt > now) return undefined;
      row = { ...row, holder, expiresAt, fence: row.fence + 1 };
      return row;
    },
    renew: async (_session, holder, fence, _now, expiresAt) => {
      if (row.holder !== holder || row.fence !== fence) return false;
      row = { ...row, expiresAt };
      return true;
    },
    end: async (_session, fence) => {
      if (row.fence !== fence) return false;
      row = { sessionId: id, applicationId, linkEpoch: 0, fence: fence + 1 };
      return true;
    },
    revokeLinks: async () => 1,
  };
  const eventRows: Pick<EventRows, 'append'> = { append: async (_session, { type }) => void events.push(type) };
  const takeover = new Takeover(
    { rows, events: eventRows, clock, log: silentLog },
    { id, applicationId },
    agentInput,
    stored,
  );
  return { clock, takeover, events };
}

const waitOf = (verdict: ReturnType<Takeover['judgeInput']>): Promise<unknown> => {
  assert.ok(typeof verdict === 'object' && 'wait' in verdict);
  return verdict.wait;
};

describe('a takeover', () => {
  test('passes input of the agent while no viewer has control', () => {
    assert.equal(setup().takeover.judgeInput('Input.insertText'), 'pass');
  });

  test('is refused to a second viewer; the first may take it again under a new fence', async () => {
    const { takeover, events } = setup();
    const first = await takeover.take(ANNA);
    assert.equal(await takeover.take(BEN), undefined);
    const again = await takeover.take(ANNA);
    assert.ok(first && again && again.fence > first.fence);
    assert.equal(takeover.isFresh(first.fence), false);
    assert.equal(takeover.isFresh(again.fence), true);
    assert.deepEqual(events, ['control.taken', 'control.refused']);
    takeover.close();
  });

  test('queues input in order and passes it when control is given back', async () => {
    const { takeover, events } = setup();
    const control = await takeover.take(ANNA);
    const passed: string[] = [];
    for (const name of ['one', 'two', 'three'])
      void waitOf(takeover.judgeInput('Input.dispatchKeyEvent')).then(verdict => passed.push(`${name} ${verdict}`));
    await takeover.giveBack(control?.fence ?? 0);
    await until(30_000, 'the waiting input to pass', () => (passed.length === 3 ? true : undefined));
    assert.deepEqual(passed, ['one pass', 'two pass', 'three pass']);
    assert.equal(takeover.judgeInput('Input.dispatchKeyEvent'), 'pass');
    assert.deepEqual(events, ['control.taken', 'control.given_back']);
    takeover.close();
  });

  test('stays given back if it is being renewed at the same time', async () => {
    const { takeover } = setup();
    const control = await takeover.take(ANNA);
    assert.ok(control);
    const renewed = takeover.renew(control);
    await takeover.giveBack(control.fence);
    assert.equal(await renewed, false);
    assert.equal(takeover.control, undefined);
    takeover.close();
  });

  test('refuses input that waited too long, and names the command', async () => {
    const { takeover, clock } = setup();
    let control = await takeover.take(ANNA);
    const waiting = waitOf(takeover.judgeInput('Input.insertText'));
    for (let passedMs = 0; passedMs < WAITING_MS; passedMs += LEASE_MS / 2) {
      if (control) await takeover.renew(control);
      clock.advance(LEASE_MS / 2);
      control = takeover.control;
    }
    const verdict = await waiting;
    assert.match(JSON.stringify(verdict), /Input\.insertText is refused: a person controls this session/);
    takeover.close();
  });

  test('refuses input when the queue is full', async () => {
    const { takeover } = setup();
    await takeover.take(ANNA);
    for (let count = 0; count < WAITING_COMMANDS_MAX; count++) void waitOf(takeover.judgeInput('Input.insertText'));
    assert.match(JSON.stringify(takeover.judgeInput('Input.insertText')), /100 commands are queued/);
    takeover.close();
  });

  test('refuses input at once if the session is configured so', async () => {
    const { takeover } = setup('refuse');
    await takeover.take(ANNA);
    assert.match(JSON.stringify(takeover.judgeInput('Page.navigate')), /Page\.navigate is refused/);
    takeover.close();
  });

  test('expires if its holder does not renew it, and then passes the agent input', async () => {
    const { takeover, clock, events } = setup();
    const control = await takeover.take(ANNA);
    clock.advance(LEASE_MS / 2);
    const waiting = waitOf(takeover.judgeInput('Input.insertText'));
    clock.advance(LEASE_MS / 2);
    assert.equal(await waiting, 'pass');
    assert.equal(takeover.control, undefined);
    assert.equal(control && (await takeover.renew(control)), false);
    assert.deepEqual(events, ['control.taken', 'control.expired']);
    takeover.close();
  });

  test('survives a restart, for its holder only', async () => {
    const clock = new TestClock();
    const expiresAt = new Date(clock.now().getTime() + LEASE_MS);
    const stored = { sessionId: id, applicationId, fence: 7, linkEpoch: 0, holder: ANNA, expiresAt };
    const { takeover } = setup('queue', stored);
    assert.equal(takeover.control?.fence, 7);
    assert.notEqual(takeover.judgeInput('Input.insertText'), 'pass');
    assert.equal(await takeover.take(BEN), undefined);
    assert.equal((await takeover.take(ANNA))?.fence, 8);
    takeover.close();
  });

  test('passes all queued input when the session leaves', async () => {
    const { takeover } = setup();
    await takeover.take(ANNA);
    const waiting = waitOf(takeover.judgeInput('Input.insertText'));
    takeover.close();
    assert.equal(await waiting, 'pass');
  });
});
