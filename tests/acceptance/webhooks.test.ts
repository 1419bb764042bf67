// Webhooks get signed messages for the events of sessions. A message is retried on schedule, given up, and sent again
// by hand.
import assert from 'node:assert/strict';
import { createPublicKey, verify } from 'node:crypto';
import { test } from 'node:test';
import type { AuditPage } from '../../contract/audit.ts';
import type { ErrorBody } from '../../contract/common.ts';
import type { Webhook, WebhookDelivery, WebhookDeliveryWithMessage, WebhookPage } from '../../contract/webhooks.ts';
import { verifyWebhook } from '../../sdk/index.ts';
import { LIGHT_ENGINE } from '../harness/engine.ts';
import { createOwnerToken } from '../harness/limits.ts';
import { joinApplication } from '../harness/members.ts';
import { queryRows } from '../harness/other-person.ts';
import { Person } from '../harness/person.ts';
import { startServer } from '../harness/server.ts';
import { listEvents } from '../harness/session-events.ts';
import { eventually } from '../harness/until.ts';
import {
  createWebhook,
  listDeliveries,
  type ReceivedWebhook,
  Receiver,
  sendTestEvent,
  waitForDelivery,
  webhooksPath,
} from '../harness/webhooks.ts';

const SECOND_MS = 1000;
const HOUR_MS = 3_600_000;
/** The same values as in server/domain/webhooks/retries.ts and docs/webhooks.md. */
const RETRY_INTERVALS_MS = [5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400].map(
  seconds => seconds * SECOND_MS,
);

/** More deliveries than one statement of the server deletes. */
const BACKLOG_ROWS = 10_001;
const INSERT_BACKLOG = `
  insert into webhook_deliveries (id, webhook_id, application_id, event_type, body, status, created_at, delivered_at)
  select gen_random_uuid(), $1::uuid, $2::uuid, 'session.ended', '{}', 'delivered', $3::timestamptz, $3::timestamptz
    from generate_series(1, $4::int)`;

const receiver = await Receiver.open();
const server = await startServer({ clock: 'test', env: { ...receiver.settings, BERTH_ENGINE: LIGHT_ENGINE } });
const token = await createOwnerToken(server);

const read = async (id: string): Promise<Webhook> =>
  (await server.api<Webhook>('GET', webhooksPath(server, `/${id}`), { key: token })).body;

const change = (webhook: Webhook, body: object) =>
  server.api<Webhook & ErrorBody>('PATCH', webhooksPath(server, `/${webhook.id}`), {
    ...{ key: token, body, headers: { 'if-match': '*' } },
  });

/** Verifies the signature with node:crypto alone, as the guide describes. */
function isSigned({ headers, body }: ReceivedWebhook, publicKey: string): boolean {
  const keyBytes = Buffer.from(publicKey.slice('whpk_'.length), 'base64');
  const key = createPublicKey({
    key: { kty: 'OKP', crv: 'Ed25519', x: keyBytes.toString('base64url') },
    format: 'jwk',
  });
  const content = Buffer.from(`${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`);
  return String(headers['webhook-signature'])
    .split(' ')
    .some(one => verify(null, content, key, Buffer.from(one.slice('v1a,'.length), 'base64')));
}

test('members with the role viewer can only read webhooks and deliveries, and those with the role developer can create and test webhooks', async () => {
  const owner = await Person.setUpOwner(server);
  const viewer = (await joinApplication(server, owner, 'viewer@example.com', 'viewer')).person;
  const developer = (await joinApplication(server, owner, 'developer@example.com', 'developer')).person;
  const body = { name: 'roles', url: receiver.url('/roles') };
  const refusal = await viewer.post<ErrorBody>(webhooksPath(server), body);
  assert.deepEqual([refusal.status, refusal.body.code], [403, 'permission_denied']);
  const createResponse = await developer.post<Webhook>(webhooksPath(server), body);
  assert.equal(createResponse.status, 201, createResponse.text);
  assert.equal(
    (await viewer.get<Webhook>(webhooksPath(server, `/${createResponse.body.id}`))).body.id,
    createResponse.body.id,
  );
  assert.equal((await viewer.get(webhooksPath(server, `/${createResponse.body.id}/deliveries`))).status, 200);
  assert.equal((await viewer.post(webhooksPath(server, `/${createResponse.body.id}/test`))).status, 403);
  assert.equal((await developer.post(webhooksPath(server, `/${createResponse.body.id}/test`))).status, 201);
});

test('the events of a session are sent in order, each signed with the key of the webhook', async () => {
  const webhook = await createWebhook(server, token, { url: receiver.url('/ordered') });
  const otherWebhook = await createWebhook(server, token, { url: receiver.url('/other') });
  const { id } = await server.createSession({ userMetadata: { run: '1' } });
  await server.release(id);
  await server.waitUntilEnded(id);
  const events = await listEvents(server, id);
  const receivedWebhooks = await receiver.waitForCount('/ordered', events.length);
  assert.deepEqual(
    receivedWebhooks.map(({ message }) => [message.type, message.data.id, message.timestamp]),
    events.map(event => [event.type, event.id, event.time]),
  );
  const [first] = receivedWebhooks;
  const { time, ...shown } = events[0] ?? assert.fail('the session has no event');
  assert.deepEqual(first?.message.data, { applicationId: server.applicationId, ...shown, time });
  assert.equal(first?.headers['content-type'], 'application/json');
  for (const one of receivedWebhooks) {
    assert.ok(isSigned(one, webhook.publicKey));
    assert.ok(!isSigned(one, otherWebhook.publicKey), 'each webhook has its own key');
    const options = { now: server.now() };
    assert.equal(verifyWebhook(one.body, one.headers, webhook.publicKey, options).type, one.message.type);
  }
  assert.equal(new Set(receivedWebhooks.map(({ headers }) => headers['webhook-id'])).size, receivedWebhooks.length);
  const [newest] = await listDeliveries(server, token, webhook.id);
  const last = receivedWebhooks.at(-1);
  assert.equal(newest?.id, last?.headers['webhook-id']);
  const finalDelivery = await waitForDelivery(
    server,
    token,
    newest ?? assert.fail(),
    ({ status }) => status === 'delivered',
  );
  assert.deepEqual(
    [finalDelivery.attempts, finalDelivery.answerStatus, finalDelivery.eventType],
    [1, 204, 'session.ended'],
  );
  const path = webhooksPath(server, `/${webhook.id}/deliveries/${newest?.id}`);
  const { body } = await server.api<WebhookDeliveryWithMessage>('GET', path, { key: token });
  assert.deepEqual(body.message, last?.message);
  for (const { id: done } of [webhook, otherWebhook])
    await server.api('DELETE', webhooksPath(server, `/${done}`), { key: token });
});

test('only events of the chosen types, and only events after the creation of the webhook, are sent', async () => {
  const { id } = await server.createSession();
  const webhook = await createWebhook(server, token, {
    url: receiver.url('/chosen'),
    eventTypes: ['session.ended', 'session.ended'],
  });
  assert.deepEqual(webhook.eventTypes, ['session.ended']);
  await server.release(id);
  await server.waitUntilEnded(id);
  const [receivedWebhook] = await receiver.waitForCount('/chosen', 1);
  assert.deepEqual([receivedWebhook?.message.type, receivedWebhook?.message.data.sessionId], ['session.ended', id]);
  await sendTestEvent(server, token, webhook.id);
  const both = await receiver.waitForCount('/chosen', 2);
  assert.deepEqual(
    both.map(({ message }) => message.type),
    ['session.ended', 'webhook.test'],
  );
});

test('a delivery is retried at increasing intervals for three days, and the webhook is then disabled', async () => {
  receiver.respondTo('/broken', response => void response.writeHead(500).end('no'));
  const webhook = await createWebhook(server, token, { url: receiver.url('/broken') });
  const sentDelivery = await sendTestEvent(server, token, webhook.id);
  for (const [at, pauseMs] of RETRY_INTERVALS_MS.entries()) {
    await receiver.waitForCount('/broken', at + 1);
    // While an attempt is reserved, which lasts until its failure is written, the time of the next attempt does not
    // match the pause.
    const scheduledDelivery = await waitForDelivery(server, token, sentDelivery, ({ nextAttemptAt, lastAttemptAt }) => {
      const ms = Date.parse(nextAttemptAt ?? '') - Date.parse(lastAttemptAt ?? '');
      return ms >= pauseMs && ms < pauseMs + 10 * SECOND_MS;
    });
    assert.deepEqual([scheduledDelivery.status, scheduledDelivery.answerStatus], ['waiting', 500]);
    assert.match(scheduledDelivery.failure ?? '', /responded with the status 500/);
    assert.ok((await read(webhook.id)).failingSince);
    await server.advance(pauseMs);
  }
  await receiver.waitForCount('/broken', RETRY_INTERVALS_MS.length + 1);
  const deadDelivery = await waitForDelivery(server, token, sentDelivery, ({ status }) => status === 'dead');
  assert.deepEqual([deadDelivery.attempts, deadDelivery.nextAttemptAt], [10, undefined]);
  const disabledWebhook = await eventually(
    'the webhook to be disabled',
    () => read(webhook.id),
    ({ status }) => status === 'disabled',
  );
  assert.equal(disabledWebhook.disabledReason, 'failing');
  const [first, ...laterRequests] = receiver.receivedAt('/broken');
  for (const one of laterRequests) {
    assert.equal(one.headers['webhook-id'], first?.headers['webhook-id']);
    assert.equal(one.body, first?.body);
    assert.ok(isSigned(one, webhook.publicKey));
  }

  const path = webhooksPath(server, `/${webhook.id}/deliveries/${sentDelivery.id}/redeliver`);
  const refusal = await server.api('POST', path, { key: token });
  assert.deepEqual([refusal.status, refusal.body.code], [409, 'not_ready']);
  receiver.respondTo('/broken', response => void response.writeHead(200).end());
  const enableResponse = await change(webhook, { status: 'enabled' });
  assert.deepEqual([enableResponse.body.disabledReason, enableResponse.body.failingSince], [undefined, undefined]);
  const redeliverResponse = await server.api<WebhookDelivery>('POST', path, { key: token });
  assert.deepEqual(
    [redeliverResponse.status, redeliverResponse.body.status, redeliverResponse.body.attempts],
    [200, 'waiting', 0],
    redeliverResponse.text,
  );
  const finalDelivery = await waitForDelivery(server, token, sentDelivery, ({ status }) => status === 'delivered');
  assert.deepEqual([finalDelivery.attempts, finalDelivery.answerStatus, finalDelivery.failure], [1, 200, undefined]);
});

test('a webhook whose endpoint returns 410 is disabled immediately, and its delivery is not retried', async () => {
  receiver.respondTo('/gone', response => void response.writeHead(410).end());
  const webhook = await createWebhook(server, token, { url: receiver.url('/gone') });
  const sentDelivery = await sendTestEvent(server, token, webhook.id);
  const deadDelivery = await waitForDelivery(server, token, sentDelivery, ({ status }) => status === 'dead');
  assert.equal(deadDelivery.answerStatus, 410);
  assert.deepEqual([(await read(webhook.id)).status, (await read(webhook.id)).disabledReason], ['disabled', 'gone']);
});

test('after a key rotation, messages are signed with both keys for a day, and then only with the new key', async () => {
  const webhook = await createWebhook(server, token, { url: receiver.url('/rotated') });
  const rotateResponse = await server.api<Webhook>('POST', webhooksPath(server, `/${webhook.id}/rotate-key`), {
    key: token,
  });
  assert.equal(rotateResponse.status, 200, rotateResponse.text);
  assert.equal(rotateResponse.body.formerPublicKey, webhook.publicKey);
  assert.notEqual(rotateResponse.body.publicKey, webhook.publicKey);
  await sendTestEvent(server, token, webhook.id);
  const [both] = await receiver.waitForCount('/rotated', 1);
  assert.ok(both && isSigned(both, webhook.publicKey) && isSigned(both, rotateResponse.body.publicKey));
  await server.advance(24 * HOUR_MS);
  await sendTestEvent(server, token, webhook.id);
  const [, one] = await receiver.waitForCount('/rotated', 2);
  assert.ok(one && !isSigned(one, webhook.publicKey) && isSigned(one, rotateResponse.body.publicKey));
  await server.api('DELETE', webhooksPath(server, `/${webhook.id}`), { key: token });
});

test('after the address of a webhook is changed, deliveries go to the new address, and events that occur while the webhook is disabled are not sent', async () => {
  const webhook = await createWebhook(server, token, { url: receiver.url('/before') });
  const changeResponse = await change(webhook, {
    url: receiver.url('/after'),
    name: 'moved',
    eventTypes: ['session.created'],
  });
  assert.deepEqual(
    [changeResponse.status, changeResponse.body.name, changeResponse.body.revision],
    [200, 'moved', 2],
    changeResponse.text,
  );
  const disableResponse = await change(webhook, { status: 'disabled' });
  assert.deepEqual([disableResponse.body.status, disableResponse.body.disabledReason], ['disabled', 'caller']);
  const missedSession = await server.createSession();
  await change(webhook, { status: 'enabled' });
  const seenSession = await server.createSession();
  const [receivedWebhook] = await receiver.waitForCount('/after', 1);
  assert.equal(receivedWebhook?.message.data.sessionId, seenSession.id);
  assert.equal(receiver.receivedAt('/before').length, 0);
  for (const { id } of [missedSession, seenSession]) await server.release(id);
  const staleResponse = await server.api('PATCH', webhooksPath(server, `/${webhook.id}`), {
    ...{ key: token, body: { name: 'x' }, headers: { 'if-match': '"1"' } },
  });
  assert.deepEqual([staleResponse.status, staleResponse.body.code], [412, 'precondition_failed']);
});

test('the audit log records each change of a webhook, without the address of the webhook', async () => {
  const webhook = await createWebhook(server, token, { url: receiver.url('/audited?secret=abc') });
  await change(webhook, { name: 'renamed' });
  await server.api('DELETE', webhooksPath(server, `/${webhook.id}`), { key: token });
  const { body } = await server.api<AuditPage>('GET', `/v1/applications/${server.applicationId}/audit`, { key: token });
  const auditEntries = body.data.filter(({ target }) => target?.id === webhook.id);
  assert.deepEqual(
    auditEntries.map(({ action }) => action),
    ['webhook.deleted', 'webhook.changed', 'webhook.created'],
  );
  assert.ok(!JSON.stringify(auditEntries).includes('secret=abc'));
  assert.equal((await server.api('GET', webhooksPath(server, `/${webhook.id}`), { key: token })).status, 404);
});

test('an application can have at most 20 webhooks, and the paginated list shows the newest first', async () => {
  const { body: webhooksBefore } = await server.api<WebhookPage>('GET', webhooksPath(server), { key: token });
  for (const { id } of webhooksBefore.data) await server.api('DELETE', webhooksPath(server, `/${id}`), { key: token });
  for (let n = 0; n < 20; n += 1) await createWebhook(server, token, { name: `w${n}`, url: receiver.url('/many') });
  const body = { name: 'more', url: receiver.url('/many') };
  const refusal = await server.api('POST', webhooksPath(server), { key: token, body });
  assert.deepEqual([refusal.status, refusal.body.code], [409, 'limit_reached']);
  const firstResponse = await server.api<WebhookPage>('GET', webhooksPath(server, '?limit=15'), { key: token });
  const secondResponse = await server.api<WebhookPage>(
    'GET',
    webhooksPath(server, `?cursor=${firstResponse.body.nextCursor}`),
    {
      key: token,
    },
  );
  assert.deepEqual(
    [...firstResponse.body.data, ...secondResponse.body.data].map(({ name }) => name),
    Array.from({ length: 20 }, (_, n) => `w${19 - n}`),
  );
});

test('deliveries are deleted after 30 days, and a long backlog is deleted in one cleanup run', async () => {
  const { body } = await server.api<WebhookPage>('GET', webhooksPath(server), { key: token });
  const [webhook, otherWebhook] = body.data;
  const sentDelivery = await sendTestEvent(server, token, webhook?.id ?? assert.fail('the application has no webhook'));
  await waitForDelivery(server, token, sentDelivery, ({ status }) => status === 'delivered');
  await queryRows(server, INSERT_BACKLOG, [otherWebhook?.id, server.applicationId, server.now(), BACKLOG_ROWS]);
  await server.advance(30 * 24 * HOUR_MS);
  await server.eventuallyHourly(
    'the delivery to be deleted',
    () => listDeliveries(server, token, sentDelivery.webhookId),
    all => all.every(({ id }) => id !== sentDelivery.id),
  );
  const backlogQuery = 'select from webhook_deliveries where webhook_id = $1 limit 1';
  await server.eventuallyHourly(
    'the backlog to be deleted',
    () => queryRows(server, backlogQuery, [otherWebhook?.id]),
    rows => rows.length === 0,
  );
  await eventually('the log entry that one run deleted the whole backlog', () =>
    server
      .log()
      .filter(line => line.includes('clock.forget_webhook_deliveries'))
      .some(line => Number(/"removed":(\d+)/.exec(line)?.[1]) >= BACKLOG_ROWS),
  );
});
