// The server is killed while webhook deliveries are waiting and while events are being created. After the restart each
// event arrives and has one delivery.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SessionEvent } from '../../contract/events.ts';
import type { Webhook } from '../../contract/webhooks.ts';
import { LIGHT_ENGINE } from '../harness/engine.ts';
import { createOwnerToken, liftLimits } from '../harness/limits.ts';
import { startServer } from '../harness/server.ts';
import { listEvents } from '../harness/session-events.ts';
import { eventually } from '../harness/until.ts';
import { createWebhook, listDeliveries, Receiver } from '../harness/webhooks.ts';

/** Longer than the time for which a delivery stays reserved for a process that was killed. */
const PAST_RESERVATION_MS = 61_000;
const THIRD_ATTEMPT_DELAY_MS = 301_000;

const receiver = await Receiver.open();
const server = await startServer({ clock: 'test', env: { ...receiver.settings, BERTH_ENGINE: LIGHT_ENGINE } });
await liftLimits(server);
const token = await createOwnerToken(server);

const idsAt = (path: string): ReadonlySet<unknown> =>
  new Set(receiver.receivedAt(path).map(({ message }) => message.data.id));

/** Asserts that each event arrives and has one delivery. */
async function assertAllDelivered(webhook: Webhook, path: string, events: readonly SessionEvent[]): Promise<void> {
  const listMissingTypes = () => events.filter(({ id }) => !idsAt(path).has(id)).map(({ type }) => type);
  await eventually('the events to arrive', listMissingTypes, left => left.length === 0);
  const deliveries = await listDeliveries(server, token, webhook.id);
  for (const { id, type } of events)
    assert.equal(deliveries.filter(({ eventId }) => eventId === id).length, 1, `${type} ${id}`);
  const ids = new Map(
    receiver.receivedAt(path).map(({ headers, message }) => [message.data.id, headers['webhook-id']]),
  );
  for (const { id, eventId } of deliveries)
    if (eventId !== undefined) assert.equal(ids.get(eventId), id, 'every attempt has the id of the delivery');
}

test('waiting deliveries arrive after a restart if the server is killed while an endpoint does not respond', async () => {
  let shouldHang = true;
  receiver.respondTo('/hung', response => {
    if (!shouldHang) response.writeHead(204).end();
  });
  const webhook = await createWebhook(server, token, { url: receiver.url('/hung') });
  const { id } = await server.createSession();
  await server.release(id);
  await server.waitUntilEnded(id);
  await receiver.waitForCount('/hung', 1);
  await eventually(
    'the deliveries to wait',
    () => listDeliveries(server, token, webhook.id),
    all => all.length > 3 && all.every(({ status }) => status === 'waiting'),
  );
  await server.kill();
  shouldHang = false;
  await server.start();
  await server.advance(PAST_RESERVATION_MS);
  await assertAllDelivered(webhook, '/hung', await listEvents(server, id));
});

test('no event is lost or written twice if the server is killed at several moments after a session began', async () => {
  const webhook = await createWebhook(server, token, { url: receiver.url('/moments') });
  const sessions: string[] = [];
  for (const afterMs of [0, 30, 120, 300, 700]) {
    const { id } = await server.createSession({ keepAlive: true });
    sessions.push(id);
    await sleep(afterMs);
    await server.restart();
    await server.advance(PAST_RESERVATION_MS);
  }
  for (const id of sessions) {
    await server.release(id);
    await server.waitUntilEnded(id);
  }
  const events = (await Promise.all(sessions.map(id => listEvents(server, id)))).flat();
  await assertAllDelivered(webhook, '/moments', events);
});

test('an endpoint that was down while the server was killed gets its deliveries once it is up', async () => {
  const webhook = await createWebhook(server, token, { url: receiver.url('/down') });
  await receiver.stop();
  const { id } = await server.createSession();
  await server.release(id);
  await server.waitUntilEnded(id);
  await eventually(
    'attempts to fail',
    () => listDeliveries(server, token, webhook.id),
    all => all.some(({ failure }) => failure !== undefined),
  );
  await server.restart();
  await receiver.listen();
  // If the restart was slow, a second attempt may also have failed. This advance is long enough for a third attempt.
  await server.advance(THIRD_ATTEMPT_DELAY_MS);
  await assertAllDelivered(webhook, '/down', await listEvents(server, id));
});
