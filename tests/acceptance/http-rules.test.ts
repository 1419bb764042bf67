import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { parse } from 'yaml';
import { AGENT_KEY_SCOPES } from '../../contract/agent-keys.ts';
import type { ErrorBody } from '../../contract/common.ts';
import type { Context } from '../../contract/contexts.ts';
import type { DownloadPage } from '../../contract/files.ts';
import type { DebugUrls } from '../../contract/live.ts';
import { openApiDocument } from '../../contract/openapi.ts';
import type { Session } from '../../contract/sessions.ts';
import { TOKEN_SCOPES } from '../../contract/tokens.ts';
import { makeAuthority } from '../harness/authority.ts';
import { CdpClient, expectUpgradeRefusal } from '../harness/cdp.ts';
import { LIGHT_ENGINE } from '../harness/engine.ts';
import { messagingExtension } from '../harness/extensions.ts';
import { issueAgentKey } from '../harness/operations.ts';
import { Person } from '../harness/person.ts';
import { type ApiOptions, startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';
import { uploadRequest } from '../harness/upload.ts';

const server = await startServer({ env: { BERTH_ENGINE: LIGHT_ENGINE } });
const { token } = JSON.parse((await server.operate('tokens', 'create', '--json')).stdout);

const SESSIONS = '/v1/browsers/sessions';
const UNKNOWN_ID = '01a1fa50-5319-7450-a6b3-c787ada50631';
const JSON_HEADERS = { 'content-type': 'application/json' };
const BODY_BYTES_MAX = 1_000_000;

// ---- errors -------------------------------------------------------------------------------------------------------

test('a 404 response has the documented error body, and a header with the same request id', async () => {
  const { status, headers, body } = await server.api('GET', `${SESSIONS}/${UNKNOWN_ID}`);
  assert.equal(status, 404);
  assert.equal(headers['content-type'], 'application/json; charset=utf-8');
  const { message, requestId, ...rest } = body;
  assert.deepEqual(rest, { statusCode: 404, error: 'Not Found', code: 'not_found' });
  assert.match(message, new RegExp(UNKNOWN_ID));
  assert.equal(requestId, headers['x-request-id']);
});

test('a response keeps the request id of the caller if the id is well-formed', async () => {
  const validIdResponse = await server.api('GET', '/healthz', { headers: { 'x-request-id': 'nightly-2031.7:a' } });
  assert.equal(validIdResponse.headers['x-request-id'], 'nightly-2031.7:a');
  const longIdResponse = await server.api('GET', '/healthz', { headers: { 'x-request-id': 'x'.repeat(300) } });
  assert.match(String(longIdResponse.headers['x-request-id']), /^req_[0-9a-f]{32}$/);
});

for (const path of ['/nothing', '/v1', '/v1/browsers', '/v1/browsers/nothing', '/v1/fetch', '/v1/webhooks'])
  test(`an unknown path returns 404: ${path}`, async () => {
    const { status, body } = await server.api('GET', path);
    assert.equal(status, 404);
    assert.equal(body.code, 'route_not_found');
    assert.match(body.message, /\/docs/);
  });

for (const [method, path, allow] of [
  ['DELETE', SESSIONS, 'GET, HEAD, POST'],
  ['PUT', `${SESSIONS}/${UNKNOWN_ID}`, 'GET, HEAD, POST'],
  ['POST', '/healthz', 'GET, HEAD'],
  ['TRACE', SESSIONS, 'GET, HEAD, POST'],
  ['POST', '/openapi.yaml', 'GET, HEAD'],
  ['OPTIONS', '/docs/openapi.yaml', 'GET, HEAD'],
  ['DELETE', '/v1/browsers/openapi.json', 'GET, HEAD'],
  ['GET', `/v1/applications/${UNKNOWN_ID}/agent-keys/${UNKNOWN_ID}/rotate`, 'POST'],
] as const)
  test(`an unsupported method returns 405: ${method} ${path}`, async () => {
    const { status, headers, body } = await server.api(method, path, { key: null });
    assert.equal(status, 405);
    assert.equal(headers.allow, allow);
    assert.equal(body.code, 'method_not_allowed');
  });

test('a path that cannot be decoded is refused with 400', async () => {
  const path = '/v1/consumer/applications/a/providers/%/passkeys.list';
  const { status, body } = await server.api('POST', path, { key: null });
  assert.deepEqual([status, body.code], [400, 'invalid_request']);
});

test('a fragment in the request line is ignored', async () => {
  const path = '/v1/applications/a#b/webhooks/c';
  const outgoingRequest = request(server.url, { method: 'DELETE', path, agent: false });
  outgoingRequest.end();
  const [response]: IncomingMessage[] = await once(outgoingRequest, 'response');
  assert.equal(response?.statusCode, 405);
  const { code, message }: ErrorBody = JSON.parse(await text(response));
  assert.deepEqual([code, /GET/.test(message)], ['method_not_allowed', true]);
});

test('the server ignores an unknown value in the Expect header', async () => {
  const { status, headers } = await server.api('GET', SESSIONS, { headers: { expect: 'the-best' } });
  assert.equal(status, 200);
  assert.ok(headers['x-request-id']);
});

test('the server ignores an offer to upgrade to a protocol other than WebSocket', async () => {
  const headers = {
    connection: 'Upgrade, HTTP2-Settings',
    upgrade: 'h2c',
    'http2-settings': 'AAMAAABkAAQAoAAAAAIAAAAA',
  };
  for (const [method, path, body, status] of [
    ['GET', SESSIONS, undefined, 200],
    ['POST', SESSIONS, { timeout: 1 }, 400],
    ['GET', `${SESSIONS}/${UNKNOWN_ID}/connect`, undefined, 426],
  ] as const) {
    const response = await server.api(method, path, { headers, ...(body ? { body } : {}) });
    assert.equal(response.status, status, `${method} ${path}: ${response.text}`);
  }
});

test('an id with percent-encoded path traversal (`..%2f`) returns 404', async () => {
  const { status, body } = await server.api('GET', `${SESSIONS}/..%2f..%2fetc`);
  assert.equal(status, 404);
  assert.equal(body.code, 'not_found');
});

test('an invalid id of any length returns 404', async () => {
  for (const part of ['x'.repeat(2048), 'x'.repeat(2049), 'x'.repeat(10_000)])
    for (const path of [`${SESSIONS}/${part}`, `/v1/browsers/contexts/${part}/versions`]) {
      const { status, body } = await server.api('GET', path);
      assert.deepEqual([status, body.code], [404, 'not_found'], path.slice(0, 60));
      assert.ok(body.message.length < 500, 'the message does not repeat the whole path');
    }
});

test('the response to a refused write states whether to retry, and the response to a refused read does not', async () => {
  const writeRefusal = await server.api('POST', SESSIONS, { body: { timeout: 1 } });
  assert.equal(writeRefusal.headers['x-should-retry'], 'false');
  const readRefusal = await server.api('GET', `${SESSIONS}/${UNKNOWN_ID}`);
  assert.equal(readRefusal.headers['x-should-retry'], undefined);
});

test('the server responds to malformed HTTP with the error body, and continues to run', async () => {
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
  await once(socket, 'connect');
  socket.end('THIS IS NOT HTTP\r\n\r\n');
  const reply = await text(socket);
  assert.match(reply, /^HTTP\/1\.1 400 /);
  const body: ErrorBody = JSON.parse(reply.slice(reply.indexOf('\r\n\r\n')));
  assert.equal(body.code, 'invalid_request');
  assert.equal((await server.api('GET', '/healthz')).status, 200);
});

test('a request with oversized headers is refused with 431', async () => {
  const { status, body } = await server.api('GET', '/healthz', { headers: { 'x-long': 'x'.repeat(100_000) } });
  assert.equal(status, 431);
  assert.equal(body.code, 'headers_too_large');
});

// ---- bodies -------------------------------------------------------------------------------------------------------

for (const [what, body] of [
  ['cut off', '{"timeout": 60'],
  ['with a comment', '{"timeout": /* minute */ 60}'],
  ['not JSON', 'timeout=60'],
  ['with a trailing comma', '{"timeout": 60,}'],
] as const)
  test(`an invalid body is refused: ${what}`, async () => {
    const { status, body: error } = await server.api('POST', SESSIONS, { body, headers: JSON_HEADERS });
    assert.equal(status, 400);
    assert.equal(error.code, 'invalid_request');
    assert.match(error.message, /JSON/);
  });

for (const body of ['[]', '"text"', '7', 'null'])
  test(`a body that is not a JSON object is refused: ${body}`, async () => {
    const { status, body: error } = await server.api('POST', SESSIONS, { body, headers: JSON_HEADERS });
    assert.equal(status, 400);
    assert.equal(error.code, 'invalid_request');
  });

test('a body of 1 MB is refused with 413, and a body that is one byte smaller is read completely', async () => {
  const bodyOf = (bytes: number): string => `{"x":"${'x'.repeat(bytes - 8)}"}`;
  const headers = { ...JSON_HEADERS, prefer: 'handling=strict' };
  const oversizedResponse = await server.api('POST', SESSIONS, { body: bodyOf(BODY_BYTES_MAX), headers });
  assert.equal(oversizedResponse.status, 413);
  assert.equal(oversizedResponse.body.code, 'payload_too_large');
  const acceptedResponse = await server.api('POST', SESSIONS, { body: bodyOf(BODY_BYTES_MAX - 1), headers });
  assert.equal(acceptedResponse.body.code, 'unknown_field', 'the body was read to its end');
});

test('the error for an oversized body states the limit and gives advice', async () => {
  const { body } = await server.api('POST', SESSIONS, { body: 'x'.repeat(BODY_BYTES_MAX), headers: JSON_HEADERS });
  assert.match(body.message, /at most 999999 bytes.*Send a smaller body/);
  assert.deepEqual(body.details, { limit: BODY_BYTES_MAX - 1 });
});

test('unknown fields in a new context or in imported storage state cause a warning, or are refused if the caller asks for strict handling', async () => {
  const createResponse = await server.api<Context>('POST', '/v1/browsers/contexts', { body: { nmae: 'shop' } });
  assert.equal(createResponse.status, 201);
  assert.deepEqual(
    createResponse.body.warnings?.map(({ code, path }) => [code, path]),
    [['unknown_field', 'nmae']],
  );
  const path = `/v1/browsers/contexts/${createResponse.body.id}`;
  const storageState = { cookies: [], origins: [{ origin: 'https://shop.example', localStorage: [], indexedDB: [] }] };
  const importResponse = await server.api<Context>('POST', `${path}/storage-state`, { body: storageState });
  assert.equal(importResponse.status, 200);
  assert.deepEqual(
    importResponse.body.warnings?.map(warning => warning.path),
    ['origins[0].indexedDB'],
  );
  assert.equal((await server.api<Context>('GET', path)).body.warnings, undefined);
  for (const [url, body] of [
    ['/v1/browsers/contexts', { nmae: 'shop' }],
    [`${path}/storage-state`, storageState],
  ] as const) {
    const strictRefusal = await server.api('POST', url, { body, headers: { prefer: 'handling=strict' } });
    assert.deepEqual([strictRefusal.status, strictRefusal.body.code], [400, 'unknown_field']);
  }
  assert.equal((await server.api('DELETE', path)).status, 204);
});

test('a response contains at most a hundred warnings about unknown fields', async () => {
  const body = Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`field${index}`, 1]));
  const createResponse = await server.api<Context>('POST', '/v1/browsers/contexts', { body });
  assert.equal(createResponse.body.warnings?.length, 100);
  assert.equal((await server.api('DELETE', `/v1/browsers/contexts/${createResponse.body.id}`)).status, 204);
});

test('a body that is nested too deeply is refused', async () => {
  const deep = `${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}`;
  const { status, body } = await server.api('POST', SESSIONS, { body: deep, headers: JSON_HEADERS });
  assert.equal(status, 400);
  assert.equal(body.code, 'invalid_request');
});

test('a body with __proto__ as a field name is refused', async () => {
  const { status } = await server.api('POST', SESSIONS, {
    body: '{"userMetadata":{"__proto__":{"admin":true}}}',
    headers: JSON_HEADERS,
  });
  assert.equal(status, 400);
});

test('a body with an unsupported content type is refused', async () => {
  const { status, body } = await server.api('POST', SESSIONS, {
    body: '<session/>',
    headers: { 'content-type': 'application/xml' },
  });
  assert.equal(status, 415);
  assert.equal(body.code, 'unsupported_media_type');
});

test('an update with an empty JSON body and a delete with a JSON content type are accepted', async () => {
  const { id } = await server.createSession({ keepAlive: true });
  const updateResponse = await server.api<Session>('POST', `${SESSIONS}/${id}`, { body: '', headers: JSON_HEADERS });
  assert.deepEqual([updateResponse.status, updateResponse.body.status], [200, 'RUNNING'], updateResponse.text);
  await server.release(id);
  const path = await createObject('/v1/account/tokens', {
    key: token,
    body: { name: 'short', scopes: ['audit:read'] },
  });
  const deleteResponse = await server.api('DELETE', path, { headers: JSON_HEADERS, key: token });
  assert.equal(deleteResponse.status, 204, deleteResponse.text);
});

/** Creates an object, and returns its path. */
async function createObject(path: string, options: ApiOptions): Promise<string> {
  const { status, body, text: said } = await server.api<{ id: string }>('POST', path, options);
  assert.ok(status === 200 || status === 201, said);
  return `${path}/${body.id}`;
}

// ---- queries, ids, versions, repetitions ----------------------------------------------------------------------------

test('an unknown query parameter is refused, and the error suggests the most similar parameter', async () => {
  const list = await server.api('GET', `${SESSIONS}?stauts=RUNNING`);
  assert.deepEqual([list.status, list.body.code], [400, 'invalid_query']);
  assert.match(list.body.message, /"stauts".*Did you mean status\?/);
  assert.deepEqual(list.body.details, {
    parameter: 'stauts',
    nearest: 'status',
    known: [
      'status',
      'q',
      'endReason',
      'keyId',
      'atLeastSeconds',
      'atMostSeconds',
      'createdAfter',
      'createdBefore',
      'limit',
      'before',
    ],
  });
  const readRefusal = await server.api('GET', `${SESSIONS}/${UNKNOWN_ID}?expand=true`);
  assert.deepEqual([readRefusal.status, readRefusal.body.code], [400, 'invalid_query']);
  assert.match(readRefusal.body.message, /has no query parameters/);
  const writeRefusal = await server.api('POST', `${SESSIONS}?timeout=60`);
  assert.deepEqual(
    [writeRefusal.status, writeRefusal.body.code, writeRefusal.headers['x-should-retry']],
    [400, 'invalid_query', 'false'],
  );
  assert.equal((await server.api('GET', '/v1/applications?cursr=x', { key: token })).body.details?.nearest, 'cursor');
});

test('unknown query parameters are accepted on the compatibility mount and on the health endpoint', async () => {
  for (const path of ['/v1/sessions?stauts=RUNNING', '/v1/browsers/v1/sessions?stauts=RUNNING', '/healthz?from=proxy'])
    assert.equal((await server.api('GET', path)).status, 200, path);
});

test('ids in paths, queries and bodies are accepted in upper case', async () => {
  const projectId = server.applicationId.toUpperCase();
  const createResponse = await server.api<Context>('POST', '/v1/browsers/contexts', { body: { projectId } });
  assert.equal(createResponse.status, 201, createResponse.text);
  const { id } = createResponse.body;
  assert.equal((await server.api<Context>('GET', `/v1/browsers/contexts/${id.toUpperCase()}`)).body.id, id);
  const session = await server.createSession({ projectId, context: { id: id.toUpperCase() } });
  assert.equal(session.contextId, id);
  const upperCaseId = session.id.toUpperCase();
  const events = await server.api<{ data: unknown[] }>('GET', `/v1/browsers/events?sessionId=${upperCaseId}`);
  assert.ok(events.body.data.length > 0);
  const versionPath = `/connect/json/version?signingKey=${session.signingKey}`;
  assert.equal((await server.api('GET', `${SESSIONS}/${upperCaseId}${versionPath}`, { key: null })).status, 200);
  const releaseBody = { projectId, status: 'REQUEST_RELEASE' };
  assert.equal((await server.api('POST', `${SESSIONS}/${upperCaseId}`, { body: releaseBody })).status, 200);
  assert.equal((await server.api('DELETE', `/v1/browsers/contexts/${id.toUpperCase()}`)).status, 204);
});

test('If-Match: * matches any revision', async () => {
  const path = `/v1/applications/${server.applicationId}`;
  const headers = { 'if-match': '*' };
  const { body } = await server.api<{ name: string }>('GET', path, { key: token });
  const patchResponse = await server.api('PATCH', path, { key: token, headers, body: { name: body.name } });
  assert.equal(patchResponse.status, 200, patchResponse.text);
  const limitsResponse = await server.api('PUT', `${path}/limits`, { key: token, headers, body: {} });
  assert.equal(limitsResponse.status, 200, limitsResponse.text);
  const keyResponse = await server.api<{ id: string }>('POST', `${path}/agent-keys`, {
    key: token,
    body: { name: 'starred' },
  });
  const keyPath = `${path}/agent-keys/${keyResponse.body.id}`;
  assert.equal((await server.api('PATCH', keyPath, { key: token, headers, body: { name: 'other' } })).status, 200);
  assert.equal((await server.api('DELETE', keyPath, { key: token })).status, 204);
});

test('a delete that an official client retries returns the same response as the first delete, and any other repeated delete returns 404', async () => {
  const headers = { 'x-stainless-retry-count': '1' };
  const keysPath = `/v1/applications/${server.applicationId}/agent-keys`;
  const authorityUpload = await uploadRequest('ca.pem', makeAuthority('Short').pem);
  for (const [path, key] of [
    [
      await createObject('/v1/browsers/extensions', await uploadRequest('e.zip', messagingExtension('short'))),
      server.key,
    ],
    [await createObject('/v1/browsers/certificates', authorityUpload), server.key],
    [await createObject('/v1/browsers/contexts', { body: {} }), server.key],
    [`/v1/browsers/downloads/${await downloadFile()}`, server.key],
    [await createObject(keysPath, { key: token, body: { name: 'short' } }), token],
    [await createObject('/v1/account/tokens', { key: token, body: { name: 'short', scopes: ['audit:read'] } }), token],
  ]) {
    const firstResponse = await server.api('DELETE', path, { key });
    assert.equal(firstResponse.status, 204, firstResponse.text);
    const secondResponse = await server.api('DELETE', path, { key, headers });
    assert.deepEqual([secondResponse.status, secondResponse.text], [firstResponse.status, firstResponse.text], path);
    assert.equal((await server.api('DELETE', path, { key })).status, 404, path);
  }
});

/** Downloads a file in a session, and returns the id of the stored file. */
async function downloadFile(): Promise<string> {
  const session = await server.createSession({ keepAlive: true });
  const client = await CdpClient.connect(session.connectUrl);
  const click = "Object.assign(document.createElement('a'), { href: 'data:,x', download: 'x.txt' }).click()";
  await client.evaluate(click, await client.attachToPage());
  const { body } = await eventually(
    'the file to be stored',
    () => server.api<DownloadPage>('GET', `/v1/browsers/downloads?sessionId=${session.id}`),
    reply => reply.body.downloads.length === 1,
  );
  await client.close();
  await server.release(session.id);
  return body.downloads[0]?.id ?? assert.fail();
}

test('connections to the live view address and the connect address of an ended session are refused with 410', async () => {
  const session = await server.createSession({ keepAlive: true });
  const { wsUrl = '' } = (await server.api<DebugUrls>('GET', `${SESSIONS}/${session.id}/debug`)).body;
  await server.release(session.id);
  for (const url of [wsUrl, session.connectUrl]) {
    const { status, body } = await expectUpgradeRefusal(url);
    assert.deepEqual([status, body.code], [410, 'session_ended'], url);
  }
  assert.equal((await expectUpgradeRefusal(wsUrl.replace(/token=[^&]*/, 'token=lv_x'))).status, 403);
});

test('the debug addresses of an ended session can be neither read nor revoked', async () => {
  const { id } = await server.createSession({ keepAlive: true });
  await server.release(id);
  for (const method of ['GET', 'DELETE']) {
    const { status, body } = await server.api(method, `${SESSIONS}/${id}/debug`);
    assert.deepEqual([status, body.code], [409, 'session_not_running'], method);
  }
});

/** Requests that are refused before their whole body has been read. */
const EARLY_REFUSALS = [
  ['a JSON body over the limit', SESSIONS, JSON_HEADERS, 413],
  ['a body of an unknown type', SESSIONS, { 'content-type': 'text/plain' }, 415],
  ['a body without a credential', SESSIONS, { ...JSON_HEADERS, authorization: 'Bearer bak_unknown' }, 401],
  [
    'a certificate over the limit',
    '/v1/browsers/certificates',
    { 'content-type': 'multipart/form-data; boundary=x' },
    413,
  ],
  [
    'an upload to a session that does not exist',
    `${SESSIONS}/${UNKNOWN_ID}/uploads`,
    { 'content-type': 'multipart/form-data; boundary=x' },
    404,
  ],
] as const;

for (const [what, path, headers, status] of EARLY_REFUSALS)
  for (const chunked of [false, true])
    test(`after the refusal of ${what}${chunked ? ', sent in chunks' : ''}, the connection can be reused or the response has Connection: close`, async () => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      const isForm = headers['content-type'].startsWith('multipart');
      const preamble = isForm ? '--x\r\ncontent-disposition: form-data; name="file"; filename="a.pem"\r\n\r\n' : '';
      const ending = isForm ? '\r\n--x--\r\n' : '';
      try {
        for (let round = 0; round < 4; round++) {
          const lengthHeaders = chunked
            ? {}
            : { 'content-length': preamble.length + 4 * BODY_BYTES_MAX + ending.length };
          const firstRequest = request(`${server.url}${path}`, {
            method: 'POST',
            agent,
            headers: { authorization: `Bearer ${server.key}`, ...headers, ...lengthHeaders },
          });
          const refusal = once(firstRequest, 'response');
          firstRequest.write(preamble);
          for (let part = 0; part < 4; part++) firstRequest.write(Buffer.alloc(BODY_BYTES_MAX, 'x'));
          firstRequest.end(ending);
          const [response]: IncomingMessage[] = await refusal;
          assert.equal(response?.statusCode, status);
          const usedSocket = firstRequest.socket;
          await text(response);
          const nextRequest = request(`${server.url}/healthz`, { agent });
          const nextResponse = once(nextRequest, 'response');
          nextRequest.end();
          const [healthResponse]: IncomingMessage[] = await nextResponse;
          assert.equal(healthResponse?.statusCode, 200);
          await text(healthResponse);
          assert.ok(nextRequest.socket === usedSocket || response.headers.connection === 'close', 'closed unannounced');
        }
      } finally {
        agent.destroy();
      }
    });

// ---- credentials --------------------------------------------------------------------------------------------------

interface DescribedOperation {
  readonly security?: ReadonlyArray<Record<string, unknown>>;
  readonly parameters?: ReadonlyArray<{ name: string; in: string }>;
}
interface OpenApi {
  readonly openapi: string;
  readonly paths: Record<string, Record<string, DescribedOperation>>;
}

const apiDescription = (await server.api<OpenApi>('GET', '/v1/browsers/openapi.json')).body;
const OPERATIONS = Object.entries(apiDescription.paths).flatMap(([path, methods]) =>
  Object.entries(methods)
    .filter(([method]) => /^(get|post|patch|put|delete)$/.test(method))
    .map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
);
const isGuarded = ({ operation }: { operation: DescribedOperation }): boolean => (operation.security ?? []).length > 0;

const CONSUMER_SIGN_IN_PATHS = OPERATIONS.map(({ path }) => path)
  .sort()
  .filter(path => /^\/v1\/consumer\/.*\/(session\.(start|exchange|refresh)|hosted\.\w+)$/.test(path));

test('in the API description, all operations except those that this test lists require a credential', () => {
  assert.ok(CONSUMER_SIGN_IN_PATHS.length > 5);
  assert.ok(OPERATIONS.filter(isGuarded).length > 15);
  assert.deepEqual(
    OPERATIONS.filter(operation => !isGuarded(operation))
      .map(({ path }) => path)
      .sort(),
    [
      '/',
      '/.well-known/jwks.json',
      '/.well-known/oauth-authorization-server',
      '/healthz',
      // Anybody who has a token may revoke the token.
      '/v1/account/tokens/revoke',
      // A signed link is its own credential.
      '/v1/browsers/files/{token}',
      '/v1/config',
      // A consumer who signs in has no credential yet.
      ...CONSUMER_SIGN_IN_PATHS,
      ...['/v1/device/authorizations', '/v1/device/tokens'],
      '/v1/purchases/catalog',
      '/v1/receipts/{jti}/status',
      ...['/v1/sign-in/email-code', '/v1/sign-in/email-code/verify', '/v1/sign-in/passkey'],
      ...['/v1/sign-in/passkey/options', '/v1/sign-in/password', '/v1/sign-in/register'],
      ...['/v1/sign-in/second-factor', '/v1/sign-in/setup'],
    ],
  );
});

for (const { method, path } of OPERATIONS.filter(isGuarded))
  test(`a request without a credential is refused: ${method} ${path}`, async () => {
    const url = path.replace(/\{\w+\}/g, UNKNOWN_ID);
    const { status, headers, body } = await server.api(method, url, { key: null });
    if (path.endsWith('/connect')) {
      // This path requires a credential only for a WebSocket upgrade.
      assert.equal(body.code, 'upgrade_required');
      const refusal = await expectUpgradeRefusal(`${server.url.replace('http', 'ws')}${url}`);
      assert.equal(refusal.status, 401);
      assert.equal(refusal.body.code, 'missing_credentials');
      return;
    }
    assert.equal(status, 401);
    assert.equal(headers['www-authenticate'], 'Bearer');
    assert.equal(body.code, 'missing_credentials');
  });

const takes = ({ operation }: { operation: DescribedOperation }, scheme: string): boolean =>
  operation.security?.every(one => scheme in one) ?? false;
const isForPeople = (one: { operation: DescribedOperation }): boolean => takes(one, 'signInCookie');
const OPERATIONS_WITH_ID = OPERATIONS.filter(isGuarded).filter(({ path }) => path.includes('{'));

for (const { method, path } of OPERATIONS_WITH_ID.filter(isForPeople))
  test(`a person gets 404 for an id that does not exist: ${method} ${path}`, async () => {
    const person = await signInOwner();
    const body = path.includes('/members/') && method === 'PATCH' ? { role: 'viewer' } : validBodyFor(method, path);
    const { status, body: refusal, text: said } = await person.send(method, path.replace(/\{\w+\}/g, UNKNOWN_ID), body);
    assert.deepEqual([status, (refusal as ErrorBody).code], [404, 'not_found'], said);
  });

let ownerPromise: Promise<Person> | undefined;
/** Signs in the owner of the first account, once for all tests. */
const signInOwner = (): Promise<Person> => {
  ownerPromise ??= Person.setUpOwner(server);
  return ownerPromise;
};

/** Whether the operation takes a device code, which is its own credential. */
const takesDeviceCode = (one: { operation: DescribedOperation }): boolean => takes(one, 'deviceCode');
/** Whether a lease token or the secret of a claim link authenticates the request, instead of an access token. */
const takesHandoffSecret = ({ operation }: { operation: DescribedOperation }): boolean =>
  operation.security?.some(one => 'leaseToken' in one || 'claimSecret' in one) === true &&
  operation.security.every(one => !('accessToken' in one));

/**
 * Whether the operation takes a consumer session, which belongs to one application. attacks/consumers.test.ts tries
 * consumer sessions with another application.
 */
const takesConsumerSession = ({ operation }: { operation: DescribedOperation }): boolean =>
  operation.security?.some(one => 'consumerSession' in one) === true;
const KEY_OPERATIONS = OPERATIONS_WITH_ID.filter(
  one => !isForPeople(one) && !takesDeviceCode(one) && !takesHandoffSecret(one) && !takesConsumerSession(one),
);

for (const { method, path } of KEY_OPERATIONS)
  test(`a request with an id of another application is refused with 404: ${method} ${path}`, async () => {
    const otherApp = await createOtherApplication();
    const url = path
      .replace('/agent/applications/{appId}', `/agent/applications/${otherApp.applicationId}`)
      .replace('{appId}', server.applicationId)
      .replace('{keyId}', otherApp.keyId)
      .replace('/projects/{id}', `/projects/${otherApp.applicationId}`)
      .replace('{id}', otherApp.sessionId)
      .replace('{operationId}', 'browser.pdf')
      .replace('{hostId}', otherApp.sessionId)
      .replace('{pageId}', '0');
    const key = /^\/v1\/(applications|account|topups|operator)/.test(path) ? token : await issueKeyOnce();
    const body = validBodyFor(method, path);
    if (/^\/v1\/(topups\/)?applications\/\{appId\}/.test(path) && !path.includes('{keyId}'))
      return assertForeignApplication(method, path, otherApp);
    const response = await server.api(method, url, { key, headers: { 'if-match': '"1"' }, ...(body ? { body } : {}) });
    if (path.endsWith('/connect')) {
      // This path looks for the session only for a WebSocket upgrade.
      assert.equal(response.body.code, 'upgrade_required');
      const address = `${server.url.replace('http', 'ws')}${url}`;
      const refusal = await expectUpgradeRefusal(address, { authorization: `Bearer ${key}` });
      assert.deepEqual([refusal.status, refusal.body.code], [404, 'not_found']);
      return;
    }
    assert.equal(response.status, 404, response.text);
    assert.equal(response.body.code, 'not_found');
  });

let agentKeyPromise: Promise<string> | undefined;
/** Returns a key with every scope for the first application. */
function issueKeyOnce(): Promise<string> {
  agentKeyPromise ??= issueAgentKey(server, { scopes: [...AGENT_KEY_SCOPES] }).then(({ key }) => key);
  return agentKeyPromise;
}

/** Returns a valid body, so that the request is not refused before its id is checked. */
function validBodyFor(method: string, path: string): object | undefined {
  if (method === 'PATCH') return path.includes('/hosts/') ? { draining: true } : { name: 'mine' };
  if (method !== 'POST') return undefined;
  if (path.endsWith('/mcp')) return { jsonrpc: '2.0', id: 1, method: 'ping' };
  if (path.endsWith('/invoke') || path.endsWith('/prepare')) return { input: {} };
  if (path.endsWith('/decision')) return { decision: 'refuse', digest: 'x' };
  if (path.endsWith('agent-keys')) return { name: 'x' };
  if (path.endsWith('/restore')) return { version: 1 };
  if (path.endsWith('/storage-state')) return { cookies: [], origins: [] };
  return undefined;
}

/** Asserts that a token restricted to the other application gets 404 for the first application. */
async function assertForeignApplication(method: string, path: string, otherApp: OtherApplication): Promise<void> {
  const tokenResponse = await server.api<{ token: string }>('POST', '/v1/account/tokens', {
    key: token,
    body: {
      name: 'confined',
      scopes: TOKEN_SCOPES.filter(scope => scope !== 'account:tokens'),
      applicationIds: [otherApp.applicationId],
    },
  });
  assert.equal(tokenResponse.status, 201, tokenResponse.text);
  const own = path.replace('{appId}', server.applicationId).replace(/\{\w+\}/g, UNKNOWN_ID);
  const { status, body } = await server.api(method, own, {
    key: tokenResponse.body.token,
    headers: { 'if-match': '"1"' },
    ...(method === 'GET' || method === 'DELETE' ? {} : { body: bodyFor(method, path) }),
  });
  assert.equal(status, 404);
  assert.equal(body.code, 'not_found');
}

function bodyFor(method: string, path: string): object {
  if (path.endsWith('/invitations')) return { email: 'a@example.com', role: 'viewer' };
  if (path.endsWith('/webhooks')) return { name: 'mine', url: 'https://hooks.example.com/' };
  if (path.endsWith('/handoffs')) return { sessionId: UNKNOWN_ID, instructions: 'x' };
  if (path.endsWith('/credentials/{id}'))
    return { type: 'api_key', value: { key: 'long-enough' }, hosts: ['a.example.com'] };
  if (path.endsWith('/providers/{providerId}'))
    return { title: 'Mine', issuer: 'https://login.example.com', clientId: 'mine' };
  return method === 'PUT' ? {} : { name: 'mine' };
}

interface OtherApplication {
  readonly applicationId: string;
  readonly keyId: string;
  readonly sessionId: string;
}
let otherApplicationPromise: Promise<OtherApplication> | undefined;
/** Returns a second application with a key and a session. It is created only once. */
function createOtherApplication(): Promise<OtherApplication> {
  otherApplicationPromise ??= (async () => {
    const applicationResponse = await server.api<{ id: string }>('POST', '/v1/applications', {
      key: token,
      body: { name: 'Other' },
    });
    const keysPath = `/v1/applications/${applicationResponse.body.id}/agent-keys`;
    const keyResponse = await server.api<{ id: string; key: string }>('POST', keysPath, {
      key: token,
      body: { name: 'other' },
    });
    const session = await server.createSession({ keepAlive: true }, keyResponse.body.key);
    return { applicationId: applicationResponse.body.id, keyId: keyResponse.body.id, sessionId: session.id };
  })();
  return otherApplicationPromise;
}

// ---- service --------------------------------------------------------------------------------------------------------

test('the OpenAPI document is the same at all three addresses, and has the paths of the contract', async () => {
  const yamlResponse = await server.api<string>('GET', '/openapi.yaml', { key: null });
  const docsYamlResponse = await server.api<string>('GET', '/docs/openapi.yaml', { key: null });
  assert.match(String(yamlResponse.headers['content-type']), /yaml/);
  assert.equal(docsYamlResponse.text, yamlResponse.text);
  assert.deepEqual(parse(yamlResponse.text), apiDescription);
  assert.match(apiDescription.openapi, /^3\.1\./);
  assert.deepEqual(Object.keys(apiDescription.paths), Object.keys(Object(openApiDocument()).paths));
});

test('the health endpoint requires no credential', async () => {
  assert.deepEqual((await server.api('GET', '/healthz', { key: null })).body, { status: 'ok' });
});

test("the operator's listener serves readiness and metrics, and nothing else", async () => {
  const readinessResponse = await server.fetchFromOperator<{
    status: string;
    checks: Array<{ name: string; ok: boolean }>;
  }>('/readyz');
  assert.equal(readinessResponse.status, 200);
  assert.equal(readinessResponse.body.status, 'ready');
  assert.deepEqual(
    readinessResponse.body.checks.map(({ name, ok }) => [name, ok]),
    [
      ['database', true],
      ['slots', true],
      ['browsers', true],
      ['disk', true],
      ['capacity', true],
    ],
  );
  const { status, headers, text: metrics } = await server.fetchFromOperator('/metrics');
  assert.equal(status, 200);
  assert.match(String(headers['content-type']), /^text\/plain/);
  for (const name of [
    'berth_sessions',
    'berth_slots',
    'berth_cdp_clients',
    'berth_http_request_duration_seconds_bucket',
  ])
    assert.match(metrics, new RegExp(`^${name}\\{?`, 'm'));
  for (const [path, method, code] of [
    ['/', 'GET', 404],
    ['/healthz', 'GET', 404],
    [SESSIONS, 'GET', 404],
    ['/metrics', 'POST', 405],
    ['/metrics', 'HEAD', 200],
  ] as const) {
    const reply = await fetch(server.operatorUrl + path, { method });
    assert.equal(reply.status, code, `${method} ${path}`);
    if (method === 'HEAD') assert.equal(await reply.text(), '');
  }
});

test('the root path returns JSON to programs and a page to browsers', async () => {
  const rootResponse = await server.api<{ name: string; docs: string }>('GET', '/', { key: null });
  assert.equal(rootResponse.body.name, 'Berth');
  assert.equal(rootResponse.body.docs, '/docs');
  const page = await server.api('GET', '/', { key: null, headers: { accept: 'text/html' } });
  assert.match(String(page.headers['content-type']), /^text\/html/);
});

test('the Selenium endpoints return a WebDriver error', async () => {
  for (const path of ['/v1/browsers/webdriver', '/v1/browsers/webdriver/session']) {
    const { status, body } = await server.api<{ value: { error: string } }>('POST', path, {
      body: { capabilities: {} },
      key: null,
    });
    assert.equal(status, 501);
    assert.equal(body.value.error, 'unsupported operation');
  }
});

test('the server log has a line at the start and end of a create and a release, without secrets', async () => {
  const { connectUrl, signingKey, id } = await server.createSession();
  await server.api('GET', `${SESSIONS}/${id}/connect/json/version?signingKey=${signingKey}`, { key: null });
  await server.release(id);
  // The server logs the end after it has sent the response.
  for (const event of ['createSession.begin', 'createSession.end', 'updateSession.begin', 'updateSession.end'])
    await eventually(event, () => server.log().some(line => line.includes(`"event":"${event}"`)));
  const logText = server
    .log()
    .filter(line => line.startsWith('{'))
    .join('\n');
  for (const secret of [server.key, token, signingKey, connectUrl])
    assert.ok(!logText.includes(secret), 'a secret in the log');
});

test('ended sessions leave no process, file or unfinished database row behind while a session of another application is running', async () =>
  server.waitUntilSettled([(await createOtherApplication()).sessionId]));
