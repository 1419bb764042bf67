import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SessionUsageRow } from '../../engines/store/rows/usage.ts';
import type { SessionId } from '../../kit/ids.ts';
import { SessionUsage } from './session-usage.ts';

const ID = '0192f7c2-6a64-7a0e-9a53-0f1c3a2f7d10' as SessionId;
const STARTED_ROW = { startedAt: new Date(0) };

/** A box and a proxy whose counters the test sets, and a database that can fail. */
function scene() {
  const savedRows = new Map<SessionId, SessionUsageRow>();
  const counters = { bytesUp: 0, bytesDown: 0, bytesByProxy: 0, connections: 0, connectionsOpen: 0, refusals: {} };
  const resources = { cpuMs: 1500.4, peakMemoryBytes: 1000 };
  const database = { fails: false };
  const usage = new SessionUsage({
    rows: {
      ofSession: async id => savedRows.get(id),
      save: async rows => {
        if (database.fails) throw new Error('the database does not answer');
        for (const row of rows) savedRows.set(row.sessionId, row);
      },
    },
    recordings: {
      lengths: async () =>
        new Map([
          [0, 2500],
          [1, 500],
        ]),
    },
  });
  const live = { id: ID, box: { resources: () => resources }, egress: { counters: () => counters } };
  return { usage, live, counters, database, saved: savedRows };
}

test('returns the current usage while the session is running, and then the final usage', async () => {
  const { usage, live, counters } = scene();
  await usage.attend(live, {});
  counters.bytesDown = 70;
  const expectedUsage = { cpuSeconds: 1.5, peakMemoryBytes: 1000, bytesReceived: 70, bytesSent: 0, recordedSeconds: 3 };
  assert.deepEqual(await usage.describe({ id: ID }), { usage: expectedUsage });
  counters.bytesUp = 5;
  await usage.salvage({ id: ID });
  usage.ended({ id: ID });
  counters.bytesUp = 99;
  assert.deepEqual(await usage.describe({ id: ID }), { usage: { ...expectedUsage, bytesSent: 5 } });
});

test('adds the bytes that an earlier server saved to the bytes of the current server', async () => {
  const { usage, live, counters, saved: savedRows } = scene();
  savedRows.set(ID, { sessionId: ID, cpuMs: 1, bytesReceived: 1000, bytesSent: 100 });
  await usage.attend(live, STARTED_ROW);
  counters.bytesDown = 1;
  await usage.save();
  assert.deepEqual(savedRows.get(ID), {
    sessionId: ID,
    cpuMs: 1500,
    peakMemoryBytes: 1000,
    bytesReceived: 1001,
    bytesSent: 100,
  });
});

test('saves the final usage later if the database failed when the session ended', async () => {
  const { usage, live, counters, database, saved: savedRows } = scene();
  await usage.attend(live, {});
  counters.bytesUp = 7;
  database.fails = true;
  await assert.rejects(usage.salvage({ id: ID }));
  usage.ended({ id: ID });
  database.fails = false;
  assert.deepEqual(await usage.save(), { late: 1 });
  assert.equal(savedRows.get(ID)?.bytesSent, 7);
  assert.deepEqual(await usage.save(), { late: 0 });
});

test('returns no usage for a session that was never metered', async () => {
  const { usage } = scene();
  assert.deepEqual(await usage.describe({ id: ID }), {});
});
