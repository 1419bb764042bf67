// Attacks through webhooks: on services that the server can reach, on other endpoints, and on other applications.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ErrorBody } from '../../contract/common.ts';
import type { Webhook, WebhookPage } from '../../contract/webhooks.ts';
import { createOwnerToken } from '../harness/limits.ts';
import { queryRows } from '../harness/other-person.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';
import {
  createWebhook,
  listDeliveries,
  Receiver,
  sendTestEvent,
  waitForDelivery,
  webhooksPath,
} from '../harness/webhooks.ts';

const RETRY_INTERVAL_MS = 5_000;

const receiver = await Receiver.open();
/** The settings of the server. A test changes them, and restarts the server to apply the change. */
const env = { ...receiver.settings, BERTH_EGRESS_HOSTS: 'moving.test=127.0.0.1' };
const server = await startServer({ clock: 'test', env });
const token = await createOwnerToken(server);

const create = (url: string) =>
  server.api<Webhook & ErrorBody>('POST', webhooksPath(server), { key: token, body: { name: 'x', url } });

test('internal addresses are refused when a webhook is created or changed, and the error contains only the rule', async () => {
  const webhook = await createWebhook(server, token, { url: receiver.url('/saved') });
  const refusedUrls: ReadonlyArray<readonly [url: string, words: RegExp]> = [
    ['https://127.0.0.1/', /rule loopback/],
    ['https://2130706433/', /rule loopback/],
    ['https://[::ffff:10.0.0.1]/', /rule private/],
    ['https://169.254.169.254/latest/meta-data/', /rule metadata/],
    ['https://localhost:5432/', /rule loopback/],
    [`${server.url}/v1/health`, /rule own_service/],
    [receiver.url('/').replace('http://', 'http://user:secret@'), /user name or password/],
    [`http://93.184.216.34/`, /https:\/\//],
    ['ftp://example.com/', /https:\/\//],
    ['https://a b/', /not valid/],
  ];
  for (const [url, words] of refusedUrls) {
    const response = await create(url);
    assert.deepEqual([response.status, response.body.code], [400, 'invalid_request'], `${url}: ${response.text}`);
    assert.match(response.body.message, words, url);
    assert.doesNotMatch(response.body.message, /ECONN|10\.0\.0\.1|secret/);
    const changeResponse = await server.api('PATCH', webhooksPath(server, `/${webhook.id}`), {
      ...{ key: token, headers: { 'if-match': '*' }, body: { url } },
    });
    assert.equal(changeResponse.status, 400, url);
  }
});

test('a delivery is refused if the host name of the webhook has a private address, even if the name was allowed when the webhook was saved', async () => {
  const webhook = await createWebhook(server, token, { url: `http://moving.test:${receiver.port}/moving` });
  await waitForDelivery(
    ...([server, token, await sendTestEvent(server, token, webhook.id)] as const),
    ({ status }) => status === 'delivered',
  );
  env.BERTH_EGRESS_HOSTS = 'moving.test=10.0.0.1';
  await server.restart();
  const sentDelivery = await sendTestEvent(server, token, webhook.id);
  const failedDelivery = await waitForDelivery(server, token, sentDelivery, ({ failure }) => failure !== undefined);
  assert.match(failedDelivery.failure ?? '', /rule private/);
  assert.doesNotMatch(failedDelivery.failure ?? '', /10\.0\.0\.1/);
  assert.equal(receiver.receivedAt('/moving').length, 1);
  env.BERTH_EGRESS_HOSTS = 'moving.test=127.0.0.1';
  await server.restart();
  await server.advance(RETRY_INTERVAL_MS);
  await receiver.waitForCount('/moving', 2);
});

test('a redirect is not followed, not even to an allowed address', async () => {
  receiver.respondTo('/redirects', response => {
    response.writeHead(307, { location: receiver.url('/elsewhere') }).end();
  });
  const webhook = await createWebhook(server, token, { url: receiver.url('/redirects') });
  const sentDelivery = await sendTestEvent(server, token, webhook.id);
  const failedDelivery = await waitForDelivery(server, token, sentDelivery, ({ failure }) => failure !== undefined);
  assert.deepEqual([failedDelivery.status, failedDelivery.answerStatus], ['waiting', 307]);
  assert.equal(receiver.receivedAt('/elsewhere').length, 0);
});

test('endpoints that never respond do not delay the endpoint of another application', async () => {
  receiver.respondTo('/slow', () => {});
  for (let n = 0; n < 12; n += 1) {
    const { id } = await createWebhook(server, token, { name: `slow ${n}`, url: receiver.url('/slow') });
    await sendTestEvent(server, token, id);
  }
  await receiver.waitForCount('/slow', 8);
  const applicationResponse = await server.api<{ id: string }>('POST', '/v1/applications', {
    key: token,
    body: { name: 'Other' },
  });
  const path = `/v1/applications/${applicationResponse.body.id}/webhooks`;
  const webhookResponse = await server.api<Webhook>('POST', path, {
    ...{ key: token, body: { name: 'quick', url: receiver.url('/quick') } },
  });
  await server.api('POST', `${path}/${webhookResponse.body.id}/test`, { key: token });
  await receiver.waitForCount('/quick', 1);
  assert.equal(
    receiver.receivedAt('/slow').length,
    8,
    'at most eight deliveries of an application are sent at the same time',
  );
  const { body } = await server.api<WebhookPage>('GET', webhooksPath(server), { key: token });
  for (const { id } of body.data) await server.api('DELETE', webhooksPath(server, `/${id}`), { key: token });
});

test('a delivery uses only the status of a response that is endless or compressed', async () => {
  receiver.respondTo('/endless', response => {
    response.writeHead(200);
    const more = (): void => {
      while (!response.destroyed) if (!response.write(Buffer.alloc(65_536))) break;
    };
    response.on('drain', more);
    more();
  });
  receiver.respondTo('/bomb', response => void response.writeHead(500, { 'content-encoding': 'gzip' }).end('x'));
  const endlessWebhook = await createWebhook(server, token, { url: receiver.url('/endless') });
  const bombWebhook = await createWebhook(server, token, { url: receiver.url('/bomb') });
  const acceptedDelivery = await sendTestEvent(server, token, endlessWebhook.id);
  await waitForDelivery(server, token, acceptedDelivery, ({ status }) => status === 'delivered');
  const refusedDelivery = await sendTestEvent(server, token, bombWebhook.id);
  const failedDelivery = await waitForDelivery(server, token, refusedDelivery, ({ failure }) => failure !== undefined);
  assert.deepEqual([failedDelivery.status, failedDelivery.answerStatus], ['waiting', 500]);
});

test('a webhook of another application is not found, and neither are its deliveries', async () => {
  const webhook = await createWebhook(server, token, { url: receiver.url('/own') });
  const sentDelivery = await sendTestEvent(server, token, webhook.id);
  const applicationResponse = await server.api<{ id: string }>('POST', '/v1/applications', {
    key: token,
    body: { name: 'Foreign' },
  });
  const foreignPath = (rest: string) => `/v1/applications/${applicationResponse.body.id}/webhooks/${webhook.id}${rest}`;
  const requests: ReadonlyArray<readonly [method: string, rest: string, body?: object]> = [
    ['GET', ''],
    ['PATCH', '', { status: 'disabled' }],
    ['DELETE', ''],
    ['POST', '/rotate-key'],
    ['POST', '/test'],
    ['GET', '/deliveries'],
    ['GET', `/deliveries/${sentDelivery.id}`],
    ['POST', `/deliveries/${sentDelivery.id}/redeliver`],
  ];
  for (const [method, rest, body] of requests) {
    const response = await server.api(method, foreignPath(rest), {
      ...{ key: token, headers: { 'if-match': '*' } },
      ...(body ? { body } : {}),
    });
    assert.deepEqual([response.status, response.body.code], [404, 'not_found'], `${method} ${rest}`);
  }
  const secondWebhook = await createWebhook(server, token, { url: receiver.url('/second') });
  const crossedPath = webhooksPath(server, `/${secondWebhook.id}/deliveries/${sentDelivery.id}`);
  assert.equal((await server.api('GET', crossedPath, { key: token })).status, 404);
  assert.equal((await server.api('POST', `${crossedPath}/redeliver`, { key: token })).status, 404);
  assert.equal((await listDeliveries(server, token, webhook.id)).length, 1);
});

test('the sealed key of a webhook cannot sign messages when moved to the row of another webhook', async () => {
  const victim = await createWebhook(server, token, { url: receiver.url('/victim') });
  const thief = await createWebhook(server, token, { url: receiver.url('/thief') });
  const moveQuery = 'update webhooks set sealed_key = (select sealed_key from webhooks where id = $2) where id = $1';
  await queryRows(server, moveQuery, [thief.id, victim.id]);
  await sendTestEvent(server, token, thief.id);
  const isOfThief = (line: string): boolean => line.includes('webhook.lane_failed') && line.includes(thief.id);
  await eventually('the moved key to be refused', () => server.log().some(isOfThief));
  assert.deepEqual(receiver.receivedAt('/thief'), []);
  await sendTestEvent(server, token, victim.id);
  await receiver.waitForCount('/victim', 1);
  await server.api('DELETE', webhooksPath(server, `/${thief.id}`), { key: token });
});
