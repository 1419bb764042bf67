import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as later } from 'node:timers/promises';
import { TestClock } from '../../../tests/harness/test-clock.ts';
import type { HandoffRow } from '../../engines/store/rows/handoffs.ts';
import type { SessionRow } from '../../engines/store/rows/sessions.ts';
import { addMs } from '../../kit/clock.ts';
import type { ApplicationId, HandoffId, SessionId } from '../../kit/ids.ts';
import { silentLog } from '../../kit/log.ts';
import type { Cover, LiveSession } from '../sessions/live.ts';
import { type Watcher, Watchers } from '../sessions/watchers.ts';
import { LiveView, type LiveViewParts } from './live-view.ts';

const sessionId = '0192f7c2-6a64-7a0e-9a53-0f1c3a2f7d10' as SessionId;
const applicationId = '0192f7c2-6a64-7a0e-9a53-0f1c3a2f7d20' as ApplicationId;
const DELAY_MS = 20;

const adoptedRow = { status: 'RUNNING', settings: {} } as unknown as SessionRow;

const claimedHandoff = (now: Date): HandoffRow => ({
  ...{ id: 'handoff' as HandoffId, applicationId, sessionId, origin: 'api', status: 'claimed', instructions: 'x' },
  ...{ reason: 'other', claimableBy: 'members', record: 'mask', leaseSeconds: 120, fence: 7, holder: 'somebody' },
  ...{ requesterKind: 'account', createdAt: now, expiresAt: addMs(now, 600_000), claimTries: 0 },
  ...{ leaseExpiresAt: addMs(now, 120_000), allowedOrigins: ['https://bank.test'] },
});

/** Returns a live view whose session has this open hand-off. */
const createLiveView = (clock: TestClock, findOpen: () => Promise<HandoffRow>): LiveView =>
  new LiveView({
    ...{ clock, log: silentLog, leases: { clock, log: silentLog }, rows: { ofSession: async () => undefined } },
    handoffs: { findOpen },
  } as unknown as LiveViewParts);

test('masks an adopted session before its pages are recorded, even if the masked hand-off is loaded late', async () => {
  const clock = new TestClock();
  const covers: string[] = [];
  let cover: Cover | undefined;
  const live = {
    ...{ id: sessionId, applicationId, addAttendance: () => {}, hold: () => ({ close: () => {} }) },
    onCover: () => ({ close: () => {} }),
    setCover: (now: Cover | undefined) => {
      cover = now;
    },
    browser: {
      restrictNavigations: async () => {
        covers.push(`guard ${cover}`);
        await later(DELAY_MS);
        return { close: () => {} };
      },
    },
  } as unknown as LiveSession;
  const view = createLiveView(clock, () => later(DELAY_MS, claimedHandoff(clock.now())));
  const recorder: Watcher = {
    name: 'recorder',
    attend: async () => {
      covers.push(`recorder ${cover}`);
      return undefined;
    },
  };
  await new Watchers([recorder, view], silentLog).attend(live, adoptedRow, new AbortController().signal);
  assert.deepEqual(covers, ['guard mask', 'recorder mask']);
  await view.leaseOf(sessionId)?.close(false);
});

test('releases the lease and the hold of an adopted session if attend rejects', async () => {
  const clock = new TestClock();
  let holdCount = 0;
  const live = {
    ...{ id: sessionId, applicationId, setCover: () => {}, onCover: () => ({ close: () => {} }) },
    hold: () => {
      holdCount += 1;
      return {
        close: () => {
          holdCount -= 1;
        },
      };
    },
    browser: { restrictNavigations: () => Promise.reject(new Error('the browser does not respond')) },
  } as unknown as LiveSession;
  const view = createLiveView(clock, async () => claimedHandoff(clock.now()));
  await assert.rejects(view.attend(live, adoptedRow), /does not respond/);
  assert.equal(view.leaseOf(sessionId), undefined);
  assert.equal(holdCount, 0);
});
