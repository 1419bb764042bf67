// Attacks on configured operations and credentials: schemas that take forever to check, headers and hosts chosen by the
// input, services that echo secrets or never end their response, sealed values copied to other rows, and a search for
// secrets everywhere after their use.
import assert from 'node:assert/strict';
import { lstatSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { Invocation } from '../../contract/invocations.ts';
import { cancelOrderOperation, Owner } from '../harness/configured.ts';
import { filesUnder } from '../harness/files-under.ts';
import { createOwnerToken } from '../harness/limits.ts';
import { agentPath, invoke, issueAgentKey } from '../harness/operations.ts';
import { queryRows, readDatabaseText } from '../harness/other-person.ts';
import { startOtlpReceiver } from '../harness/otlp-receiver.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';
import { openUpstream, sendJson } from '../harness/upstream.ts';

const SECRET = 'zq8-s3cret/of+the"shop-4711';
const PASSWORD = 'p4ss-9f31-of-the-shop';
const upstream = await openUpstream();
const receiver = await startOtlpReceiver();
const server = await startServer({
  env: {
    ...{ BERTH_WARM: '0', BERTH_LOG_LEVEL: 'debug', OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url },
    ...upstream.settings,
  },
});
const owner = await Owner.open(server);
const { key } = await issueAgentKey(server, {
  grants: ['shop.call', 'shop.read'].map(operationId => ({ operationId })),
});
let callCount = 0;
const call = (id: string, orderId: string) => {
  callCount += 1;
  return invoke(server, key, id, { orderId }, { headers: { 'idempotency-key': `call ${callCount}` } });
};
const hosts = [upstream.host];
const auth = { credentialId: 'shop-api', as: 'bearer' };

test('a schema that is too expensive to evaluate is refused without delaying other requests, and the error names the field of the schema', async () => {
  const nestedSchema = (levels: number): object =>
    levels === 0 ? {} : { properties: { a: nestedSchema(levels - 1) } };
  const doublingDefs = Object.fromEntries(
    Array.from({ length: 20 }, (_, n) => [
      `d${n}`,
      { allOf: [{ $ref: `#/$defs/d${n + 1}` }, { $ref: `#/$defs/d${n + 1}` }] },
    ]),
  );
  /** A chain in which each schema refers to the next one or to the previous one. */
  const chain = (links: number, to: 1 | -1): object =>
    Object.fromEntries(
      Array.from({ length: links }, (_, n) => [
        n,
        n + to in { [-1]: 0, [links]: 0 } ? {} : { $ref: `#/$defs/${n + to}` },
      ]),
    );
  const bombs: ReadonlyArray<readonly [what: string, schema: object]> = [
    ['a pattern', { properties: { orderId: { pattern: '^(a+)+$' } } }],
    ['a pattern of names', { patternProperties: { '^([a-z]+)*$': {} }, properties: { orderId: {} } }],
    ['lookaround', { properties: { orderId: { pattern: '(?=a)b' } } }],
    ['depth', nestedSchema(13)],
    ['doubling references', { properties: { orderId: { $ref: '#/$defs/d0' } }, $defs: { ...doublingDefs, d20: {} } }],
    ['a long chain of references', { properties: { orderId: { $ref: '#/$defs/0' } }, $defs: chain(2_000, 1) }],
    ['a long chain in the order of its end', { $defs: chain(2_000, -1) }],
    [
      'a schema that refers to itself',
      { properties: { orderId: { $ref: '#/$defs/a' } }, $defs: { a: { items: { $ref: '#/$defs/a' } } } },
    ],
    ['another document', { properties: { orderId: { $ref: `${upstream.url}/schema` } } }],
    ['$dynamicRef', { properties: { orderId: { $dynamicRef: '#a' } } }],
    ['many values', { properties: { orderId: { enum: Array.from({ length: 20_000 }, (_, n) => n) } } }],
  ];
  for (const [what, schema] of bombs) {
    const refusal = owner.configure(
      'shop.bomb',
      cancelOrderOperation(upstream, { inputSchema: { type: 'object', ...schema } }),
    );
    const otherResponse = await owner.send('GET', 'operations/browser.pdf');
    assert.equal(otherResponse.status, 200);
    const { status, body, text } = await refusal;
    assert.deepEqual([status, body.code], [400, 'invalid_schema'], `${what}: ${text.slice(0, 300)}`);
    assert.match(text, /inputSchema/);
  }
  const hugeOperation = JSON.stringify(cancelOrderOperation(upstream)).replace(
    '"orderId":{',
    `"orderId":{"enum":[${'0,'.repeat(1_000_000)}0],`,
  );
  assert.equal((await owner.configure('shop.bomb', hugeOperation)).status, 413);
  assert.equal(upstream.receivedRequests('/schema').length, 0);
  assert.equal((await owner.send('GET', 'operations/shop.bomb')).status, 404);
});

test('inputs that are too expensive to validate are refused, without delaying another application', async () => {
  const slowSchema = { type: 'object', properties: { all: { type: 'array', uniqueItems: true } } };
  await owner.publish('shop.read', {
    ...cancelOrderOperation(upstream, { effect: 'read', inputSchema: slowSchema }),
    binding: { method: 'GET', url: `${upstream.url}/slow` },
  });
  const token = await createOwnerToken(server);
  const { body: otherApplication } = await server.api<{ id: string }>('POST', '/v1/applications', {
    ...{ key: token, body: { name: 'Other' } },
  });
  const keyResponse = await server.api<{ key: string }>('POST', `/v1/applications/${otherApplication.id}/agent-keys`, {
    key: token,
    body: { name: 'x', scopes: ['operations:invoke'], grants: [{ operationId: '*', effect: 'read' }] },
  });
  const sendInvalidInput = () =>
    server.api('POST', `/v1/agent/applications/${otherApplication.id}/operations/browser.pdf/invoke`, {
      ...{ key: keyResponse.body.key, body: { input: {} } },
    });
  let endedCount = 0;
  const all = Array.from({ length: 20_000 }, (_, n) => [n]);
  const calls = Array.from({ length: 2 }, () =>
    invoke(server, key, 'shop.read', { all }).finally(() => {
      endedCount += 1;
    }),
  );
  assert.equal((await sendInvalidInput()).status, 400);
  assert.ok(endedCount < calls.length, 'the call of the other application did not wait for these calls');
  for (const { status, body, text } of await Promise.all(calls))
    assert.deepEqual([status, body.code], [422, 'too_costly'], text);
  assert.equal(upstream.receivedRequests('/slow').length, 0);
});

test('if a credential does not allow a host, an operation for the host cannot be configured, and an existing operation cannot be called', async () => {
  const writeResponse = await owner.writeCredential('shop-api', { type: 'api_key', value: { key: SECRET }, hosts });
  assert.equal(writeResponse.status, 201, writeResponse.text);
  const otherUpstream = await openUpstream();
  for (const url of [
    `${otherUpstream.url}/x`,
    `http://localhost:${upstream.port}/x`,
    'https://shop.example/x',
    `${upstream.url}.evil.example/x`,
  ]) {
    const refusal = await owner.configure('shop.call', cancelOrderOperation(upstream, { binding: { url, auth } }));
    assert.equal(refusal.status, 400, `${url}: ${refusal.text}`);
  }
  await owner.publish('shop.call', cancelOrderOperation(upstream, { binding: { auth } }));
  const moveResponse = await owner.writeCredential(
    'shop-api',
    { type: 'api_key', value: { key: SECRET }, hosts: ['shop.example'] },
    '*',
  );
  assert.equal(moveResponse.status, 200, moveResponse.text);
  const countBefore = upstream.receivedRequests().length;
  const refusal = await call('shop.call', 'A-1');
  assert.deepEqual([refusal.status, refusal.body.code], [424, 'credential_missing'], refusal.text);
  assert.equal(upstream.receivedRequests().length, countBefore);
  const noValueResponse = await owner.writeCredential('shop-api', { type: 'api_key', hosts }, '*');
  assert.deepEqual([noValueResponse.status, noValueResponse.body.code], [400, 'invalid_request']);
  assert.equal(
    (await owner.writeCredential('shop-api', { type: 'api_key', value: { key: SECRET }, hosts }, '*')).status,
    200,
  );
  assert.equal(otherUpstream.receivedRequests().length, 0);
});

test('a redirect is not followed, so that no secret is sent to another address', async () => {
  const otherUpstream = await openUpstream();
  for (const location of [
    `${otherUpstream.url}/stolen`,
    'http://169.254.169.254/latest/meta-data',
    `${server.url}/v1/config`,
  ]) {
    upstream.respondTo('/orders/away/', (_, response) => void response.writeHead(307, { location }).end());
    const { body } = await call('shop.call', 'away');
    assert.deepEqual([body.status, body.error?.code], ['ambiguous', 'upstream_ambiguous']);
  }
  assert.equal(otherUpstream.receivedRequests().length, 0);
});

test('an output that looks like a stored file is not treated as a file, and does not count towards storage', async () => {
  const readStoredBytes = async (): Promise<unknown> =>
    Object((await owner.send('GET', 'limits')).body).usage?.browsers?.maxStoredBytes;
  const bytesBefore = await readStoredBytes();
  assert.equal(typeof bytesBefore, 'number');
  for (const size of [9_000_000_000_000_000, 'x', 1]) {
    const artifact = { mimeType: 'image/png', size, checksum: 'x' };
    upstream.respondTo('/orders/file/', (_, response) => sendJson(response, 200, { artifact }));
    const { body, text } = await call('shop.call', 'file');
    assert.deepEqual([body.status, body.output], ['succeeded', { artifact }], text);
    const readResponse = await server.api<Invocation>('GET', agentPath(server, `invocations/${body.id}`), { key });
    assert.deepEqual(readResponse.body.output, { artifact });
    assert.equal(await readStoredBytes(), bytesBefore, `size ${size}`);
  }
});

test('a secret that the called service echoes is masked in the response of the call', async () => {
  const basicCredentials = Buffer.from(`me:${PASSWORD}`).toString('base64');
  const echoes = [
    SECRET,
    encodeURIComponent(SECRET),
    Buffer.from(SECRET).toString('base64'),
    Buffer.from(`x${SECRET}`).toString('base64url'),
    Buffer.from(SECRET).toString('hex'),
  ];
  for (const [status, id] of [
    [200, 'shop.call'],
    [400, 'shop.call'],
    [500, 'shop.call'],
  ] as const)
    for (const echo of echoes) {
      upstream.respondTo('/orders/echo/', ({ headers }, response) =>
        sendJson(response, status, { echo, [echo]: [headers.authorization], nested: { text: `before ${echo} after` } }),
      );
      const { body, text } = await call(id, 'echo');
      assert.notEqual(body.status, 'running');
      assert.ok(!text.includes(JSON.stringify(echo).slice(1, -1)), text);
      assert.match(text, /\*\*\*/);
    }
  upstream.respondTo(
    '/orders/echo/',
    (_, response) => void response.writeHead(401, { 'content-type': 'text/html' }).end(`<p>Wrong: ${SECRET}</p>`),
  );
  const textResponse = await call('shop.call', 'echo');
  assert.match(textResponse.text, /Wrong: \*\*\*/);
  await owner.writeCredential('shop-login', { type: 'basic', value: { username: 'me', password: PASSWORD }, hosts });
  await owner.publish(
    'shop.read',
    cancelOrderOperation(upstream, { effect: 'read', binding: { auth: { credentialId: 'shop-login', as: 'basic' } } }),
  );
  upstream.respondTo('/orders/basic/', ({ headers }, response) =>
    sendJson(response, 200, { got: headers.authorization, state: 'x' }),
  );
  const callResponse = await call('shop.read', 'basic');
  assert.equal(upstream.receivedRequests('/orders/basic/').at(-1)?.headers.authorization, `Basic ${basicCredentials}`);
  assert.ok(!callResponse.text.includes(basicCredentials), callResponse.text);
});

test('a call with an endless response fails at its time limit, and a call with a compressed response fails without unpacking the response', async () => {
  await owner.publish('shop.read', cancelOrderOperation(upstream, { effect: 'read', timeoutMs: 1500 }));
  upstream.respondTo('/orders/drip/', (_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    const dripTimer = setInterval(() => response.write(' '), 100);
    response.on('close', () => clearInterval(dripTimer));
  });
  const dripResponse = await call('shop.read', 'drip');
  assert.deepEqual([dripResponse.body.status, dripResponse.body.error?.code], ['failed', 'timeout'], dripResponse.text);
  upstream.respondTo(
    '/orders/bomb/',
    (_, response) =>
      void response
        .writeHead(200, { 'content-encoding': 'gzip', 'content-type': 'application/json' })
        .end(Buffer.alloc(1000)),
  );
  const bombResponse = await call('shop.read', 'bomb');
  assert.deepEqual(
    [bombResponse.body.status, bombResponse.body.error?.code],
    ['failed', 'upstream_failed'],
    bombResponse.text,
  );
  assert.equal(upstream.receivedRequests('/orders/bomb/').at(-1)?.headers['accept-encoding'], 'identity');
});

test('a sealed value that was copied to another credential or version cannot be opened', async () => {
  await owner.writeCredential('bait', { type: 'api_key', value: { key: 'a-key-of-the-thief' }, hosts });
  await owner.publish(
    'shop.read',
    cancelOrderOperation(upstream, { effect: 'read', binding: { auth: { credentialId: 'bait', as: 'bearer' } } }),
  );
  assert.equal((await call('shop.read', 'bait')).body.status, 'succeeded');
  const moveQuery = `update stored_credential_versions bait set sealed = shop.sealed from stored_credential_versions shop
    where bait.credential_id = 'bait' and shop.credential_id = 'shop-api' and shop.destroy_at is null`;
  await queryRows(server, moveQuery);
  const assertRefused = async (order: string): Promise<void> => {
    const { status, text } = await call('shop.read', order);
    assert.ok(status >= 500 && !text.includes(SECRET), text);
    assert.equal(upstream.receivedRequests(`/orders/${order}/`).length, 0);
  };
  await assertRefused('moved');
  for (const key of ['a second key', 'a third key']) {
    const { status, text } = await owner.writeCredential('bait', { type: 'api_key', value: { key }, hosts }, '*');
    assert.equal(status, 200, text);
  }
  const rewindQuery = `update stored_credential_versions bait set sealed = earlier.sealed from stored_credential_versions earlier
    where bait.credential_id = 'bait' and earlier.credential_id = 'bait' and earlier.version = bait.version - 1
      and bait.destroy_at is null`;
  await queryRows(server, rewindQuery);
  await assertRefused('rewound');
});

test('no secret of a used credential is found in the database, logs, traces, files, receipts or responses', async () => {
  const { body, text } = await server.api<{ data: Invocation[] }>('GET', agentPath(server, 'invocations?limit=100'), {
    key,
  });
  assert.ok(body.data.length > 10);
  const tables = (await queryRows(server, `select tablename from pg_tables where schemaname = 'public'`)).map(row =>
    String(Object(row).tablename),
  );
  assert.ok(tables.includes('stored_credential_versions'));
  const receipts = body.data.map(({ receipt = '' }) =>
    receipt
      .split('.')
      .map(part => Buffer.from(part, 'base64url').toString())
      .join(' '),
  );
  await eventually('the traces of the calls', () => receiver.spans.some(({ name }) => /invoke/i.test(name)));
  const textsByPlace: Record<string, string> = {
    traces: JSON.stringify(receiver.spans, (_, value) => (typeof value === 'bigint' ? String(value) : value)),
    database: await readDatabaseText(server, tables),
    logs: server.log().join('\n'),
    receipts: receipts.join('\n'),
    invocations: text,
    audit: (await owner.send('GET', 'audit?limit=100')).text,
    credentials: (await owner.send('GET', 'credentials')).text,
    operations: (await owner.send('GET', 'operations')).text,
    discovery: (await server.api('GET', agentPath(server, 'operations'), { key })).text,
  };
  const files = filesUnder(server.dataDir);
  assert.ok(files.length > 100);
  for (const secret of [SECRET, PASSWORD, 'a-key-of-the-thief']) {
    const forms = [
      secret,
      JSON.stringify(secret).slice(1, -1),
      Buffer.from(secret).toString('base64'),
      Buffer.from(secret).toString('hex'),
      encodeURIComponent(secret),
    ];
    for (const [place, content] of Object.entries(textsByPlace))
      for (const form of forms) assert.ok(!content.includes(form), `${form} is in ${place}`);
    for (const file of files) assert.ok(!contentOf(file).includes(secret), file);
  }
});

/** Returns the content of the file, or an empty buffer if the database has removed the file in the meantime. */
function contentOf(file: string): Buffer {
  const stats = lstatSync(file, { throwIfNoEntry: false });
  return stats?.isFile() ? readFileSync(file) : Buffer.alloc(0);
}
