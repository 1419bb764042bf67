// Prices of operations: held at admission, and captured in the transaction that ends a successful call. After any other
// end, the price is released or remains held.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CreditEntryPage, Credits, CreditUsage } from '../../contract/credits.ts';
import type { AgentOperationList } from '../../contract/invocations.ts';
import { cancelOrderOperation, Owner } from '../harness/configured.ts';
import { LIGHT_ENGINE } from '../harness/engine.ts';
import { createOwnerToken, liftLimits } from '../harness/limits.ts';
import { agentPath, invoke, issueAgentKey } from '../harness/operations.ts';
import { openPages } from '../harness/pages.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';
import { openUpstream, sendJson } from '../harness/upstream.ts';

const RATE = 1000;
const PRICE = 700;
/**
 * The credit that is held for a call: the cost of its time limit of 30 seconds, and of 60 seconds for the start of the
 * browser.
 */
const HOLD = 90 * RATE;

const SLOW_DELAY_MS = 30_000;
const pages = await openPages({
  '/plain': '<!doctype html><title>Plain</title>',
  '/slow': (_, response) => void setTimeout(() => response.end('<!doctype html><title>Slow</title>'), SLOW_DELAY_MS),
  '/missing': (_, response) => void response.writeHead(404, { 'content-type': 'text/html' }).end('<title>No</title>'),
});
const upstream = await openUpstream();
const closedUpstream = await openUpstream();
closedUpstream.close();
const hosts = [upstream.host, closedUpstream.host, new URL(pages.url).host];
const allowedAddresses = hosts.map(host => host.replace(':', '/32:')).join(',');
const server = await startServer({
  pages,
  env: {
    BERTH_RATE_BROWSER_SECOND: String(RATE),
    BERTH_SLOTS: '3',
    BERTH_EGRESS_ALLOW: allowedAddresses,
    BERTH_ENGINE: LIGHT_ENGINE,
  },
});
await liftLimits(server);
const owner = await Owner.open(server);
const token = await createOwnerToken(server);
const { key } = await issueAgentKey(server, {
  scopes: ['browsers:read', 'browsers:write', 'browsers:connect', 'operations:invoke', 'invocations:read'],
  grants: ['browser.content', 'orders.cancel', 'orders.read', 'orders.gone'].map(operationId => ({ operationId })),
});
const CREDITS = `/v1/applications/${server.applicationId}/credits`;
const readCredits = async (): Promise<Credits> => (await server.api<Credits>('GET', CREDITS, { key: token })).body;
const grantResult = await server.operate('credits', 'grant', '-', '10', '--reason', 'for the test');
assert.equal(grantResult.code, 0, grantResult.stderr);
const overlayResponse = await owner.configure('browser.content', { price: { microCredits: PRICE } }, '*');
assert.equal(overlayResponse.status, 200, overlayResponse.text);

const input = { url: `${pages.url}/plain`, as: 'text' };
let callCount = 0;
const callOrder = (id: string, orderId: string, extraFields: object = {}) => {
  callCount += 1;
  return invoke(server, key, id, { orderId }, { headers: { 'idempotency-key': `call ${callCount}` }, extraFields });
};
const priceSettings = { price: { microCredits: PRICE } };
await owner.publish('orders.cancel', cancelOrderOperation(upstream, priceSettings));
await owner.publish('orders.read', {
  ...cancelOrderOperation(upstream, { effect: 'read', ...priceSettings }),
  binding: { method: 'GET', url: `${upstream.url}/orders/{orderId}` },
});
await owner.publish('orders.gone', cancelOrderOperation(closedUpstream, priceSettings));
for (const path of ['/orders/refused', '/orders/broken'])
  upstream.respondTo(path, (_, response) => sendJson(response, path.endsWith('refused') ? 409 : 500, {}));

const waitForRelease = () => eventually('all holds to be released', readCredits, ({ reserved }) => reserved === 0);

test('a successful call of a built-in operation captures its price and its metered usage', async () => {
  const creditsBefore = await readCredits();
  const { body, text } = await invoke(server, key, 'browser.content', input);
  assert.equal(body.status, 'succeeded', text);
  assert.equal(body.cost.reserved, HOLD + PRICE);
  assert.equal(body.cost.captured, body.cost.meters.browserSeconds * RATE + PRICE);
  const creditsAfter = await waitForRelease();
  assert.equal(creditsBefore.balance - creditsAfter.balance, body.cost.captured);
});

test('a failed call of a built-in operation captures its metered usage, but not its price', async () => {
  const { body } = await invoke(server, key, 'browser.content', { url: `${pages.url}/missing` });
  assert.equal(body.error?.code, 'page_failed');
  assert.ok(body.cost.captured > 0);
  assert.equal(body.cost.captured, body.cost.meters.browserSeconds * RATE);
});

test('a call in an existing session holds and captures only its price', async () => {
  const { id } = await server.createSession({ keepAlive: true }, key);
  const { body, text } = await invoke(server, key, 'browser.content', { sessionId: id, as: 'text' });
  assert.equal(body.status, 'succeeded', text);
  assert.deepEqual([body.cost.reserved, body.cost.captured], [PRICE, PRICE]);
  await server.release(id);
  await waitForRelease();
});

test('maxCost limits the sum of price and metered usage, and a maxCost that does not cover the price and one second is refused', async () => {
  const slowInput = { url: `${pages.url}/slow` };
  const { body, text } = await invoke(server, key, 'browser.content', slowInput, {
    extraFields: { maxCost: 2 * RATE + PRICE },
  });
  assert.equal(body.error?.code, 'cost_limit', text);
  assert.equal(body.cost.reserved, 2 * RATE + PRICE);
  assert.ok(body.cost.captured <= 2 * RATE + PRICE, String(body.cost.captured));
  const refusal = await invoke(server, key, 'browser.content', input, { extraFields: { maxCost: RATE + PRICE - 1 } });
  assert.deepEqual([refusal.status, refusal.body.code], [400, 'invalid_request'], refusal.text);
  await waitForRelease();
});

test('the daily cost limit of a key counts the holds of running calls and the actual cost of ended calls', async () => {
  const limitedKey = await issueAgentKey(server, {
    grants: [
      { operationId: 'orders.read', maxCostPerDay: 3 * PRICE - 1 },
      { operationId: 'browser.content', maxCostPerDay: HOLD + PRICE },
    ],
  });
  const reads = Array.from({ length: 5 }, () => invoke(server, limitedKey.key, 'orders.read', { orderId: 'A-1' }));
  const responses = await Promise.all(reads);
  assert.deepEqual(responses.map(({ status }) => status).sort(), [200, 200, 429, 429, 429]);
  const refusal = responses.find(({ status }) => status === 429) ?? assert.fail();
  assert.equal(refusal.body.code, 'spend_limit');
  const { limit, used, required } = Object(Object(refusal.body).details);
  assert.deepEqual([limit, used, required], [3 * PRICE - 1, 2 * PRICE, PRICE]);
  assert.ok(Number(refusal.headers['retry-after']) > 0);
  const firstResponse = await invoke(server, limitedKey.key, 'browser.content', input);
  assert.equal(firstResponse.body.status, 'succeeded', firstResponse.text);
  const secondResponse = await invoke(server, limitedKey.key, 'browser.content', input);
  assert.deepEqual(
    [secondResponse.status, secondResponse.body.code],
    [429, 'spend_limit'],
    'the hold exceeds the rest of the limit',
  );
  const remainingCost = HOLD + PRICE - firstResponse.body.cost.captured;
  const { body } = await server.api<AgentOperationList>('GET', agentPath(server, 'operations'), {
    key: limitedKey.key,
  });
  const remainingCosts = body.data.map(({ id, grant }) => [id, grant.remainingCostToday]);
  assert.deepEqual(remainingCosts, [
    ['browser.content', remainingCost],
    ['orders.read', PRICE - 1],
  ]);
  const thirdResponse = await invoke(server, limitedKey.key, 'browser.content', input, {
    extraFields: { maxCost: remainingCost },
  });
  assert.equal(thirdResponse.body.status, 'succeeded', thirdResponse.text);
  await waitForRelease();
});

test('a call is charged the price at the time of its admission', async () => {
  const slowInput = { url: `${pages.url}/slow`, timeoutMs: 3000, acceptStatus: [] };
  const runningCall = invoke(server, key, 'browser.content', slowInput);
  await eventually('the price to be held', readCredits, ({ reserved }) => reserved > 0);
  const priceResponse = await owner.configure('browser.content', { price: { microCredits: 5 * PRICE } }, '*');
  assert.equal(priceResponse.status, 200, priceResponse.text);
  const { body } = await runningCall;
  assert.equal(body.cost.reserved % RATE, PRICE, 'the price at the start of the call applies');
  await owner.configure('browser.content', priceSettings, '*');
  await waitForRelease();
});

for (const [what, id, orderId, status, captured] of [
  ['a successful write costs the price', 'orders.cancel', 'A-1', 'succeeded', PRICE],
  ['a read that the service refuses costs nothing', 'orders.read', 'refused', 'failed', 0],
  ['a read to which the service returns an error costs nothing', 'orders.read', 'broken', 'failed', 0],
  ['a write that the service refuses costs nothing', 'orders.cancel', 'refused', 'failed', 0],
  ['a write that was not sent costs nothing', 'orders.gone', 'A-1', 'failed', 0],
] as const)
  test(`after the price of a call of an HTTP operation is held, ${what}`, async () => {
    const creditsBefore = await readCredits();
    const { body, text } = await callOrder(id, orderId);
    assert.equal(body.status, status, text);
    assert.deepEqual([body.cost.reserved, body.cost.captured], [PRICE, captured]);
    const creditsAfter = await readCredits();
    assert.deepEqual([creditsBefore.balance - creditsAfter.balance, creditsAfter.reserved], [captured, 0]);
    const { body: entries } = await server.api<CreditEntryPage>('GET', `${CREDITS}/entries?limit=2`, { key: token });
    assert.deepEqual(
      entries.data.map(({ type }) => type),
      [captured > 0 ? 'capture' : 'release', 'hold'],
    );
  });

test('usage by key includes a key that has calls but no sessions, and omits a key without calls', async () => {
  const { id } = await issueAgentKey(server, { name: 'unused', grants: [{ operationId: 'orders.read' }] });
  const one = await issueAgentKey(server, { name: 'reads only', grants: [{ operationId: 'orders.read' }] });
  await invoke(server, one.key, 'orders.read', { orderId: 'A-1' });
  const { body } = await server.api<CreditUsage>('GET', `${CREDITS}/usage?by=key`, { key: token });
  const { name, calls, cost } = body.data.find(({ of }) => of === one.id) ?? assert.fail();
  assert.deepEqual([name, calls, cost], ['reads only', 1, PRICE]);
  assert.ok(body.data.every(({ of, name }) => of !== id && name !== undefined));
});

test('a maxCost below the price of an HTTP operation is refused, and no request is sent', async () => {
  const requestsBefore = upstream.receivedRequests().length;
  const { status, body, text } = await callOrder('orders.cancel', 'A-2', { maxCost: PRICE - 1 });
  assert.deepEqual([status, body.code], [400, 'invalid_request'], text);
  assert.equal(upstream.receivedRequests().length, requestsBefore);
});

test('the price of a write whose effect is unknown stays held', async () => {
  const creditsBefore = await readCredits();
  const { body, text } = await callOrder('orders.cancel', 'broken');
  assert.deepEqual([body.status, body.cost.captured], ['ambiguous', 0], text);
  const creditsAfter = await readCredits();
  assert.deepEqual(
    [creditsAfter.reserved - creditsBefore.reserved, creditsAfter.balance],
    [PRICE, creditsBefore.balance],
  );
  const held = creditsAfter.reservations.find(({ purpose }) => purpose.id === body.id);
  const days = (Date.parse(held?.expiresAt ?? '') - Date.parse(body.endedAt ?? '')) / 86_400_000;
  assert.equal(Math.round(days), 30);
});
