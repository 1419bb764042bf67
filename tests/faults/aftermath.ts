// Checks that run after a fault, and the cleanup between tests.
import assert from 'node:assert/strict';
import type { Session } from '../../contract/sessions.ts';
import type { TestServer } from '../harness/server.ts';
import { isResponsive } from './clients.ts';

const SESSIONS = '/v1/browsers/sessions';

export async function listOpenSessions(server: TestServer): Promise<Session[]> {
  const { status, body, text } = await server.api<Session[]>('GET', `${SESSIONS}?status=PENDING,RUNNING`);
  assert.equal(status, 200, text);
  return body;
}

/** Releases the sessions that are still running after a test, for example because the test failed. */
export async function releaseAll(server: TestServer): Promise<void> {
  const ends = (await listOpenSessions(server)).map(({ id }) =>
    server.api('POST', `${SESSIONS}/${id}`, { body: { status: 'REQUEST_RELEASE' } }),
  );
  await Promise.all(ends);
}

/** Asserts that every open session is running and answers. Returns their ids. */
export async function assertOpenSessionsRespond(server: TestServer): Promise<string[]> {
  const sessions = await listOpenSessions(server);
  for (const { id, status } of sessions) {
    assert.equal(status, 'RUNNING', `session ${id}`);
    assert.ok(await isResponsive(await server.read(id)), `session ${id} does not answer`);
  }
  return sessions.map(({ id }) => id);
}

export async function assertEnded(
  server: TestServer,
  id: string,
  status: Session['status'],
  endReason: string,
  withinMs?: number,
): Promise<Session> {
  const session = await server.waitUntilEnded(id, withinMs);
  assert.deepEqual({ status: session.status, endReason: session.endReason }, { status, endReason }, `session ${id}`);
  return session;
}
