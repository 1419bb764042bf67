import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../../../tests/harness/hand-clock.ts';
import type { DeviceAuthorizationRow } from '../../engines/store/rows/device.ts';
import type { Store } from '../../engines/store/store.ts';
import { addMs } from '../../kit/clock.ts';
import type { DeviceAuthorizationId } from '../../kit/ids.ts';
import { mint } from '../identity/credentials.ts';
import { localTallies } from '../limits/lone-tallies.ts';
import { DeviceStates } from './device-states.ts';

const ID = '0199f7c2-6a64-7a0e-9a53-0f1c3a2f7d10';
const SOURCE = { ip: '203.0.113.7' };

/** Returns a row that a test can change, and a function that sends the notification of a change. */
async function openStates() {
  const clock = new ManualClock();
  const { hash, text } = mint('device_code');
  const row: { current: DeviceAuthorizationRow } = {
    current: {
      id: ID as DeviceAuthorizationId,
      deviceCodeHash: hash,
      userCodeHash: Buffer.alloc(32),
      clientId: 'my-agent',
      scopes: [],
      status: 'pending',
      requestedIp: SOURCE.ip,
      intervalSeconds: 5,
      startedAt: clock.now(),
      expiresAt: addMs(clock.now(), 600_000),
    },
  };
  const listener: { notify: (id: string) => void } = { notify: () => {} };
  const listen: Store['listen'] = async (_, notice) => {
    listener.notify = notice;
    return { close: () => {} };
  };
  const device = {
    byDeviceCode: async (deviceCodeHash: Buffer) => (deviceCodeHash.equals(hash) ? row.current : undefined),
    recordStateRead: async (_: string, now: Date, since: Date) => {
      const { stateReadAt } = row.current;
      if (stateReadAt && stateReadAt > since) return false;
      row.current = { ...row.current, stateReadAt: now };
      return true;
    },
  };
  const states = await DeviceStates.open({ store: { device, listen }, clock, tallies: localTallies(clock) });
  const signal = new AbortController();
  const read = (query: object) =>
    states.read(ID, `Bearer ${text.reveal()}`, query, SOURCE, signal.signal).then(({ status }) => status);
  return { clock, row, heard: listener, states, read, signal };
}

/** Lets pending callbacks run. */
const waitForNextTurn = (): Promise<void> => new Promise(done => setImmediate(done));

test('returns the state as soon as the notification of a change arrives', async () => {
  const { clock, row, heard, read } = await openStates();
  const pendingRead = read({ wait: 55, since: 'pending' });
  await waitForNextTurn();
  row.current = { ...row.current, status: 'claimed' };
  heard.notify('another');
  heard.notify(ID);
  assert.equal(await pendingRead, 'claimed');
  assert.equal(clock.monotonicMs(), 0);
});

test('ends the wait at the requested time if the state does not change, and reports an expiry as a change', async () => {
  const { clock, read } = await openStates();
  const pendingRead = read({ wait: 55 });
  await waitForNextTurn();
  await clock.advance(55_000, 1_000);
  assert.equal(await pendingRead, 'pending');
  await clock.advance(530_000);
  const expiringRead = read({ wait: 55 });
  await waitForNextTurn();
  await clock.advance(20_000, 1_000);
  assert.equal(await expiringRead, 'expired');
  assert.equal(clock.monotonicMs(), 605_000);
});

test('returns a changed state immediately, and limits the rate of reads', async () => {
  const { clock, read } = await openStates();
  assert.equal(await read({ wait: 55, since: 'claimed' }), 'pending');
  await assert.rejects(read({}), { code: 'rate_limited' });
  await clock.advance(5_000);
  assert.equal(await read({}), 'pending');
});

test('ends the wait when the caller disconnects or the server stops', async () => {
  const { read, signal, states } = await openStates();
  const abortedRead = read({ wait: 55 });
  await waitForNextTurn();
  signal.abort();
  assert.equal(await abortedRead, 'pending');
  const closedRead = openStates().then(async otherStates => {
    const pendingRead = otherStates.read({ wait: 55 });
    await waitForNextTurn();
    await otherStates.states.close();
    return pendingRead;
  });
  assert.equal(await closedRead, 'pending');
  await states.close();
});
