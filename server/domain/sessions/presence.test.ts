import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../../../tests/harness/hand-clock.ts';
import { addMs } from '../../kit/clock.ts';
import type { SessionId } from '../../kit/ids.ts';
import { silentLog } from '../../kit/log.ts';
import { Presence, type PresenceRow } from './presence.ts';

/** A session whose row is in a database that can be made to fail, or to respond only when the test allows it. */
function createScene(row: Partial<PresenceRow> = {}) {
  const writtenChanges: string[] = [];
  const state = { isReachable: true, gate: Promise.resolve() };
  const write = (change: string) => async (): Promise<void> => {
    await state.gate;
    if (!state.isReachable) throw new Error('the database does not respond');
    writtenChanges.push(change);
  };
  const rows = {
    recordClientConnected: write('connected'),
    recordClientDisconnected: write('one left'),
    recordLastClientDisconnected: write('last left'),
  };
  const parts = { rows, clock: new ManualClock(), log: silentLog, graceMs: 5_000, scheduleExpiry: () => {} };
  return {
    written: writtenChanges,
    state,
    clock: parts.clock,
    presence: new Presence({ id: 's' as SessionId, keepAlive: false, ...row }, parts),
  };
}

test('a change that could not be written is written later, however often the write fails', async () => {
  const { written: writtenChanges, state, presence } = createScene();
  state.isReachable = false;
  presence.noteConnected();
  await presence.whenWritten();
  await presence.retryUnwrittenChange();
  await presence.retryUnwrittenChange();
  state.isReachable = true;
  await presence.retryUnwrittenChange();
  await presence.retryUnwrittenChange();
  assert.deepEqual(writtenChanges, ['connected']);
});

test('a change that could not be written is not written after a newer change', async () => {
  const { written: writtenChanges, state, presence } = createScene();
  state.isReachable = false;
  presence.noteConnected();
  await presence.whenWritten();
  const response = Promise.withResolvers<void>();
  [state.isReachable, state.gate] = [true, response.promise];
  presence.noteDisconnected();
  const retryPromise = presence.retryUnwrittenChange();
  response.resolve();
  await retryPromise;
  assert.deepEqual(writtenChanges, ['last left']);
});

test('a guest counts as connected only until the first client connects, and does not count again after the last client has disconnected', async () => {
  const { written: writtenChanges, presence } = createScene();
  presence.noteConnected('guest');
  assert.equal(presence.count, 1);
  presence.noteConnected();
  presence.noteConnected();
  presence.noteDisconnected();
  assert.equal(presence.count, 1);
  presence.noteDisconnected();
  assert.equal(presence.count, 0);
  presence.noteDisconnected('guest');
  presence.noteConnected('guest');
  presence.noteDisconnected('guest');
  await presence.whenWritten();
  assert.deepEqual(writtenChanges, ['connected', 'connected', 'connected', 'one left', 'last left']);
});

test('a session that has only had guests begins its grace period when the last guest disconnects', async () => {
  const { written: writtenChanges, presence } = createScene();
  presence.noteConnected('guest');
  presence.noteDisconnected('guest');
  await presence.whenWritten();
  assert.deepEqual(writtenChanges, ['connected', 'last left']);
});

test('the deadline is connectBy until the first client connects, undefined while a client is connected, and then the end of the grace period', () => {
  const connectBy = new Date('2026-11-26T12:05:00Z');
  const { presence, clock } = createScene({ connectBy });
  assert.equal(presence.deadline, connectBy);
  presence.noteConnected();
  presence.noteConnected();
  assert.equal(presence.deadline, undefined);
  presence.noteDisconnected();
  assert.equal(presence.deadline, undefined);
  presence.noteDisconnected();
  assert.deepEqual(presence.deadline, addMs(clock.now(), 5_000));
});

test('a session that is kept alive has no deadline after its last client disconnects', () => {
  const { presence } = createScene({ keepAlive: true });
  presence.noteConnected();
  presence.noteDisconnected();
  assert.equal(presence.deadline, undefined);
});

test('a change of presence that could not be written stays pending until a retry succeeds', async () => {
  const { presence, state } = createScene();
  state.isReachable = false;
  presence.noteConnected();
  await presence.whenWritten();
  assert.equal(presence.hasUnwrittenChange, true);
  state.isReachable = true;
  await presence.retryUnwrittenChange();
  assert.equal(presence.hasUnwrittenChange, false);
});

test('a grace period sets the deadline only of a session without clients', () => {
  const { presence, clock } = createScene();
  presence.noteConnected();
  presence.startGrace();
  assert.ok(!presence.deadline);
  presence.noteDisconnected();
  const endsAt = presence.startGrace(7_000);
  assert.deepEqual(presence.deadline, new Date(endsAt));
  assert.equal(endsAt, clock.now().getTime() + 7_000);
});
