// Floods of requests. A flood with a valid key causes refusals only for that key. Requests with wrong credentials do
// not count towards the limit of a valid key.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { startServer } from '../harness/server.ts';

const FLOOD = 3_000;
const AT_ONCE = 50;

const server = await startServer({
  env: { BERTH_SLOTS: '0', BERTH_READS_PER_MINUTE: undefined, BERTH_WRITES_PER_MINUTE: undefined },
});

const statusesOf = async (count: number, key: () => string): Promise<Map<number, number>> => {
  const statuses: number[] = [];
  const send = async (): Promise<void> => {
    while (statuses.length < count) statuses.push((await server.api('GET', '/v1/projects', { key: key() })).status);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, send));
  const counted = Map.groupBy(statuses, status => status);
  return new Map([...counted].map(([status, those]) => [status, those.length]));
};

test('a flood of requests with one key is refused, and another key of the same application is served', async () => {
  const made = await server.operate('keys', 'create', '--json', '--application', server.applicationId);
  const { key }: { key: string } = JSON.parse(made.stdout);
  const flood = statusesOf(FLOOD, () => key);
  const others: number[] = [];
  for (let asked = 0; asked < 100; asked++) others.push((await server.api('GET', '/v1/projects')).status);
  assert.deepEqual([...new Set(others)], [200]);
  const statuses = await flood;
  assert.ok((statuses.get(200) ?? 0) >= 600, JSON.stringify([...statuses]));
  assert.ok((statuses.get(429) ?? 0) > 0, JSON.stringify([...statuses]));
  assert.equal(statuses.size, 2, JSON.stringify([...statuses]));
});

test('every wrong credential in a flood gets the response 401, and these requests do not count against a valid key', async () => {
  const wrong = () => `bak_${randomBytes(32).toString('base64url')}000000`;
  assert.deepEqual([...(await statusesOf(FLOOD, wrong)).keys()], [401]);
  assert.equal((await server.api('GET', '/v1/projects')).status, 200);
});
