// Floods of requests. A flood with a valid key causes refusals only for that key. Requests with wrong credentials do
// not count towards the limit of a valid key.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { startServer } from '../harness/server.ts';

const FLOOD_REQUESTS = 3_000;
const REQUESTS_AT_ONCE = 50;

const server = await startServer({
  env: { BERTH_SLOTS: '0', BERTH_READS_PER_MINUTE: undefined, BERTH_WRITES_PER_MINUTE: undefined },
});

const countStatuses = async (count: number, key: () => string): Promise<Map<number, number>> => {
  const statuses: number[] = [];
  const send = async (): Promise<void> => {
    while (statuses.length < count) statuses.push((await server.api('GET', '/v1/projects', { key: key() })).status);
  };
  await Promise.all(Array.from({ length: REQUESTS_AT_ONCE }, send));
  const statusGroups = Map.groupBy(statuses, status => status);
  return new Map([...statusGroups].map(([status, those]) => [status, those.length]));
};

test('a flood of requests with one key is limited, and another key of the same application is served', async () => {
  const made = await server.operate('keys', 'create', '--json', '--application', server.applicationId);
  const { key }: { key: string } = JSON.parse(made.stdout);
  const pendingCounts = countStatuses(FLOOD_REQUESTS, () => key);
  const otherStatuses: number[] = [];
  for (let count = 0; count < 100; count++) otherStatuses.push((await server.api('GET', '/v1/projects')).status);
  assert.deepEqual([...new Set(otherStatuses)], [200]);
  const statuses = await pendingCounts;
  assert.ok((statuses.get(200) ?? 0) >= 600, JSON.stringify([...statuses]));
  assert.ok((statuses.get(429) ?? 0) > 0, JSON.stringify([...statuses]));
  assert.equal(statuses.size, 2, JSON.stringify([...statuses]));
});

test('every wrong credential in a flood gets the response 401, and these requests do not count against a valid key', async () => {
  const createWrongKey = () => `bak_${randomBytes(32).toString('base64url')}000000`;
  assert.deepEqual([...(await countStatuses(FLOOD_REQUESTS, createWrongKey)).keys()], [401]);
  assert.equal((await server.api('GET', '/v1/projects')).status, 200);
});
