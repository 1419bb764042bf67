// Operations that an application configures: revisions, publishing, overlays of built-in operations, and HTTP calls by
// agents.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AuditPage } from '../../contract/audit.ts';
import type { ConfiguredOperation, ConfiguredOperationPage } from '../../contract/configured-operations.ts';
import type { AgentOperationList, Invocation, InvocationPage } from '../../contract/invocations.ts';
import { cancelOrderOperation, Owner } from '../harness/configured.ts';
import { liftLimits } from '../harness/limits.ts';
import { agentPath, invoke, issueAgentKey } from '../harness/operations.ts';
import { createOtherApplicationKey } from '../harness/other-application.ts';
import { startServer } from '../harness/server.ts';
import { openUpstream, sendJson } from '../harness/upstream.ts';

const upstream = await openUpstream();
const closedUpstream = await openUpstream();
const allowedAddresses = [upstream, closedUpstream].map(({ host }) => host.replace(':', '/32:')).join(',');
const server = await startServer({ env: { BERTH_WARM: '0', BERTH_EGRESS_ALLOW: allowedAddresses } });
await liftLimits(server);
const owner = await Owner.open(server);
const GRANTED_IDS = ['orders.cancel', 'orders.read', 'orders.list', 'orders.flaky', 'orders.other', 'browser.pdf'];
const { key } = await issueAgentKey(server, { grants: GRANTED_IDS.map(operationId => ({ operationId })) });
let callCount = 0;
const call = (id: string, input: object, headers: Record<string, string> = {}) => {
  callCount += 1;
  return invoke(server, key, id, input, { headers: { 'idempotency-key': `call ${callCount}`, ...headers } });
};
const readOrderOperation = (more: { binding?: object; [field: string]: unknown } = {}) => ({
  ...cancelOrderOperation(upstream, { effect: 'read', ...more }),
  binding: { method: 'GET', url: `${upstream.url}/orders/{orderId}`, ...more.binding },
});

test('an operation can be configured, published, called, changed and withdrawn', async () => {
  const createResponse = await owner.configure('orders.cancel', cancelOrderOperation(upstream));
  assert.equal(createResponse.status, 201, createResponse.text);
  assert.deepEqual(
    [createResponse.body.revision, createResponse.body.status, createResponse.headers.etag],
    [1, 'draft', '"1"'],
  );
  assert.match(createResponse.body.digest, /^sha256:[0-9a-f]{64}$/);
  assert.equal((await call('orders.cancel', { orderId: 'A-1' })).status, 404);

  const publishResponse = await owner.send<ConfiguredOperation>('POST', 'operations/orders.cancel/publish');
  assert.deepEqual(
    [publishResponse.status, publishResponse.body.status, publishResponse.body.publishedRevision],
    [200, 'published', 1],
  );
  upstream.respondTo('/orders/A-1/cancel', (_, response) => sendJson(response, 200, { state: 'cancelled' }));
  const callResponse = await call('orders.cancel', { orderId: 'A-1', reason: 'late' });
  assert.equal(callResponse.status, 200, callResponse.text);
  assert.deepEqual([callResponse.body.status, callResponse.body.output], ['succeeded', { state: 'cancelled' }]);
  assert.deepEqual([callResponse.body.operationRevision, callResponse.body.attempts], [1, 1]);
  const [sentRequest] = upstream.receivedRequests('/orders/A-1/');
  assert.deepEqual([sentRequest?.method, sentRequest?.headers['content-type']], ['POST', 'application/json']);
  assert.deepEqual(JSON.parse(sentRequest?.body ?? ''), { orderId: 'A-1', reason: 'late' });

  assert.equal((await owner.configure('orders.cancel', cancelOrderOperation(upstream))).status, 428);
  assert.equal((await owner.configure('orders.cancel', cancelOrderOperation(upstream), '"7"')).status, 412);
  const unchangedResponse = await owner.configure('orders.cancel', cancelOrderOperation(upstream), '"1"');
  assert.deepEqual([unchangedResponse.status, unchangedResponse.body.revision], [200, 1]);
  const priceResponse = await owner.configure(
    'orders.cancel',
    cancelOrderOperation(upstream, { price: { microCredits: 5 } }),
    '"1"',
  );
  assert.deepEqual([priceResponse.body.revision, priceResponse.body.digest], [2, createResponse.body.digest]);
  const titleResponse = await owner.configure(
    'orders.cancel',
    cancelOrderOperation(upstream, { title: 'Stop an order' }),
    '"2"',
  );
  assert.deepEqual(
    [titleResponse.body.revision, titleResponse.body.publishedRevision, titleResponse.body.status],
    [3, 1, 'published'],
  );
  assert.notEqual(titleResponse.body.digest, createResponse.body.digest);
  const firstRevisionResponse = await owner.send<ConfiguredOperation>('GET', 'operations/orders.cancel?revision=1');
  assert.deepEqual([firstRevisionResponse.body.revision, firstRevisionResponse.body.title], [1, 'Cancel an order']);
  assert.equal((await owner.send('GET', 'operations/orders.cancel?revision=9')).status, 404);

  const agentResponse = await server.api<{ revision: number; title: string }>(
    'GET',
    agentPath(server, 'operations/orders.cancel'),
    { key },
  );
  assert.deepEqual([agentResponse.body.revision, agentResponse.body.title], [1, 'Cancel an order']);
  assert.doesNotMatch(agentResponse.text, /127\.0\.0\.1|binding|definition/);
  await owner.send('POST', 'operations/orders.cancel/publish');
  const conflictResponse = await invoke(
    server,
    key,
    'orders.cancel',
    { orderId: 'A-1' },
    { extraFields: { revision: 1 }, headers: { 'idempotency-key': 'old' } },
  );
  assert.deepEqual([conflictResponse.status, conflictResponse.body.code], [409, 'revision_conflict']);

  assert.equal((await owner.send('DELETE', 'operations/orders.cancel', { ifMatch: '"3"' })).status, 409);
  const withdrawResponse = await owner.send<ConfiguredOperation>('POST', 'operations/orders.cancel/withdraw');
  assert.deepEqual([withdrawResponse.status, withdrawResponse.body.status], [200, 'withdrawn']);
  assert.equal((await call('orders.cancel', { orderId: 'A-1' })).status, 404);
  assert.equal((await owner.send('DELETE', 'operations/orders.cancel')).status, 428);
  assert.equal((await owner.send('DELETE', 'operations/orders.cancel', { ifMatch: '"3"' })).status, 204);
  assert.equal((await owner.send('GET', 'operations/orders.cancel')).status, 404);
  const secondResponse = await owner.configure('orders.cancel', cancelOrderOperation(upstream));
  assert.deepEqual([secondResponse.status, secondResponse.body.revision], [201, 4]);
});

test('the audit log contains an entry with the digest for each change of an operation', async () => {
  const { body } = await owner.send<AuditPage>('GET', 'audit?limit=100');
  const auditEntries = body.data.filter(({ target }) => target?.id === 'orders.cancel');
  const actions = auditEntries.map(({ action }) => action).reverse();
  assert.deepEqual(actions.slice(0, 5), [
    ...['operation.changed', 'operation.published', 'operation.changed', 'operation.changed', 'operation.published'],
  ]);
  assert.ok(actions.includes('operation.withdrawn') && actions.includes('operation.deleted'));
  for (const { details } of auditEntries) assert.match(String(details?.digest), /^sha256:/);
});

test('a built-in operation can be disabled, and its approval and price can be set', async () => {
  const defaultResponse = await owner.send<ConfiguredOperation>('GET', 'operations/browser.pdf');
  assert.deepEqual(
    [
      defaultResponse.body.kind,
      defaultResponse.body.status,
      defaultResponse.body.enabled,
      defaultResponse.headers.etag,
    ],
    ['managed', 'published', true, '"1"'],
  );
  assert.equal((await owner.configure('browser.pdf', { enabled: false })).status, 428);
  const refusal = await owner.configure('browser.pdf', { title: 'Mine' }, '"1"');
  assert.deepEqual([refusal.status, refusal.body.code], [403, 'permission_denied']);
  const disableResponse = await owner.configure('browser.pdf', { enabled: false }, '"1"');
  assert.deepEqual(
    [disableResponse.status, disableResponse.body.enabled, disableResponse.body.revision],
    [200, false, 2],
  );
  assert.equal((await invoke(server, key, 'browser.pdf', { url: upstream.url })).status, 404);
  const approvalResponse = await owner.configure(
    'browser.pdf',
    { approval: 'member', price: { microCredits: 7 } },
    '"2"',
  );
  assert.equal(approvalResponse.status, 200, approvalResponse.text);
  const { body } = await server.api<AgentOperationList>('GET', agentPath(server, 'operations'), { key });
  const pdf = body.data.find(({ id }) => id === 'browser.pdf');
  assert.deepEqual([pdf?.approval, pdf?.price.microCredits], ['member', 7]);
  const approvalRefusal = await invoke(server, key, 'browser.pdf', { url: upstream.url });
  assert.deepEqual([approvalRefusal.status, approvalRefusal.body.code], [409, 'approval_required']);
  const toolResponse = await server.api<string>('POST', agentPath(server, 'mcp'), {
    ...{ key, headers: { accept: 'application/json, text/event-stream' } },
    body: {
      ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
      params: { name: 'browser_pdf', arguments: { url: upstream.url } },
    },
  });
  assert.equal(toolResponse.status, 200);
  assert.doesNotMatch(toolResponse.text, /succeeded|artifact/);
  const { body: none } = await server.api<InvocationPage>('GET', agentPath(server, 'invocations'), { key });
  assert.equal(none.data.filter(({ operationId }) => operationId === 'browser.pdf').length, 0);
  assert.equal((await owner.configure('browser.pdf', {}, '"3"')).body.digest, defaultResponse.body.digest);
  const secondRevisionResponse = await owner.send<ConfiguredOperation>('GET', 'operations/browser.pdf?revision=2');
  assert.deepEqual([secondRevisionResponse.body.revision, secondRevisionResponse.body.enabled], [2, false]);
  for (const [method, path] of [
    ['POST', 'browser.pdf/publish'],
    ['POST', 'browser.pdf/withdraw'],
    ['DELETE', 'browser.pdf'],
  ] as const)
    assert.equal((await owner.send(method, `operations/${path}`, { ifMatch: '*' })).status, 403, path);
  for (const id of ['browser.mine', 'session', 'memory_x', 'berth-y'])
    assert.equal((await owner.configure(id, cancelOrderOperation(upstream))).status, 403, id);
});

test('an invalid or unsafe operation is refused, and the error names the field', async () => {
  const assertRefused = async (body: object, code: string, path: string, status = 400): Promise<void> => {
    const response = await owner.configure('orders.wrong', body);
    assert.deepEqual([response.status, response.body.code], [status, code], response.text);
    if (path !== '') assert.ok(response.text.includes(`"${path}`), `${path}: ${response.text}`);
  };
  const operationWithBinding = (changed: object) => cancelOrderOperation(upstream, { binding: changed });
  await assertRefused({ ...cancelOrderOperation(upstream), inputShema: {} }, 'unknown_field', 'inputShema');
  await assertRefused({}, 'invalid_request', 'title');
  await assertRefused(
    cancelOrderOperation(upstream, { effect: 'irreversible' }),
    'invalid_request',
    'acknowledgeUnattended',
  );
  await assertRefused(
    cancelOrderOperation(upstream, { inputSchema: { type: 'array' } }),
    'invalid_schema',
    'inputSchema',
  );
  await assertRefused(
    cancelOrderOperation(upstream, { outputSchema: { $ref: 'https://x.example/s' } }),
    'invalid_schema',
    'outputSchema.$ref',
  );
  const reservedBinding = { sign: true, fixedHeaders: { Date: 'x' } };
  await assertRefused(operationWithBinding(reservedBinding), 'invalid_request', 'binding.fixedHeaders.Date');
  await assertRefused(
    operationWithBinding({ sign: true, idempotencyHeader: 'Signature' }),
    'invalid_request',
    'binding.idempotencyHeader',
  );
  await assertRefused(
    operationWithBinding({ headers: { Host: '/orderId' } }),
    'invalid_request',
    'binding.headers.Host',
  );
  await assertRefused(
    operationWithBinding({ headers: { Authorization: '/orderId' } }),
    'invalid_request',
    'binding.headers.Authorization',
  );
  await assertRefused(
    operationWithBinding({ fixedHeaders: { 'x-a': 'a\r\nb: c' } }),
    'invalid_request',
    'binding.fixedHeaders.x-a',
  );
  await assertRefused(
    operationWithBinding({ auth: { credentialId: 'nobody', as: 'bearer' } }),
    'invalid_request',
    'binding.auth.credentialId',
  );
  await assertRefused(operationWithBinding({ query: { q: 'orderId' } }), 'invalid_request', 'binding.query.q');
  await assertRefused(
    cancelOrderOperation(upstream, { display: { summary: 'Cancel {{orderId}}' } }),
    'invalid_request',
    'display.summary',
  );
  await assertRefused(
    cancelOrderOperation(upstream, { examples: [{ input: { order: 1 } }] }),
    'invalid_request',
    'examples[0].input',
  );
  const forbiddenUrls = [
    'https://127.0.0.1/x',
    'http://127.0.0.1:9/x',
    'https://169.254.169.254/x',
    'https://[::1]/x',
    `${server.url}/v1/config`,
  ];
  for (const url of forbiddenUrls) await assertRefused(operationWithBinding({ url }), 'invalid_request', 'binding.url');
  assert.equal((await owner.send('GET', 'operations/orders.wrong')).status, 404);
});

test('input values are encoded into the path and query, absent values are omitted, and values that would change the path or add a header are refused', async () => {
  const inputSchema = {
    type: 'object',
    properties: {
      orderId: { type: 'string' },
      page: { type: 'integer' },
      trace: { type: 'string' },
      all: { type: 'boolean' },
    },
  };
  const body = readOrderOperation({
    inputSchema,
    binding: {
      url: `${upstream.url}/orders/{orderId}?all={all}`,
      query: { 'page no': '/page', missing: '/trace' },
      headers: { 'x-trace': '/trace' },
      fixedHeaders: { accept: 'application/vnd.shop+json', 'x-version': '2' },
    },
  });
  await owner.publish('orders.read', body);
  const callResponse = await call('orders.read', { orderId: 'a/b?c#d é', page: 3, all: true });
  assert.equal(callResponse.body.status, 'succeeded', callResponse.text);
  const sentRequest = upstream.receivedRequests('/orders/a%2F').at(-1);
  assert.equal(sentRequest?.url, '/orders/a%2Fb%3Fc%23d%20%C3%A9?all=true&page%20no=3');
  assert.deepEqual(
    [sentRequest?.headers.accept, sentRequest?.headers['x-version'], sentRequest?.headers['x-trace']],
    ['application/vnd.shop+json', '2', undefined],
  );
  assert.equal(sentRequest?.headers['accept-encoding'], 'identity');
  const countBefore = upstream.receivedRequests().length;
  for (const orderId of ['..', '.', '']) {
    const { status, body: refusal } = await call('orders.read', { orderId, all: true });
    assert.deepEqual([status, refusal.code], [400, 'invalid_request'], orderId);
  }
  for (const trace of ['a\r\nx-injected: 1', 'a\nb', 'a\0b', 'é']) {
    const { status, body: refusal } = await call('orders.read', { orderId: 'A-1', all: true, trace });
    assert.deepEqual([status, refusal.code], [400, 'invalid_request'], trace);
  }
  assert.equal(upstream.receivedRequests().length, countBefore);
});

test('a write requires an idempotency key, and a hundred calls with the same key start one invocation', async () => {
  await owner.publish('orders.cancel', cancelOrderOperation(upstream));
  const refusal = await invoke(server, key, 'orders.cancel', { orderId: 'A-2' });
  assert.deepEqual([refusal.status, refusal.body.code], [400, 'idempotency_key_required']);
  const responses = await Promise.all(
    Array.from({ length: 100 }, () =>
      invoke(server, key, 'orders.cancel', { orderId: 'A-3' }, { headers: { 'idempotency-key': 'one' } }),
    ),
  );
  assert.deepEqual(new Set(responses.map(({ status }) => status)), new Set([200]));
  assert.equal(new Set(responses.map(({ body }) => body.id)).size, 1);
  assert.equal(upstream.receivedRequests('/orders/A-3/').length, 1);
  const conflictResponse = await invoke(
    server,
    key,
    'orders.cancel',
    { orderId: 'A-4' },
    { headers: { 'idempotency-key': 'one' } },
  );
  assert.deepEqual([conflictResponse.status, conflictResponse.body.code], [409, 'idempotency_conflict']);
});

test('a call is reported as failed if its request had no effect, and as ambiguous if the effect is unknown', async () => {
  await owner.publish('orders.cancel', cancelOrderOperation(upstream, { timeoutMs: 1000 }));
  await owner.publish('orders.read', readOrderOperation({ timeoutMs: 1000 }));
  const cases: ReadonlyArray<
    readonly [name: string, answering: Parameters<typeof upstream.respondTo>[1], write: string, read: string]
  > = [
    [
      '404',
      (_, response) => sendJson(response, 404, { error: 'none' }),
      'failed upstream_failed',
      'failed upstream_failed',
    ],
    ['503', (_, response) => sendJson(response, 503, {}), 'ambiguous upstream_ambiguous', 'failed upstream_failed'],
    ['500', (_, response) => sendJson(response, 500, {}), 'ambiguous upstream_ambiguous', 'failed upstream_failed'],
    [
      '302',
      (_, response) => void response.writeHead(302, { location: `${upstream.url}/elsewhere` }).end(),
      'ambiguous upstream_ambiguous',
      'failed upstream_failed',
    ],
    ['cut', (_, response) => void response.destroy(), 'ambiguous upstream_ambiguous', 'failed upstream_failed'],
    [
      'half',
      (_, response) => void response.writeHead(200, { 'content-length': '99' }).write('{', () => response.destroy()),
      'ambiguous upstream_ambiguous',
      'failed upstream_failed',
    ],
    ['slow', () => {}, 'ambiguous timeout_ambiguous', 'failed timeout'],
    [
      'bad',
      (_, response) => void response.writeHead(200, { 'content-type': 'application/json' }).end('{'),
      'ambiguous upstream_ambiguous',
      'failed upstream_failed',
    ],
    [
      'zip',
      (_, response) => void response.writeHead(200, { 'content-encoding': 'gzip' }).end(Buffer.alloc(99)),
      'ambiguous upstream_ambiguous',
      'failed upstream_failed',
    ],
    [
      'big',
      (_, response) => void response.writeHead(200, { 'content-type': 'text/plain' }).end('x'.repeat(2_000_000)),
      'ambiguous upstream_ambiguous',
      'failed upstream_failed',
    ],
    ['other', (_, response) => sendJson(response, 200, { state: 7 }), 'succeeded invalid', 'failed output_invalid'],
    ['list', (_, response) => sendJson(response, 200, [1]), 'succeeded', 'succeeded'],
    ['empty', (_, response) => void response.writeHead(204).end(), 'succeeded', 'succeeded'],
  ];
  for (const [name, handler, write, read] of cases) {
    upstream.respondTo(`/orders/${name}`, handler);
    for (const [id, expected] of [
      ['orders.cancel', write],
      ['orders.read', read],
    ] as const) {
      const { status, body, text } = await call(id, { orderId: name });
      assert.equal(status, 200, text);
      const said = [body.status, body.error?.code, ...(body.outputInvalid ? ['invalid'] : [])].filter(
        word => word !== undefined,
      );
      assert.equal(said.join(' '), expected, `${id} ${name}: ${text}`);
      const [, payload = ''] = body.receipt?.split('.') ?? [];
      const { berth }: { berth: { status: string; upstream: object } } = JSON.parse(
        Buffer.from(payload, 'base64url').toString(),
      );
      assert.equal(berth.status, body.status);
      assert.deepEqual(Object(berth.upstream).host, upstream.host);
    }
  }
  assert.equal(upstream.receivedRequests('/elsewhere').length, 0);
  assert.deepEqual((await call('orders.read', { orderId: 'list' })).body.output, { value: [1] });
});

test('a call to an unreachable service is reported as failed, even for a write, because no request was sent', async () => {
  await owner.publish('orders.flaky', cancelOrderOperation(closedUpstream));
  closedUpstream.close();
  const { body, text } = await call('orders.flaky', { orderId: 'A-1' });
  assert.deepEqual([body.status, body.error?.phase, body.error?.retryable], ['failed', 'before', true], text);
  assert.doesNotMatch(text, /ECONNREFUSED|127\.0\.0\.1/);
});

test('an invocation reports when its output expires, based on the retention setting of the operation', async () => {
  await owner.publish('orders.list', readOrderOperation({ retention: { output: 'full', days: 3 } }));
  const kept = (await call('orders.list', { orderId: 'A-1' })).body;
  const days = (Date.parse(kept.retention?.outputUntil ?? '') - Date.parse(kept.endedAt ?? '')) / 86_400_000;
  assert.equal(days, 3);
  const briefInvocation = (await call('orders.read', { orderId: 'A-1' })).body;
  assert.equal(
    Date.parse(briefInvocation.retention?.outputUntil ?? '') - Date.parse(briefInvocation.endedAt ?? '') <= 600_000,
    true,
  );
});

test('an input is kept only if the operation is configured to keep inputs, and cannot be read with another agent key', async () => {
  const input = { orderId: 'A-1', reason: 'a secret' };
  const read = async (id: string, as = key) =>
    server.api<Invocation>('GET', agentPath(server, `invocations/${id}`), { key: as });
  await owner.publish('orders.list', readOrderOperation({ retention: { input: 'full', days: 2 } }));
  const { id } = (await call('orders.list', input)).body;
  const { body } = await read(id);
  assert.deepEqual(body.input, input);
  const days = (Date.parse(body.retention?.inputUntil ?? '') - Date.parse(body.endedAt ?? '')) / 86_400_000;
  assert.equal(days, 2);
  assert.equal((await read(id, (await issueAgentKey(server)).key)).status, 404);
  const briefInvocation = (await call('orders.read', input)).body;
  const storedInvocation = (await read(briefInvocation.id)).body;
  assert.deepEqual([storedInvocation.input, storedInvocation.retention?.inputUntil], [undefined, undefined]);
  assert.equal(storedInvocation.inputDigest, body.inputDigest);
});

test('an output that is not kept is returned only by the call itself, and its digest is not stored', async () => {
  await owner.publish('orders.list', readOrderOperation({ retention: { output: 'none' } }));
  upstream.respondTo('/orders/A-9', (_, response) => sendJson(response, 200, { state: 'private' }));
  const { body, text } = await call('orders.list', { orderId: 'A-9' }, { 'idempotency-key': 'not kept' });
  assert.deepEqual([body.status, body.output], ['succeeded', { state: 'private' }], text);
  const { body: storedInvocation, text: said } = await server.api<Invocation>(
    'GET',
    agentPath(server, `invocations/${body.id}`),
    {
      key,
    },
  );
  assert.equal(storedInvocation.status, 'succeeded', said);
  assert.deepEqual(
    [storedInvocation.output, storedInvocation.outputDigest, storedInvocation.retention],
    [undefined, undefined, undefined],
  );
  const [, payload = ''] = storedInvocation.receipt?.split('.') ?? [];
  const claims = Buffer.from(payload, 'base64url').toString();
  assert.ok(claims.includes('inputDigest') && !claims.includes('outputDigest'), claims);
  const replay = await call('orders.list', { orderId: 'A-9' }, { 'idempotency-key': 'not kept' });
  assert.deepEqual([replay.body.id, replay.body.output], [body.id, undefined]);
});

test('an operation is hidden from other applications, and its tool name must be unique within its application', async () => {
  const otherApplicationKey = await createOtherApplicationKey(server, { scopes: ['operations:discover'] });
  const { status } = await server.api('GET', agentPath(server, 'operations/orders.read'), { key: otherApplicationKey });
  assert.equal(status, 404);
  const conflictResponse = await owner.configure('orders_read', readOrderOperation());
  assert.deepEqual([conflictResponse.status, conflictResponse.body.code], [409, 'name_taken']);
  const { body } = await owner.send<ConfiguredOperationPage>('GET', 'operations?kind=http&limit=2');
  assert.deepEqual(
    body.data.map(({ id }) => id),
    ['orders.cancel', 'orders.flaky'],
  );
  const nextPageResponse = await owner.send<ConfiguredOperationPage>(
    'GET',
    `operations?kind=http&limit=2&cursor=${body.nextCursor}`,
  );
  assert.deepEqual(
    nextPageResponse.body.data.map(({ id }) => id),
    ['orders.list', 'orders.read'],
  );
});
