// Events about server restarts, and about a browser that fails to start.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SessionEvent, SessionEventPage } from '../../contract/events.ts';
import { EventStream } from '../harness/event-stream.ts';
import { killBox } from '../harness/kill-box.ts';
import { createFaultyChromium } from '../harness/moody-chromium.ts';
import { startServer } from '../harness/server.ts';

const chromium = await createFaultyChromium();
const server = await startServer({
  env: { BERTH_SLOTS: '4', BERTH_WARM: '0', BERTH_CHROMIUM: chromium.path },
});

async function listEvents(id: string): Promise<SessionEvent[]> {
  return (await server.api<SessionEventPage>('GET', `/v1/browsers/sessions/${id}/events`)).body.data;
}
const openStream = (id: string, headers: Record<string, string> = {}): Promise<EventStream> =>
  EventStream.open(`${server.url}/v1/browsers/sessions/${id}/events`, {
    authorization: `Bearer ${server.key}`,
    ...headers,
  });
async function waitForDecision(id: string): Promise<unknown> {
  await server.waitUntilEnded(id);
  const decidedEvent = (await listEvents(id)).find(({ type }) => type === 'session.end_decided');
  return [decidedEvent?.actor.kind, decidedEvent?.detail.status, decidedEvent?.detail.reason];
}

test('an event stream can be continued after a server restart, and reports that the restarted server adopted the session', async () => {
  const { id } = await server.createSession({ keepAlive: true });
  const streamBefore = await openStream(id);
  const { id: last } = await streamBefore.waitForEvent('session.started');
  await server.restart('SIGTERM');
  assert.equal(await streamBefore.waitForEnd(), 'ended', 'a stopping server ends its streams');
  const streamAfter = await openStream(id, { 'last-event-id': last });
  await streamAfter.waitForEvent('session.adopted');
  await server.release(id);
  assert.equal(await streamAfter.waitForEnd(), 'ended');
  assert.deepEqual(streamAfter.types, [
    'session.adopted',
    'session.release_requested',
    'session.end_decided',
    'session.ended',
  ]);
});

test('an event records the end of a session whose browser ended while the server was down', async () => {
  const { id } = await server.createSession({ keepAlive: true });
  await server.kill('SIGKILL');
  killBox(server.dataDir, id);
  await server.start();
  assert.deepEqual(await waitForDecision(id), ['service', 'ERROR', 'service_restart']);
});

test('an event records the end of a session that the operator stopped after a SIGKILL of the server', async () => {
  const { id } = await server.createSession({ keepAlive: true });
  await server.kill('SIGKILL');
  assert.equal((await server.berth('stop')).code, 0);
  await server.start();
  assert.deepEqual(await waitForDecision(id), ['operator', 'COMPLETED', 'operator']);
});

test('an event records the end of a session that ended because the server received SIGINT', async () => {
  const { id } = await server.createSession({ keepAlive: true });
  await server.restart('SIGINT');
  assert.deepEqual(await waitForDecision(id), ['operator', 'COMPLETED', 'drained']);
});

test('an event records the end of a session whose browser failed to start, and the server is not ready after three such failures in a row', async () => {
  chromium.setBehavior('fails');
  const { status } = await server.api('POST', '/v1/browsers/sessions', { body: { userMetadata: { run: 'refused' } } });
  assert.equal(status, 500);
  assert.equal((await server.fetchFromOperator('/readyz')).status, 200, 'one start may fail');
  for (let count = 0; count < 2; count += 1) await server.api('POST', '/v1/browsers/sessions', { body: {} });
  const readinessResponse = await server.fetchFromOperator('/readyz');
  assert.equal(readinessResponse.status, 503);
  assert.match(readinessResponse.text, /3 browsers in a row did not start/);
  chromium.setBehavior('well');
  await server.release((await server.createSession({ keepAlive: true })).id);
  assert.equal((await server.fetchFromOperator('/readyz')).status, 200);
  const searchResponse = await server.api<Array<{ id: string }>>(
    'GET',
    `/v1/browsers/sessions?q=${encodeURIComponent("user_metadata['run']:'refused'")}`,
  );
  const id = searchResponse.body[0]?.id ?? '';
  assert.deepEqual(await waitForDecision(id), ['service', 'ERROR', 'start_failed']);
  const types = (await listEvents(id)).map(({ type }) => type);
  assert.deepEqual(types.slice(0, 1), ['session.created']);
  assert.ok(!types.includes('session.started'));
  assert.equal(types.at(-1), 'session.ended');
});
