// Calls of operations with `sign`, verified by a receiver that implements only RFC 9421 and RFC 9530 and uses the
// published key set.
import assert from 'node:assert/strict';
import { createHash, createPublicKey, type JsonWebKey, verify } from 'node:crypto';
import { test } from 'node:test';
import { verifyReceipt } from '../../sdk/index.ts';
import { cancelOrderOperation, Owner } from '../harness/configured.ts';
import { liftLimits } from '../harness/limits.ts';
import { invoke, issueAgentKey } from '../harness/operations.ts';
import { startServer } from '../harness/server.ts';
import { openUpstream, type ReceivedRequest } from '../harness/upstream.ts';

const REQUIRED_COMPONENTS = [
  '@method',
  '@target-uri',
  'content-digest',
  'date',
  'idempotency-key',
  'berth-invocation-id',
];

const upstream = await openUpstream();
const server = await startServer({ env: { BERTH_SLOTS: '0', ...upstream.settings } });
await liftLimits(server);
const owner = await Owner.open(server);
const { key } = await issueAgentKey(server, {
  grants: ['orders.cancel', 'orders.read'].map(operationId => ({ operationId })),
});
const call = (id: string, input: object, idempotencyKey: string) =>
  invoke(server, key, id, input, { headers: { 'idempotency-key': idempotencyKey } });

interface Keys {
  readonly keys: ReadonlyArray<JsonWebKey & { readonly kid: string }>;
}
const readReceiptKeys = async () =>
  (await server.api<Parameters<typeof verifyReceipt>[1]['keys']>('GET', '/.well-known/jwks.json')).body;
const readKeySet = async (): Promise<Keys> => (await server.api<Keys>('GET', '/.well-known/jwks.json')).body;

const text = (value: string | string[] | undefined): string => (typeof value === 'string' ? value : '');

/**
 * Returns the id of the key that signed the request. Throws if the signature is missing, or if the request was changed.
 */
function verifySignature(request: ReceivedRequest, { keys }: Keys): string {
  const [, list = '', parameters = ''] =
    /^berth=\(([^)]*)\)((?:;[a-z]+=(?:"[^"]*"|\d+))*)$/.exec(text(request.headers['signature-input'])) ?? [];
  const coveredComponents = list.split(' ').map(item => item.replaceAll('"', ''));
  assert.deepEqual(coveredComponents, REQUIRED_COMPONENTS);
  const {
    keyid = '',
    alg,
    tag,
    created,
  } = Object.fromEntries(
    [...parameters.matchAll(/;([a-z]+)=(?:"([^"]*)"|(\d+))/g)].map(([, name, quoted, plain]) => [
      name,
      quoted ?? plain,
    ]),
  );
  assert.deepEqual([alg, tag], ['ed25519', 'berth-operation']);
  assert.ok(Math.abs(Number(created) - Date.now() / 1000) < 60, 'created now');
  const componentOf = (name: string): string => {
    if (name === '@method') return request.method;
    if (name === '@target-uri') return `http://${request.headers.host}${request.url}`;
    return text(request.headers[name]);
  };
  const lines = coveredComponents.map(name => `"${name}": ${componentOf(name)}`);
  const base = [...lines, `"@signature-params": (${list})${parameters}`].join('\n');
  const [, signature = ''] = /^berth=:([A-Za-z0-9+/=]+):$/.exec(text(request.headers.signature)) ?? [];
  const jwk = keys.find(({ kid }) => kid === keyid) ?? assert.fail(`the key ${keyid} is not in the published key set`);
  const publicKey = createPublicKey({ key: jwk, format: 'jwk' });
  assert.ok(verify(null, Buffer.from(base), publicKey, Buffer.from(signature, 'base64')), 'the signature matches');
  const digest = createHash('sha256').update(request.body).digest('base64');
  assert.equal(request.headers['content-digest'], `sha-256=:${digest}:`);
  return keyid;
}

const lastRequest = (path: string): ReceivedRequest =>
  upstream.receivedRequests(path).at(-1) ?? assert.fail(`no request to ${path} was received`);

test('the signature of a write is valid with the published keys, and invalid after any change to the request', async () => {
  await owner.publish('orders.cancel', cancelOrderOperation(upstream, { binding: { sign: true } }));
  const { body, text: said } = await call('orders.cancel', { orderId: 'A 1/ü', reason: 'late' }, 'one');
  assert.equal(body.status, 'succeeded', said);
  const request = lastRequest('/orders/');
  const keys = await readKeySet();
  verifySignature(request, keys);
  const { headers } = request;
  assert.deepEqual([headers['idempotency-key'], headers['berth-invocation-id']], [body.id, body.id]);
  assert.ok(Math.abs(Date.parse(text(headers.date)) - Date.now()) < 60_000);
  for (const changedRequest of [
    { ...request, method: 'PUT' },
    { ...request, url: `${request.url}?more=1` },
    { ...request, body: request.body.replace('late', 'soon') },
    { ...request, headers: { ...headers, host: 'other.example' } },
    { ...request, headers: { ...headers, date: new Date(0).toUTCString() } },
    { ...request, headers: { ...headers, 'berth-invocation-id': 'other' } },
    { ...request, headers: { ...headers, 'idempotency-key': 'other' } },
    { ...request, headers: { ...headers, 'content-digest': 'sha-256=:AAAA:' } },
    {
      ...request,
      headers: { ...headers, 'signature-input': text(headers['signature-input']).replace('created=1', 'created=2') },
    },
  ])
    assert.throws(() => verifySignature(changedRequest, keys), assert.AssertionError);
});

test('the signature of a read without a body covers its query, and the request has the idempotency header of its binding', async () => {
  await owner.publish('orders.read', {
    ...cancelOrderOperation(upstream, { effect: 'read' }),
    binding: {
      ...{ method: 'GET', url: `${upstream.url}/read/{orderId}?view=a%2Fb`, query: { why: '/reason' } },
      ...{ sign: true, idempotencyHeader: 'X-Request-Id' },
    },
  });
  const { body, text: said } = await call('orders.read', { orderId: 'A-1', reason: 'a&b=c d' }, 'two');
  assert.equal(body.status, 'succeeded', said);
  const request = lastRequest('/read/');
  verifySignature(request, await readKeySet());
  assert.deepEqual([request.body, request.headers['x-request-id']], ['', body.id]);
});

test('a binding can use Idempotency-Key as its idempotency header, and the request is signed', async () => {
  await owner.publish(
    'orders.cancel',
    cancelOrderOperation(upstream, { binding: { sign: true, idempotencyHeader: 'Idempotency-Key' } }),
  );
  const { body, text: said } = await call('orders.cancel', { orderId: 'A-2' }, 'three');
  assert.equal(body.status, 'succeeded', said);
  verifySignature(lastRequest('/orders/A-2'), await readKeySet());
});

test('calls and receipts are signed with the new key after a rotation, and earlier signatures are still valid', async () => {
  const earlierRequest = lastRequest('/orders/A-2');
  const { receipt: old = '' } = (await call('orders.cancel', { orderId: 'A-2' }, 'kept')).body;
  const keysBefore = await readReceiptKeys();
  const rotateResult = await server.operate('keys', 'rotate-signing');
  assert.equal(rotateResult.code, 0, rotateResult.stderr);
  const { body } = await call('orders.cancel', { orderId: 'A-3' }, 'four');
  assert.equal(body.status, 'succeeded');
  const keys = await readKeySet();
  assert.notEqual(verifySignature(lastRequest('/orders/A-3'), keys), verifySignature(earlierRequest, keys));
  const keysAfter = await readReceiptKeys();
  for (const receipt of [old, body.receipt ?? '']) assert.ok(verifyReceipt(receipt, { keys: keysAfter }));
  assert.ok(verifyReceipt(old, { keys: keysBefore }));
  assert.throws(() => verifyReceipt(body.receipt ?? '', { keys: keysBefore }), /a key that is not in the key set/);
});

test('a call sends no signature headers if the binding does not enable signing', async () => {
  await owner.publish('orders.cancel', cancelOrderOperation(upstream, { binding: { sign: false } }));
  assert.equal((await call('orders.cancel', { orderId: 'A-4' }, 'five')).body.status, 'succeeded');
  const { headers } = lastRequest('/orders/A-4');
  for (const name of ['signature', 'signature-input', 'content-digest', 'berth-invocation-id'])
    assert.equal(headers[name], undefined);
});
