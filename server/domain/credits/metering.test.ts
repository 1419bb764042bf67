import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../../../tests/harness/hand-clock.ts';
import { createRandomGenerator } from '../../../tests/harness/random.ts';
import type { MeteredSession, Metering, ReservationRow } from '../../engines/store/rows/credits.ts';
import type { SessionEnd } from '../../engines/store/rows/sessions.ts';
import { addMs } from '../../kit/clock.ts';
import type { AccountId, ApplicationId, HostId, ReservationId } from '../../kit/ids.ts';
import { silentLog } from '../../kit/log.ts';
import { meteringOf, meterSessions } from './metering.ts';
import { CAPTURE_INTERVAL_MS, HOLD_SECONDS, sessionHold } from './terms.ts';

const START = new Date(0);
const HELD_RESERVATION: ReservationRow = {
  ...{ id: 'r' as ReservationId, accountId: 'a' as AccountId, applicationId: 'p' as ApplicationId },
  ...{ hostId: 'h' as HostId, purposeKind: 'session', purposeId: 's', status: 'held', createdAt: START },
  ...{ amount: 3000, captured: 0, rateBrowserSecond: 10, rateEgressMegabyte: 0, seconds: 0, bytes: 0 },
};
const RUNNING_SESSION: MeteredSession = {
  startedAt: START,
  expiresAt: addMs(START, 3_600_000),
  isEnding: false,
  bytes: 0,
};

test('meters a session of any length, and rounds its lifetime up to the next second', () => {
  const random = createRandomGenerator(17);
  const clock = new ManualClock();
  for (let run = 0; run < 2_000; run += 1) {
    const startedAt = addMs(clock.now(), Math.floor(random() * 100_000));
    const lifeMs = Math.floor(random() * 86_400_000);
    const { metered, cost } = meteringOf(HELD_RESERVATION, { ...RUNNING_SESSION, startedAt }, addMs(startedAt, lifeMs));
    assert.ok(
      metered.seconds >= lifeMs / 1000 && metered.seconds < lifeMs / 1000 + 1,
      `${metered.seconds} of ${lifeMs}`,
    );
    assert.equal(cost, metered.seconds * 10);
  }
});

test('extends the hold of a running session to cover the next five minutes', () => {
  const { cost, target, dueAt } = meteringOf(HELD_RESERVATION, RUNNING_SESSION, addMs(START, 60_000));
  assert.deepEqual([cost, target], [600, 600 + HOLD_SECONDS * 10]);
  assert.deepEqual(dueAt, addMs(START, 2 * CAPTURE_INTERVAL_MS));
});

test('a session near its time limit holds credit only for its cost so far and the remaining time', () => {
  const { target } = meteringOf(
    HELD_RESERVATION,
    { ...RUNNING_SESSION, expiresAt: addMs(START, 70_000) },
    addMs(START, 60_000),
  );
  assert.equal(target, 600 + 10 * 10);
});

test('a pending session costs nothing, and an ending session holds credit only for its cost so far', () => {
  const { startedAt: _, ...pending } = RUNNING_SESSION;
  assert.equal(meteringOf(HELD_RESERVATION, pending, addMs(START, 60_000)).cost, 0);
  assert.equal(meteringOf(HELD_RESERVATION, { ...RUNNING_SESSION, isEnding: true }, addMs(START, 60_000)).target, 600);
});

test('a session holds no credit if all rates are 0', () => {
  const period = { at: START, expiresAt: addMs(START, 60_000) };
  assert.equal(sessionHold({ browserSecond: 0, egressMegabyte: 0 }, HELD_RESERVATION.hostId, period), undefined);
  assert.equal(sessionHold({ browserSecond: 0, egressMegabyte: 1 }, HELD_RESERVATION.hostId, period)?.amount, 10);
  assert.equal(sessionHold({ browserSecond: 2, egressMegabyte: 0 }, HELD_RESERVATION.hostId, period)?.amount, 120);
});

/**
 * Sets up one session whose hold the test can prevent from being extended. Records when the session is metered, when
 * its credit is exhausted, and how it ends.
 */
function setUpSession() {
  const clock = new ManualClock();
  const state = {
    canExtend: true,
    isEndUnwritten: false,
    reservation: { ...HELD_RESERVATION, dueAt: addMs(START, CAPTURE_INTERVAL_MS) } as ReservationRow,
  };
  const seen: string[] = [];
  const ends: SessionEnd[] = [];
  const rows = {
    due: async (_: unknown, now: Date) =>
      state.reservation.dueAt && state.reservation.dueAt <= now ? [state.reservation] : [],
    meter: async (_: unknown, plan: (reservation: ReservationRow, session: MeteredSession) => Metering) => {
      const { at, dueAt } = plan(state.reservation, RUNNING_SESSION);
      const { lowAt: _low, ...rest } = state.reservation;
      const lowSince = state.canExtend ? undefined : (state.reservation.lowAt ?? at);
      state.reservation = { ...rest, dueAt, ...(lowSince ? { lowAt: lowSince } : {}) };
      seen.push(`${at.getTime()}`);
      return { isEnding: false, ...(lowSince ? { lowSince } : {}) };
    },
    recordExhaustedCredit: async () => void seen.push('exhausted'),
    recordLowCredit: async () => 0,
  };
  const end = async (_: unknown, how: SessionEnd) => void ends.push(how);
  const parts = {
    rows,
    clock,
    log: silentLog,
    host: HELD_RESERVATION.hostId,
    lowBalanceThreshold: 0,
    end,
    isEndUnwritten: () => state.isEndUnwritten,
  };
  const run = async (ms: number): Promise<void> => {
    for (let at = 0; at < ms; at += 5_000) {
      await clock.advance(5_000);
      await meterSessions(parts);
    }
  };
  return { state, seen, ends, run };
}

test('meters a session each minute, and does not end the session while its hold can be extended', async () => {
  const { seen, ends, run } = setUpSession();
  await run(185_000);
  assert.deepEqual(seen, ['60000', '120000', '180000']);
  assert.deepEqual(ends, []);
});

test('ends a session one minute after an extension of its hold failed, unless credit was added in the meantime', async () => {
  const { state, seen, ends, run } = setUpSession();
  state.canExtend = false;
  await run(115_000);
  assert.deepEqual(ends, []);
  state.canExtend = true;
  await run(60_000);
  assert.deepEqual(ends, []);
  state.canExtend = false;
  await run(70_000);
  assert.deepEqual(seen, ['60000', '120000', '180000', '240000', 'exhausted']);
  assert.deepEqual(ends, [
    { status: 'ERROR', reason: 'credit_exhausted', detail: 'the credit of the account was used up' },
  ]);
});

test('does not meter an ended session whose end has not been written yet', async () => {
  const { state, seen, ends, run } = setUpSession();
  await run(60_000);
  state.isEndUnwritten = true;
  await run(7_200_000);
  assert.deepEqual(seen, ['60000']);
  assert.deepEqual(ends, []);
});
