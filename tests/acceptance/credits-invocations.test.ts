// Credit for invocations: the hold of a call, the capture when the call ends, its receipt, the limit on its cost, and
// refusals.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CreditEntryPage, Credits, CreditUsage } from '../../contract/credits.ts';
import type { Invocation } from '../../contract/invocations.ts';
import { verifyReceipt } from '../../sdk/index.ts';
import { LIGHT_ENGINE } from '../harness/engine.ts';
import { createOwnerToken, liftLimits } from '../harness/limits.ts';
import { agentPath, invoke, issueAgentKey } from '../harness/operations.ts';
import { openPages } from '../harness/pages.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const RATE = 1000;
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
const server = await startServer({
  pages,
  env: { BERTH_RATE_BROWSER_SECOND: String(RATE), BERTH_SLOTS: '6', BERTH_ENGINE: LIGHT_ENGINE },
});
await liftLimits(server);
const token = await createOwnerToken(server);
const { id: keyId, key } = await issueAgentKey(server, {
  scopes: ['browsers:read', 'browsers:write', 'browsers:connect', 'operations:invoke', 'invocations:read'],
});
const CREDITS = `/v1/applications/${server.applicationId}/credits`;
const input = { url: `${pages.url}/plain`, as: 'text' };
const slowInput = { url: `${pages.url}/slow`, as: 'text' };

const readCredits = async (): Promise<Credits> => (await server.api<Credits>('GET', CREDITS, { key: token })).body;

const grant = async (microCredits: number): Promise<void> => {
  const { code, stderr } = await server.berth(
    ...['credits', 'grant', '-', (microCredits / 1_000_000).toFixed(6), '--reason', 'for the test'],
  );
  assert.equal(code, 0, stderr);
};

test('a call without credit is refused with 402 and not started, and its idempotency key can be used again', async () => {
  const headers = { 'idempotency-key': 'poor' };
  const refusal = await invoke(server, key, 'browser.content', input, { headers });
  assert.deepEqual([refusal.status, refusal.body.code], [402, 'insufficient_credit'], refusal.text);
  const details = Object(refusal.body).details;
  assert.deepEqual(details, { required: HOLD, available: 0, unit: 'microcredit' });
  assert.equal(pages.hits('/plain'), 0);
  await grant(3 * HOLD);
  const { status, body, text } = await invoke(server, key, 'browser.content', input, { headers });
  assert.deepEqual([status, body.status], [200, 'succeeded'], text);
});

test('only three of six concurrent calls are admitted if the credit covers three calls', async () => {
  await grant(3 * HOLD - (await readCredits()).available);
  const headers = { prefer: 'respond-async' };
  const responses = await Promise.all(
    Array.from({ length: 6 }, () => invoke(server, key, 'browser.content', slowInput, { headers })),
  );
  const statuses = responses.map(({ status }) => status).sort();
  assert.deepEqual(statuses, [202, 202, 202, 402, 402, 402]);
  for (const { status, body } of responses)
    if (status === 202)
      await server.api<Invocation>('POST', agentPath(server, `invocations/${body.id}/cancel`), { key });
  const { available } = await eventually('all holds to be released', readCredits, ({ reserved }) => reserved === 0);
  assert.ok(available > 0 && available < 3 * HOLD);
  await server.waitUntilSettled();
  await grant(1_000_000);
});

test('a successful call captures the cost of its browser seconds, and its receipt contains the same cost', async () => {
  const creditsBefore = await readCredits();
  const { body } = await invoke(server, key, 'browser.content', input);
  const { cost, receipt = '' } = body;
  assert.equal(body.status, 'succeeded');
  assert.deepEqual([cost.reserved, cost.unit], [HOLD, 'microcredit']);
  assert.ok(cost.meters.browserSeconds >= 1 && cost.meters.browserSeconds < 60);
  assert.ok(cost.meters.egressBytes > 0);
  assert.equal(cost.captured, cost.meters.browserSeconds * RATE);
  const keys = (await server.api<Parameters<typeof verifyReceipt>[1]['keys']>('GET', '/.well-known/jwks.json')).body;
  assert.deepEqual(Object(verifyReceipt(receipt, { keys }).berth).cost, cost);
  const creditsAfter = await eventually('the session to hold nothing', readCredits, ({ reserved }) => reserved === 0);
  assert.equal(creditsBefore.balance - creditsAfter.balance, cost.captured, 'the session is not charged in addition');
});

test('a call that fails after it has started is charged for its metered usage', async () => {
  const { body } = await invoke(server, key, 'browser.content', { url: `${pages.url}/missing` });
  assert.equal(body.error?.code, 'page_failed');
  assert.equal(body.cost.captured, body.cost.meters.browserSeconds * RATE);
  assert.ok(body.cost.captured > 0);
});

test('a call in an existing session holds no credit, because the session itself is charged', async () => {
  const { id } = await server.createSession({ keepAlive: true }, key);
  const heldCredits = await readCredits();
  const { body, text } = await invoke(server, key, 'browser.content', { sessionId: id, as: 'text' });
  assert.equal(body.status, 'succeeded', text);
  assert.deepEqual([body.cost.reserved, body.cost.captured], [0, 0]);
  assert.equal((await readCredits()).reserved, heldCredits.reserved);
  await server.release(id);
});

test('maxCost limits the hold, and a call that reaches maxCost fails with cost_limit and costs no more than maxCost', async () => {
  const { body, text } = await invoke(server, key, 'browser.content', slowInput, {
    extraFields: { maxCost: 2 * RATE },
  });
  assert.equal(body.status, 'failed', text);
  assert.equal(body.error?.code, 'cost_limit');
  assert.deepEqual([body.cost.reserved, body.cost.captured], [2 * RATE, 2 * RATE]);
  await eventually('all holds to be released', readCredits, ({ reserved }) => reserved === 0);
});

test('a write that reaches maxCost fails with cost_limit, and is charged for its usage', async () => {
  const { key: writing } = await issueAgentKey(server, { grants: [{ operationId: 'browser.steps' }] });
  const { body, text } = await invoke(
    ...([server, writing, 'browser.steps', { url: input.url, steps: [{ do: 'sleep', ms: 10_000 }] }] as const),
    { headers: { 'idempotency-key': 'costly' }, extraFields: { maxCost: 2 * RATE } },
  );
  assert.deepEqual([body.status, body.error?.code], ['failed', 'cost_limit'], text);
  assert.deepEqual([body.cost.reserved, body.cost.captured], [2 * RATE, 2 * RATE]);
  await eventually('all holds to be released', readCredits, ({ reserved }) => reserved === 0);
});

for (const [maxCost, status] of [
  [RATE - 1, 400],
  [0, 400],
  [-1, 400],
  [1.5, 400],
  ['1000', 400],
  [2 ** 53, 400],
] as const)
  test(`a maxCost of ${JSON.stringify(maxCost)} is refused`, async () => {
    const result = await invoke(server, key, 'browser.content', input, { extraFields: { maxCost } });
    assert.deepEqual([result.status, result.body.code], [status, 'invalid_request'], result.text);
  });

test('a call that is refused after admission releases its hold', async () => {
  const creditsBefore = await readCredits();
  const { status } = await invoke(server, key, 'browser.content', {
    ...{ url: input.url, contextId: '0192f7c2-6a64-7a0e-9a53-0f1c3a2f7d10' },
  });
  assert.equal(status, 400);
  const { available, reserved } = await readCredits();
  assert.deepEqual({ available, reserved }, { available: creditsBefore.available, reserved: 0 });
  const { body } = await server.api<CreditEntryPage>('GET', `${CREDITS}/entries?limit=2`, { key: token });
  assert.deepEqual(
    body.data.map(({ type }) => type),
    ['release', 'hold'],
  );
});

test('a call that was running when the server was killed is restarted with its original hold, which is released at the end', async () => {
  await grant(1_000_000);
  const creditsBefore = await readCredits();
  const hits = pages.hits('/slow');
  const { status, body, text } = await invoke(server, key, 'browser.content', slowInput, {
    headers: { prefer: 'respond-async' },
  });
  assert.equal(status, 202, text);
  assert.equal(creditsBefore.available - (await readCredits()).available, HOLD);
  await eventually('the page to be requested', () => pages.hits('/slow') > hits);
  await server.restart('SIGKILL');
  const path = agentPath(server, `invocations/${body.id}`);
  const read = async (): Promise<Invocation> => (await server.api<Invocation>('GET', path, { key })).body;
  await eventually('the invocation to run again', read, ({ attempts }) => attempts === 2);
  await server.api('POST', `${path}/cancel`, { key });
  const endedInvocation = await eventually('the invocation to end', read, ({ endedAt }) => endedAt !== undefined);
  const creditsAfter = await eventually('all holds to be released', readCredits, ({ reserved }) => reserved === 0);
  assert.equal(creditsBefore.available - creditsAfter.available, endedInvocation.cost.captured);
});

test('the usage reports by operation and by key contain calls, seconds and cost', async () => {
  const read = async (by: string): Promise<CreditUsage['data']> =>
    (await server.api<CreditUsage>('GET', `${CREDITS}/usage?by=${by}`, { key: token })).body.data;
  const [operation] = await read('operation');
  assert.equal(operation?.of, 'browser.content');
  assert.ok(operation.calls > 3 && operation.cost > 0 && operation.browserSeconds > 0 && operation.egressBytes > 0);
  const usageOfKey = (await read('key')).find(({ of }) => of === keyId);
  assert.ok(usageOfKey && usageOfKey.calls === operation.calls && usageOfKey.cost >= operation.cost);
});
