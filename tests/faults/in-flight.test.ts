// The server is killed while sessions are being created and released. Afterwards the row of every session matches its
// real state, whether or not the caller got a response, and failed creates leave nothing behind.
import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import type { Session } from '../../contract/sessions.ts';
import { LIGHT_ENGINE } from '../harness/engine.ts';
import { liftLimits } from '../harness/limits.ts';
import { type CreatedSession, startServer } from '../harness/server.ts';
import { assertOpenSessionsRespond, listOpenSessions, releaseAll } from './aftermath.ts';

const SESSIONS_AT_ONCE = 3;
const server = await startServer({ env: { BERTH_ENGINE: LIGHT_ENGINE, BERTH_ADOPT_GRACE: '60', BERTH_SLOTS: '12' } });
await liftLimits(server);
afterEach(() => releaseAll(server));

const create = (round: string): Promise<string | undefined> =>
  server
    .api<CreatedSession>('POST', '/v1/browsers/sessions', { body: { userMetadata: { round }, keepAlive: true } })
    .then(
      ({ status, body }) => (status === 201 ? body.id : undefined),
      () => undefined,
    );

const release = (id: string): Promise<boolean> =>
  server.release(id).then(
    () => true,
    () => false,
  );

// The times range from before the rows are written until after most browsers have responded. A release takes about a
// tenth as long as a create.
for (const afterMs of [20, 200, 600])
  test(`every row is correct after the server is killed ${afterMs} ms after create and release requests were sent`, async () => {
    const round = `after ${afterMs} ms`;
    const sessions = await Promise.all(
      Array.from({ length: SESSIONS_AT_ONCE }, () => server.createSession({ keepAlive: true })),
    );
    const pendingCreates = Array.from({ length: SESSIONS_AT_ONCE }, () => create(round));
    const pendingReleases = sessions.map(async ({ id }, index) => {
      await new Promise(resolve => setTimeout(resolve, (afterMs * index) / SESSIONS_AT_ONCE));
      return release(id);
    });
    await new Promise(resolve => setTimeout(resolve, afterMs));
    await server.kill('SIGKILL');
    const [createdIds, released] = await Promise.all([Promise.all(pendingCreates), Promise.all(pendingReleases)]);
    await server.start();

    const openSessionIds = await assertOpenSessionsRespond(server);
    for (const id of createdIds) if (id) assert.ok(openSessionIds.includes(id), 'a confirmed create still exists');
    for (const [index, { id }] of sessions.entries()) {
      const { status, endReason } = await server.read(id);
      if (released[index]) assert.equal(status, 'COMPLETED', 'a confirmed release is kept');
      assert.ok(status === 'RUNNING' || endReason === 'released', `${status} ${endReason}`);
    }
    await assertLostCreatesAreFound(round, openSessionIds);
    await server.waitUntilSettled(openSessionIds);
    await releaseAll(server);
    await server.waitUntilSettled();
    assert.deepEqual(await listOpenSessions(server), []);
  });

/** Asserts that a caller that got no response can find the outcome by the metadata of its session. */
async function assertLostCreatesAreFound(round: string, openSessionIds: readonly string[]): Promise<void> {
  const q = encodeURIComponent(`user_metadata['round']:'${round}'`);
  const { body } = await server.api<Session[]>('GET', `/v1/browsers/sessions?q=${q}`);
  assert.ok(body.length <= SESSIONS_AT_ONCE);
  for (const { id, status, endReason } of body) {
    if (openSessionIds.includes(id)) continue;
    assert.deepEqual({ status, endReason }, { status: 'ERROR', endReason: 'service_restart' });
  }
}
