// Events of an application that belong to no session: operations that are published and withdrawn, and calls that end.
// The feed, its stream and webhooks deliver these events and the events of sessions in a single order.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SessionEvent, SessionEventPage } from '../../contract/events.ts';
import { ACTION_SCOPES, ActionAgent } from '../harness/actions.ts';
import { cancelOrderOperation, Owner } from '../harness/configured.ts';
import { LIGHT_ENGINE } from '../harness/engine.ts';
import { createOwnerToken } from '../harness/limits.ts';
import { invoke, issueAgentKey } from '../harness/operations.ts';
import { createOtherApplicationKey } from '../harness/other-application.ts';
import { startServer } from '../harness/server.ts';
import { listEvents } from '../harness/session-events.ts';
import { eventually } from '../harness/until.ts';
import { openUpstream, sendJson } from '../harness/upstream.ts';
import { createWebhook, Receiver } from '../harness/webhooks.ts';

const DAY_MS = 24 * 3_600_000;
const FEED = '/v1/browsers/events';
const receiver = await Receiver.open();
const upstream = await openUpstream();
const allowedAddresses = [`127.0.0.1/32:${receiver.port}`, `127.0.0.1/32:${upstream.port}`].join(',');
const env = { ...receiver.settings, BERTH_EGRESS_ALLOW: allowedAddresses };
const server = await startServer({ clock: 'test', env: { ...env, BERTH_ENGINE: LIGHT_ENGINE } });
const owner = await Owner.open(server);
const { id: keyId, key } = await issueAgentKey(server, { grants: [{ operationId: 'orders.cancel' }] });

const readFeed = async (query = '', by = server.key): Promise<readonly SessionEvent[]> =>
  (await server.api<SessionEventPage>('GET', `${FEED}?limit=1000${query}`, { key: by })).body.data;
const call = (orderId: string) =>
  invoke(server, key, 'orders.cancel', { orderId }, { headers: { 'idempotency-key': orderId } });

test('publishing an operation and completing a call are recorded as events without a session, in order', async () => {
  await createWebhook(server, await createOwnerToken(server), {
    url: receiver.url('/calls'),
    eventTypes: ['operation.published', 'operation.withdrawn', 'invocation.succeeded', 'invocation.ambiguous'],
  });
  await owner.publish('orders.cancel', cancelOrderOperation(upstream));
  upstream.respondTo('/orders/good/', (_, response) => sendJson(response, 200, { state: 'cancelled' }));
  upstream.respondTo('/orders/bad/', (_, response) => sendJson(response, 404, {}));
  upstream.respondTo('/orders/odd/', (_, response) => sendJson(response, 503, {}));
  const session = await server.createSession();
  await server.release(session.id);
  const endedCalls = [];
  for (const orderId of ['good', 'bad', 'odd', 'good']) endedCalls.push((await call(orderId)).body);
  await owner.send('POST', 'operations/orders.cancel/withdraw');
  const { id: revokedId } = await issueAgentKey(server, {});
  await owner.send('DELETE', `agent-keys/${revokedId}`);

  const events = await readFeed();
  const applicationEvents = events.filter(({ sessionId }) => sessionId === undefined);
  assert.deepEqual(
    applicationEvents.map(({ type }) => type),
    [
      ...['operation.published', 'invocation.succeeded', 'invocation.failed', 'invocation.ambiguous'],
      ...['operation.withdrawn', 'agent_key.revoked'],
    ],
  );
  assert.deepEqual(applicationEvents.at(-1)?.detail, { keyId: revokedId });
  const ids = events.map(({ id }) => id);
  assert.deepEqual(ids, [...ids].sort());
  assert.ok(
    events.findIndex(({ type }) => type === 'session.ended') <
      events.findIndex(({ type }) => type === 'invocation.failed'),
  );
  const [published, succeeded, failed] = applicationEvents;
  assert.deepEqual(published?.detail, { operationId: 'orders.cancel', kind: 'http', revision: 1 });
  assert.equal(published.actor.kind, 'account');
  const detail = { operationId: 'orders.cancel', revision: 1, attempts: 1 };
  assert.deepEqual(succeeded?.detail, { ...detail, invocationId: endedCalls[0]?.id });
  assert.deepEqual(succeeded.actor, { kind: 'agentKey', id: keyId });
  assert.deepEqual(failed?.detail, { ...detail, invocationId: endedCalls[1]?.id, code: 'upstream_failed' });

  const types = (await readFeed('&type=invocation.failed,operation.withdrawn')).map(({ type }) => type);
  assert.deepEqual(types, ['invocation.failed', 'operation.withdrawn']);
  assert.ok((await listEvents(server, session.id)).every(({ sessionId }) => sessionId === session.id));
  const deliveries = await receiver.waitForCount('/calls', 4);
  assert.deepEqual(
    deliveries.map(({ message }) => message.type),
    ['operation.published', 'invocation.succeeded', 'invocation.ambiguous', 'operation.withdrawn'],
  );
  assert.deepEqual(deliveries[1]?.message.data, { applicationId: server.applicationId, ...succeeded });
});

test('changes to an Action are recorded as events with the digest, but without the input or the reason', async () => {
  await createWebhook(server, await createOwnerToken(server), {
    ...{ url: receiver.url('/actions'), eventTypes: ['action.prepared', 'action.cancelled', 'action.expired'] },
  });
  await owner.publish('orders.hold', cancelOrderOperation(upstream, { approval: 'member' }));
  const actionKey = await issueAgentKey(server, { scopes: ACTION_SCOPES, grants: [{ operationId: 'orders.hold' }] });
  const agent = new ActionAgent(server, actionKey.key);
  const [one, other, last] = await Promise.all(
    ['secret-1', 'secret-2', 'secret-3'].map(orderId =>
      agent.prepareSuccessfully('orders.hold', { input: { orderId }, reason: `because ${orderId}`, expiresIn: 60 }),
    ),
  );
  assert.ok(one && other && last);
  await agent.cancel(one.jobId);
  await owner.send('POST', 'operations/orders.hold/withdraw');
  await owner.send('POST', 'operations/orders.hold/publish');
  const lateAction = await agent.prepareSuccessfully('orders.hold', { input: { orderId: 'secret-4' }, expiresIn: 60 });
  await server.advance(61_000);
  const actionEvents = await eventually(
    'the Action to expire',
    () => readFeed('&type=action.prepared,action.cancelled,action.expired'),
    events => events.some(({ type }) => type === 'action.expired'),
  );
  const eventsOfJob = ({ jobId }: { jobId: string }) => actionEvents.filter(({ detail }) => detail.jobId === jobId);
  const detailOf = (job: { jobId: string; digest: string }) => ({
    ...{ jobId: job.jobId, operationId: 'orders.hold', digest: job.digest },
  });
  assert.deepEqual(
    eventsOfJob(one).map(({ type, actor, detail }) => [type, actor, detail]),
    [
      ['action.prepared', { kind: 'agentKey', id: actionKey.id }, { ...detailOf(one), approver: 'member' }],
      ['action.cancelled', { kind: 'agentKey', id: actionKey.id }, { ...detailOf(one), why: 'caller' }],
    ],
  );
  for (const withdrawn of [other, last])
    assert.deepEqual(eventsOfJob(withdrawn)[1]?.detail, { ...detailOf(withdrawn), why: 'withdrawn' });
  assert.deepEqual(
    eventsOfJob(lateAction).map(({ type, actor }) => [type, actor.kind]),
    [
      ['action.prepared', 'agentKey'],
      ['action.expired', 'clock'],
    ],
  );
  assert.doesNotMatch(JSON.stringify(actionEvents), /secret-|because/);
  const deliveries = await receiver.waitForCount('/actions', 8);
  assert.deepEqual(
    deliveries.map(({ message }) => message.data.detail),
    actionEvents.map(({ detail }) => detail),
  );
});

test('events of an application are hidden from other applications, and contain neither input nor output', async () => {
  assert.deepEqual(await readFeed('', await createOtherApplicationKey(server)), []);
  assert.doesNotMatch(JSON.stringify(await readFeed()), /"cancelled"|good|127\.0\.0\.1/);
});

test('a stream delivers the event of a completed call', async () => {
  await owner.publish('orders.cancel', cancelOrderOperation(upstream));
  const abortController = new AbortController();
  const headers = { authorization: `Bearer ${server.key}`, accept: 'text/event-stream' };
  const streamResponse = await fetch(`${server.url}${FEED}?type=invocation.succeeded`, {
    headers,
    signal: abortController.signal,
  });
  assert.ok(streamResponse.body);
  assert.equal((await call('good again')).body.status, 'succeeded');
  let text = '';
  for await (const part of streamResponse.body.pipeThrough(new TextDecoderStream())) {
    text += part;
    if (text.includes('invocation.succeeded')) break;
  }
  abortController.abort();
  assert.match(text, /event: ?invocation\.succeeded/);
});

test('events are kept after a restart of the server, and are removed after 31 days', async () => {
  const eventsBefore = await readFeed('&type=invocation.succeeded');
  await server.restart();
  assert.deepEqual(await readFeed('&type=invocation.succeeded'), eventsBefore);
  await server.advance(32 * DAY_MS);
  await server.eventuallyHourly(
    'the events to be removed',
    () => readFeed('&type=invocation.succeeded'),
    ({ length }) => length === 0,
  );
});
