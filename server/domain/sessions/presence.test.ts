import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../../../tests/harness/hand-clock.ts';
import { addMs } from '../../kit/clock.ts';
import type { SessionId } from '../../kit/ids.ts';
import { silentLog } from '../../kit/log.ts';
import { Presence, type PresenceRow } from './presence.ts';

/** A session whose row is in a database that can be made to fail, or to respond only when the test allows it. */
function scene(row: Partial<PresenceRow> = {}) {
  const written: string[] = [];
  const state = { isReachable: true, gate: Promise.resolve() };
  const write = (change: string) => async (): Promise<void> => {
    await state.gate;
    if (!state.isReachable) throw new Error('the database does not respond');
    written.push(change);
  };
  const rows = {
    clientConnected: write('connected'),
    clientDisconnected: write('one left'),
    lastClientDisconnected: write('last left'),
  };
  const parts = { rows, clock: new ManualClock(), log: silentLog, graceMs: 5_000, scheduleExpiry: () => {} };
  return {
    written,
    state,
    clock: parts.clock,
    presence: new Presence({ id: 's' as SessionId, keepAlive: false, ...row }, parts),
  };
}

test('a change that could not be written is written later, however often the write fails', async () => {
  const { written, state, presence } = scene();
  state.isReachable = false;
  presence.connected();
  await presence.whenWritten();
  await presence.catchUp();
  await presence.catchUp();
  state.isReachable = true;
  await presence.catchUp();
  await presence.catchUp();
  assert.deepEqual(written, ['connected']);
});

test('a change that could not be written is not written after a newer change', async () => {
  const { written, state, presence } = scene();
  state.isReachable = false;
  presence.connected();
  await presence.whenWritten();
  const response = Promise.withResolvers<void>();
  [state.isReachable, state.gate] = [true, response.promise];
  presence.disconnected();
  const caughtUp = presence.catchUp();
  response.resolve();
  await caughtUp;
  assert.deepEqual(written, ['last left']);
});

test('a guest counts only until the session has had a client, and does not count again after the last client has disconnected', async () => {
  const { written, presence } = scene();
  presence.connected('guest');
  assert.equal(presence.count, 1);
  presence.connected();
  presence.connected();
  presence.disconnected();
  assert.equal(presence.count, 1);
  presence.disconnected();
  assert.equal(presence.count, 0);
  presence.disconnected('guest');
  presence.connected('guest');
  presence.disconnected('guest');
  await presence.whenWritten();
  assert.deepEqual(written, ['connected', 'connected', 'connected', 'one left', 'last left']);
});

test('a session that has only had guests begins its grace period when the last guest disconnects', async () => {
  const { written, presence } = scene();
  presence.connected('guest');
  presence.disconnected('guest');
  await presence.whenWritten();
  assert.deepEqual(written, ['connected', 'last left']);
});

test('the deadline is that of the first client, absent while a client is connected, and then the end of the grace period', () => {
  const connectBy = new Date('2026-11-26T12:05:00Z');
  const { presence, clock } = scene({ connectBy });
  assert.equal(presence.deadline, connectBy);
  presence.connected();
  presence.connected();
  assert.equal(presence.deadline, undefined);
  presence.disconnected();
  assert.equal(presence.deadline, undefined);
  presence.disconnected();
  assert.deepEqual(presence.deadline, addMs(clock.now(), 5_000));
});

test('a session that is kept alive has no deadline, and a failed write is owed until it succeeds', async () => {
  const { presence, state } = scene({ keepAlive: true });
  state.isReachable = false;
  presence.connected();
  presence.disconnected();
  await presence.whenWritten();
  assert.deepEqual([presence.deadline, presence.isWriteOwed], [undefined, true]);
  state.isReachable = true;
  await presence.catchUp();
  assert.equal(presence.isWriteOwed, false);
});

test('a grace period sets the deadline of a session without clients, and not that of a session with clients', () => {
  const { presence, clock } = scene();
  presence.connected();
  presence.startGrace();
  assert.ok(!presence.deadline);
  presence.disconnected();
  const endsAt = presence.startGrace(7_000);
  assert.deepEqual(presence.deadline, new Date(endsAt));
  assert.equal(endsAt, clock.now().getTime() + 7_000);
});
