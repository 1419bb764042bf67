// The server is killed before, during and after the statement that records the dispatch of an invocation. Reads are run
// again, every invocation ends with a receipt, and repeating a request with its key finds the same invocation.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Invocation, InvocationPage } from '../../contract/invocations.ts';
import { verifyReceipt } from '../../sdk/index.ts';
import { LIGHT_ENGINE } from '../harness/engine.ts';
import { liftLimits } from '../harness/limits.ts';
import { agentPath, invoke, issueAgentKey } from '../harness/operations.ts';
import { openPages } from '../harness/pages.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const RESPONSE_DELAY_MS = 3_000;
const pages = await openPages({
  '/slow': (_, response) =>
    void setTimeout(() => response.end('<!doctype html><title>Slow</title>'), RESPONSE_DELAY_MS),
});
const server = await startServer({
  pages,
  env: { BERTH_ENGINE: LIGHT_ENGINE, BERTH_SLOTS: '6', BERTH_DISCONNECT_GRACE: '1' },
});
await liftLimits(server);
const { key } = await issueAgentKey(server);
const input = { url: `${pages.url}/slow`, as: 'text' };

const waitForInvocationEnd = (id: string): Promise<Invocation> =>
  eventually(
    'the invocation to end',
    async () => (await server.api<Invocation>('GET', agentPath(server, `invocations/${id}`), { key })).body,
    ({ endedAt }) => endedAt !== undefined,
  );

async function assertReceipt(invocation: Invocation): Promise<void> {
  const keys = (await server.api<Parameters<typeof verifyReceipt>[1]['keys']>('GET', '/.well-known/jwks.json')).body;
  const { receipt = '', output, attempts } = invocation;
  const claims = verifyReceipt(receipt, { keys, input, output, audience: server.applicationId });
  assert.deepEqual([claims.berth.status, claims.berth.attempts], [invocation.status, attempts]);
}

test('if the server is killed while the page is loading, the read is run again in a new session, and the old session ends', async () => {
  const startedInvocation = (
    await invoke(server, key, 'browser.content', input, { headers: { prefer: 'respond-async' } })
  ).body;
  await eventually(
    'the page to be requested',
    () => pages.hits('/slow'),
    hits => hits === 1,
  );
  await server.restart();
  const endedInvocation = await waitForInvocationEnd(startedInvocation.id);
  assert.deepEqual(
    [endedInvocation.status, endedInvocation.attempts, Object(endedInvocation.output).title],
    ['succeeded', 2, 'Slow'],
  );
  assert.notEqual(endedInvocation.sessionId, startedInvocation.sessionId);
  await assertReceipt(endedInvocation);
  await server.waitUntilEnded(startedInvocation.sessionId ?? '');
  await server.waitUntilSettled([]);
});

test('if the server is killed soon after a call was sent, repeating the call with the same idempotency key leads to exactly one invocation, which succeeds', async () => {
  for (const afterMs of [0, 15, 60, 200, 600]) {
    const headers = { 'idempotency-key': `kill after ${afterMs}`, prefer: 'respond-async' };
    const pendingInvoke = invoke(server, key, 'browser.content', input, { headers }).catch(() => undefined);
    await sleep(afterMs);
    await server.restart();
    const firstResponse = await pendingInvoke;
    const repeatedResponse = await invoke(server, key, 'browser.content', input, { headers });
    assert.ok(repeatedResponse.status === 200 || repeatedResponse.status === 202, repeatedResponse.text);
    if (firstResponse && firstResponse.status < 300) assert.equal(repeatedResponse.body.id, firstResponse.body.id);
    const endedInvocation = await waitForInvocationEnd(repeatedResponse.body.id);
    assert.equal(endedInvocation.status, 'succeeded', JSON.stringify(endedInvocation.error));
    await assertReceipt(endedInvocation);
  }
  const { body } = await server.api<InvocationPage>('GET', agentPath(server, 'invocations?limit=100'), { key });
  assert.equal(body.data.length, 6);
  assert.ok(body.data.every(({ status }) => status === 'succeeded'));
  await server.waitUntilSettled([]);
});

test('the next server completes an invocation that was running at SIGTERM', async () => {
  const { id } = (await invoke(server, key, 'browser.content', input, { headers: { prefer: 'respond-async' } })).body;
  await server.restart('SIGTERM');
  const endedInvocation = await waitForInvocationEnd(id);
  assert.equal(endedInvocation.status, 'succeeded', JSON.stringify(endedInvocation.error));
  await server.waitUntilSettled([]);
});

test('a caller waiting for a read when the service stops gets 202, and the same call later returns the result', async () => {
  const hitsBefore = pages.hits('/slow');
  const headers = { 'idempotency-key': 'while it runs' };
  const interruptedCall = invoke(server, key, 'browser.content', input, { headers });
  await eventually(
    'the page to be requested',
    () => pages.hits('/slow'),
    hits => hits > hitsBefore,
  );
  const [{ status, body, text }] = await Promise.all([interruptedCall, server.restart('SIGTERM')]);
  assert.deepEqual([status, body.status], [202, 'running'], text);
  const repeatedResponse = await invoke(server, key, 'browser.content', input, { headers });
  assert.deepEqual(
    [repeatedResponse.status, repeatedResponse.body.status, repeatedResponse.body.attempts],
    [200, 'succeeded', 2],
    repeatedResponse.text,
  );
  assert.equal(repeatedResponse.body.id, body.id);
  await server.waitUntilSettled([]);
});
