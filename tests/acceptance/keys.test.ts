import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AgentKey, AgentKeyPage, IssuedAgentKey } from '../../contract/agent-keys.ts';
import type { Application, ApplicationPage } from '../../contract/applications.ts';
import type { ErrorBody } from '../../contract/common.ts';
import type { Session } from '../../contract/sessions.ts';
import type { IssuedToken, Token, TokenPage } from '../../contract/tokens.ts';
import { CdpClient, expectUpgradeRefusal } from '../harness/cdp.ts';
import { LIGHT_ENGINE } from '../harness/engine.ts';
import { type CreatedSession, startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const server = await startServer({ clock: 'test', env: { BERTH_ENGINE: LIGHT_ENGINE } });
// The token of these tests must expire later than the tokens that it issues, because a token cannot outlive its issuer.
const TOKEN_EXPIRES_AT = new Date(Date.now() + 365 * 24 * 3_600_000).toISOString();
const { token } = JSON.parse(
  (await server.operate('tokens', 'create', '--json', '--expires', TOKEN_EXPIRES_AT)).stdout,
);

const SESSIONS = '/v1/browsers/sessions';
const KEYS = `/v1/applications/${server.applicationId}/agent-keys`;
const TOKENS = '/v1/account/tokens';
const HOUR_MS = 3_600_000;

const sendWithToken = <Body = ErrorBody>(method: string, path: string, body?: object, headers = {}) =>
  server.api<Body>(method, path, { key: token, headers, ...(body ? { body } : {}) });

async function issueKey(fields: object = {}): Promise<IssuedAgentKey> {
  const { status, body, text } = await sendWithToken<IssuedAgentKey>('POST', KEYS, { name: 'test', ...fields });
  assert.equal(status, 201, text);
  return body;
}

const listSessionsWith = (key: string) => server.api('GET', SESSIONS, { key });
const timeAfter = (ms: number): string => new Date(server.now().getTime() + ms).toISOString();

// ---- agent keys -----------------------------------------------------------------------------------------------------

test('a key is shown once, works immediately, and is listed without its secret', async () => {
  const issuedKey = await issueKey({ name: 'nightly' });
  assert.match(issuedKey.key, /^bak_/);
  assert.ok(issuedKey.key.startsWith(issuedKey.prefix));
  assert.deepEqual(issuedKey.scopes, ['browsers:read', 'browsers:write', 'browsers:connect', 'browsers:files']);
  assert.equal((await listSessionsWith(issuedKey.key)).status, 200);
  const { body, text } = await sendWithToken<AgentKeyPage>('GET', KEYS);
  const listedKey = body.data.find(({ id }) => id === issuedKey.id);
  assert.equal(listedKey?.name, 'nightly');
  assert.equal(listedKey.status, 'active');
  assert.ok(!text.includes(issuedKey.key));
  const readResponse = await sendWithToken<AgentKey>('GET', `${KEYS}/${issuedKey.id}`);
  assert.equal(readResponse.headers.etag, '"1"');
  assert.ok(!('key' in readResponse.body));
});

test('a revoked key is refused immediately over HTTP and CDP, and its session keeps running', async () => {
  const { id, key } = await issueKey();
  const session = await server.createSession({ keepAlive: true }, key);
  const address = session.connectUrl.replace(/\?.*/, '');
  const client = await CdpClient.connect(address, { authorization: `Bearer ${key}` });
  assert.equal((await sendWithToken('DELETE', `${KEYS}/${id}`)).status, 204);
  const refusal = await listSessionsWith(key);
  assert.equal(refusal.status, 401);
  assert.equal(refusal.body.code, 'invalid_credentials');
  assert.equal((await expectUpgradeRefusal(address, { authorization: `Bearer ${key}` })).status, 401);
  assert.equal((await expectUpgradeRefusal(address, { 'x-bb-api-key': key })).status, 401);
  assert.equal((await client.waitForClose()).code, 4001);
  assert.equal((await server.read(session.id)).status, 'RUNNING');
  assert.equal((await sendWithToken('DELETE', `${KEYS}/${id}`)).status, 404, 'a revoked key cannot be revoked again');
  const listedKey = (await sendWithToken<AgentKeyPage>('GET', KEYS)).body.data.find(one => one.id === id);
  assert.equal(listedKey?.status, 'revoked');
  await server.release(session.id);
});

test('a key that was revoked on the command line is refused', async () => {
  const { id, key } = await issueKey();
  assert.equal((await listSessionsWith(key)).status, 200);
  const { code, stderr } = await server.operate('keys', 'revoke', id);
  assert.equal(code, 0, stderr);
  // The database notifies the server shortly after the command has ended.
  const readStatus = async (): Promise<number> => (await listSessionsWith(key)).status;
  await eventually('the key to be refused', readStatus, status => status === 401);
});

test('an expired key is refused', async () => {
  const { key, id } = await issueKey({ expiresAt: timeAfter(HOUR_MS) });
  assert.equal((await listSessionsWith(key)).status, 200);
  await server.advance(HOUR_MS - 60_000);
  assert.equal((await listSessionsWith(key)).status, 200);
  await server.advance(61_000);
  const refusal = await listSessionsWith(key);
  assert.equal(refusal.status, 401);
  assert.equal(refusal.body.code, 'invalid_credentials');
  assert.equal((await sendWithToken<AgentKey>('GET', `${KEYS}/${id}`)).body.status, 'expired');
});

test('unknown, revoked, expired and malformed keys are refused with the same message', async () => {
  const revokedKey = await issueKey();
  await sendWithToken('DELETE', `${KEYS}/${revokedKey.id}`);
  const expiredKey = await issueKey({ expiresAt: timeAfter(60_000) });
  await server.advance(61_000);
  const mistypedKey = `${server.key.slice(0, -1)}${server.key.endsWith('a') ? 'b' : 'a'}`;
  const messages = [];
  for (const key of [revokedKey.key, expiredKey.key, mistypedKey, 'bak_nonsense', 'nonsense']) {
    const { status, headers, body } = await listSessionsWith(key);
    assert.equal(status, 401);
    assert.equal(headers['www-authenticate'], 'Bearer');
    messages.push(`${body.code} ${body.message}`);
  }
  assert.equal(new Set(messages).size, 1, messages.join('\n'));
});

test('the header X-BB-API-Key is accepted in any letter case, and a request with two different keys is refused', async () => {
  const otherKey = await issueKey();
  const list = (headers: Record<string, string>) => server.api('GET', SESSIONS, { key: null, headers });
  assert.equal((await list({ 'x-bb-api-key': server.key })).status, 200);
  assert.equal((await list({ 'X-BB-API-Key': server.key, authorization: `bearer ${server.key}` })).status, 200);
  const twoKeysResponse = await list({ 'x-bb-api-key': otherKey.key, authorization: `Bearer ${server.key}` });
  assert.equal(twoKeysResponse.status, 401);
  assert.equal(twoKeysResponse.body.code, 'invalid_credentials');
  assert.equal((await list({ authorization: 'Basic YTpi' })).status, 401);
  assert.equal((await list({ cookie: `key=${server.key}` })).body.code, 'missing_credentials');
  const queryResponse = await server.api('GET', `${SESSIONS}?apiKey=${server.key}`, { key: null });
  assert.equal(queryResponse.body.code, 'missing_credentials');
});

test('the wrong kind of credential is refused, and the error names the correct kind', async () => {
  const browserResponse = await server.api('GET', SESSIONS, { key: token });
  assert.equal(browserResponse.status, 401);
  assert.match(browserResponse.body.message, /bak_/);
  const accountResponse = await server.api('GET', '/v1/applications');
  assert.equal(accountResponse.status, 401);
  assert.match(accountResponse.body.message, /bpt_/);
});

test('a key without browsers:connect can manage sessions but cannot connect', async () => {
  const { key } = await issueKey({ scopes: ['browsers:read', 'browsers:write'] });
  const createResponse = await server.api<CreatedSession>('POST', SESSIONS, { body: { keepAlive: true }, key });
  assert.equal(createResponse.status, 201);
  const { id } = createResponse.body;
  const readResponse = await server.api<Session>('GET', `${SESSIONS}/${id}`, { key });
  for (const shown of [createResponse.body, readResponse.body])
    for (const field of ['connectUrl', 'signingKey', 'seleniumRemoteUrl']) assert.ok(!(field in shown), field);
  const address = `${server.url.replace('http', 'ws')}${SESSIONS}/${id}/connect`;
  const refusal = await expectUpgradeRefusal(address, { authorization: `Bearer ${key}` });
  assert.equal(refusal.status, 403);
  assert.equal(refusal.body.code, 'permission_denied');
  const releaseResponse = await server.api<Session>('POST', `${SESSIONS}/${id}`, {
    body: { status: 'REQUEST_RELEASE' },
    key,
  });
  assert.equal(releaseResponse.body.status, 'COMPLETED');
});

test('the scope browsers:read does not allow creating sessions, and browsers:write does not allow listing sessions', async () => {
  const readKey = (await issueKey({ scopes: ['browsers:read'] })).key;
  const writeKey = (await issueKey({ scopes: ['browsers:write'] })).key;
  assert.equal((await listSessionsWith(readKey)).status, 200);
  const refusal = await server.api('POST', SESSIONS, { key: readKey, body: {} });
  assert.equal(refusal.status, 403);
  assert.equal(refusal.body.code, 'permission_denied');
  assert.match(refusal.body.message, /browsers:write/);
  assert.equal((await listSessionsWith(writeKey)).status, 403);
});

for (const [what, fields, path] of [
  ['an empty list of scopes', { scopes: [] }, 'scopes'],
  ['a scope that does not exist', { scopes: ['browsers:everything'] }, 'scopes[0]'],
  ['an expiry in the past', { expiresAt: '2020-01-01T00:00:00.000Z' }, 'expiresAt'],
  ['an invalid expiry', { expiresAt: 'tomorrow' }, 'expiresAt'],
  ['an empty name', { name: '  ' }, 'name'],
  ['a name that is not a string', { name: 7 }, 'name'],
  ['an invalid address range', { cidrAllow: ['localhost'] }, 'cidrAllow[0]'],
  ['a grant with an invalid operation id', { grants: [{ operationId: 'Browser' }] }, 'grants[0].operationId'],
  ['a grant for everything', { grants: [{ operationId: '*' }] }, 'grants[0]'],
  ['a grant for all writes', { grants: [{ operationId: '*', effect: 'write' }] }, 'grants[0].effect'],
  ['a duplicate grant', { grants: [{ operationId: 'a.b' }, { operationId: 'a.b', effect: 'read' }] }, 'grants[1]'],
] as const)
  test(`a new key with ${what} is refused`, async () => {
    const { status, body } = await sendWithToken('POST', KEYS, { name: 'test', ...fields });
    assert.equal(status, 400);
    assert.equal(body.code, 'invalid_request');
    const issues: Array<{ path: string }> = Object(body.details).issues;
    assert.deepEqual(
      issues.map(issue => issue.path),
      [path],
    );
  });

test('an unknown field of a new key is refused, because a misspelled restriction would otherwise be ignored', async () => {
  const { status, body } = await sendWithToken('POST', KEYS, { name: 'test', scope: ['browsers:read'] });
  assert.equal(status, 400);
  assert.equal(body.code, 'unknown_field');
});

test('a key that is restricted to address ranges is refused outside them, and accepted inside', async () => {
  const remoteKey = await issueKey({ cidrAllow: ['203.0.113.0/24'] });
  const refusal = await listSessionsWith(remoteKey.key);
  assert.equal(refusal.status, 403);
  assert.equal(refusal.body.code, 'address_not_allowed');
  const localKey = await issueKey({ cidrAllow: ['203.0.113.0/24', '127.0.0.0/8'] });
  assert.equal((await listSessionsWith(localKey.key)).status, 200);
});

test('a change of a key requires its revision, and takes effect immediately', async () => {
  const { id, key } = await issueKey({ expiresAt: timeAfter(2 * HOUR_MS) });
  const path = `${KEYS}/${id}`;
  assert.equal((await listSessionsWith(key)).status, 200);
  const unconditionalResponse = await sendWithToken('PATCH', path, { name: 'other' });
  assert.equal(unconditionalResponse.status, 428);
  assert.equal(unconditionalResponse.body.code, 'precondition_required');
  const patchResponse = await sendWithToken<AgentKey>(
    'PATCH',
    path,
    { cidrAllow: ['203.0.113.0/24'] },
    { 'if-match': '"1"' },
  );
  assert.equal(patchResponse.status, 200);
  assert.equal(patchResponse.headers.etag, '"2"');
  assert.equal((await listSessionsWith(key)).status, 403);
  const staleResponse = await sendWithToken('PATCH', path, { name: 'other' }, { 'if-match': '"1"' });
  assert.equal(staleResponse.status, 412);
  assert.equal(staleResponse.body.code, 'precondition_failed');
  const expiryResponse = await sendWithToken(
    'PATCH',
    path,
    { expiresAt: timeAfter(3 * HOUR_MS) },
    { 'if-match': '"2"' },
  );
  assert.equal(expiryResponse.status, 400);
  const scopesResponse = await sendWithToken('PATCH', path, { scopes: ['browsers:read'] }, { 'if-match': '"2"' });
  assert.equal(scopesResponse.body.code, 'unknown_field');
});

test('the grants of a key can be replaced, and are kept when the key is rotated', async () => {
  const input = { properties: { url: { pattern: '^https://shop\\.example/' } } };
  const grants = [
    { operationId: 'browser.screenshot', input, maxCallsPerDay: 500, maxCostPerDay: 2_000_000 },
    { operationId: 'orders.cancel', revision: 4 },
    { operationId: '*', effect: 'read' },
  ];
  const issuedKey = await issueKey({ grants, scopes: ['operations:discover', 'operations:invoke'] });
  assert.deepEqual(issuedKey.grants, grants);
  const rotateResponse = await sendWithToken<IssuedAgentKey>('POST', `${KEYS}/${issuedKey.id}/rotate`, {});
  assert.deepEqual(rotateResponse.body.grants, grants);
  const path = `${KEYS}/${rotateResponse.body.id}`;
  const patchResponse = await sendWithToken<AgentKey>('PATCH', path, { grants: [] }, { 'if-match': '"1"' });
  assert.deepEqual([patchResponse.body.grants, patchResponse.body.revision], [[], 2]);
  const bad = { grants: [{ operationId: 'a', input: { properties: { a: { pattern: '(?=a)' } } } }] };
  const refusal = await sendWithToken('PATCH', path, bad, { 'if-match': '"2"' });
  assert.deepEqual([refusal.status, refusal.body.code], [400, 'invalid_schema']);
  assert.match(refusal.body.message, /^grants\[0\]\.input\.properties\.a\.pattern uses lookaround/);
  const unstorable = { grants: [{ operationId: 'a', input: { enum: ['\0', '\ud800'] } }] };
  const unstorableRefusal = await sendWithToken('PATCH', path, unstorable, { 'if-match': '"2"' });
  assert.deepEqual([unstorableRefusal.status, unstorableRefusal.body.code], [400, 'invalid_schema']);
});

test('a rotated key works until its grace period ends', async () => {
  const oldKey = await issueKey({ scopes: ['browsers:read'] });
  const rotateResponse = await sendWithToken<IssuedAgentKey>('POST', `${KEYS}/${oldKey.id}/rotate`, {
    graceSeconds: 600,
  });
  assert.equal(rotateResponse.status, 201);
  assert.deepEqual(rotateResponse.body.scopes, oldKey.scopes);
  assert.equal((await listSessionsWith(oldKey.key)).status, 200);
  assert.equal((await listSessionsWith(rotateResponse.body.key)).status, 200);
  await server.advance(601_000);
  assert.equal((await listSessionsWith(oldKey.key)).status, 401);
  assert.equal((await listSessionsWith(rotateResponse.body.key)).status, 200);
});

// ---- applications -----------------------------------------------------------------------------------------------------

test('applications can be created, read and listed, and renamed if the revision matches', async () => {
  const createResponse = await sendWithToken<Application>('POST', '/v1/applications', { name: ' Shop agent ' });
  assert.equal(createResponse.status, 201);
  assert.equal(createResponse.body.name, 'Shop agent');
  const path = `/v1/applications/${createResponse.body.id}`;
  const readResponse = await sendWithToken<Application>('GET', path);
  assert.deepEqual(readResponse.body, createResponse.body);
  const renameResponse = await sendWithToken<Application>(
    'PATCH',
    path,
    { name: 'Shop' },
    { 'if-match': String(readResponse.headers.etag) },
  );
  assert.equal(renameResponse.body.name, 'Shop');
  assert.equal(renameResponse.body.slug, createResponse.body.slug);
  assert.equal(
    (await sendWithToken('PATCH', path, { name: 'x' }, { 'if-match': String(readResponse.headers.etag) })).status,
    412,
  );
  const firstPageResponse = await sendWithToken<ApplicationPage>('GET', '/v1/applications?limit=1');
  assert.equal(firstPageResponse.body.data[0]?.id, createResponse.body.id, 'newest first');
  const secondPageResponse = await sendWithToken<ApplicationPage>(
    'GET',
    `/v1/applications?limit=1&cursor=${firstPageResponse.body.nextCursor}`,
  );
  assert.equal(secondPageResponse.body.data[0]?.id, server.applicationId);
  const conflictResponse = await sendWithToken('POST', '/v1/applications', {
    name: 'Other',
    slug: createResponse.body.slug,
  });
  assert.equal(conflictResponse.status, 409);
  assert.equal(conflictResponse.body.code, 'name_taken');
  assert.equal((await sendWithToken('GET', '/v1/applications?cursor=made-up')).status, 400);
});

// ---- tokens -----------------------------------------------------------------------------------------------------------

test('a token can use only its scopes, and cannot be issued with the scope account:tokens or a lifetime of 400 days', async () => {
  const issue = (fields: object, key = token) =>
    server.api<IssuedToken & ErrorBody>('POST', TOKENS, { key, body: { name: 'ci', ...fields } });
  const issueResponse = await issue({ scopes: ['applications:read'] });
  assert.equal(issueResponse.status, 201);
  assert.match(issueResponse.body.token, /^bpt_/);
  assert.equal((await server.api('GET', '/v1/applications', { key: issueResponse.body.token })).status, 200);
  const refusal = await server.api('POST', '/v1/applications', { key: issueResponse.body.token, body: { name: 'x' } });
  assert.equal(refusal.status, 403);
  assert.equal(refusal.body.code, 'permission_denied');
  assert.equal((await server.api('POST', KEYS, { key: issueResponse.body.token, body: { name: 'x' } })).status, 403);
  assert.equal((await issue({ scopes: ['applications:read'] }, issueResponse.body.token)).status, 403);
  assert.ok((await issue({ scopes: ['account:tokens'] })).status >= 400);
  assert.equal((await issue({ scopes: ['applications:read'], expiresAt: timeAfter(400 * 24 * HOUR_MS) })).status, 400);
});

test('a token can read its own entry, is listed without its secret, and stops working immediately after it is revoked', async () => {
  const issueResponse = await sendWithToken<IssuedToken>('POST', TOKENS, { name: 'short', scopes: ['keys:write'] });
  const { id, token: issuedToken } = issueResponse.body;
  const currentTokenResponse = await server.api<Token>('GET', `${TOKENS}/current`, { key: issuedToken });
  assert.equal(currentTokenResponse.body.id, id);
  const listResponse = await sendWithToken<TokenPage>('GET', TOKENS);
  assert.ok(listResponse.body.data.some(one => one.id === id));
  assert.ok(!listResponse.text.includes(issuedToken));
  assert.equal((await sendWithToken('DELETE', `${TOKENS}/${id}`)).status, 204);
  assert.equal((await server.api('GET', `${TOKENS}/current`, { key: issuedToken })).status, 401);
  assert.equal((await sendWithToken('DELETE', `${TOKENS}/${id}`)).status, 404);
});

test('a token expires after 90 days by default', async () => {
  const issueResponse = await sendWithToken<IssuedToken>('POST', TOKENS, {
    name: 'quarter',
    scopes: ['applications:read'],
  });
  const days = (Date.parse(String(issueResponse.body.expiresAt)) - server.now().getTime()) / (24 * HOUR_MS);
  assert.ok(Math.abs(days - 90) < 0.01, `${days} days`);
  await server.advance(90 * 24 * HOUR_MS + 60_000);
  assert.equal((await server.api('GET', '/v1/applications', { key: issueResponse.body.token })).status, 401);
});

test('ended sessions leave no process, file or unfinished database row behind', () => server.waitUntilSettled());
