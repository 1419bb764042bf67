// A credential does not work outside of its restrictions, once it is no longer valid, or from a disallowed address.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { IssuedAgentKey } from '../../contract/agent-keys.ts';
import type { Application } from '../../contract/applications.ts';
import type { ErrorBody } from '../../contract/common.ts';
import type { DebugUrls } from '../../contract/live.ts';
import type { Session } from '../../contract/sessions.ts';
import type { IssuedToken, Token, TokenPage } from '../../contract/tokens.ts';
import { CdpClient, expectUpgradeRefusal } from '../harness/cdp.ts';
import { LIGHT_ENGINE } from '../harness/engine.ts';
import { EventStream } from '../harness/event-stream.ts';
import { LiveViewer } from '../harness/live-viewer.ts';
import { type CreatedSession, startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const server = await startServer({
  clock: 'test',
  env: { BERTH_ENGINE: LIGHT_ENGINE, BERTH_TRUSTED_PROXIES: '127.0.0.0/8, 10.9.0.0/16' },
});

const SESSIONS = '/v1/browsers/sessions';
const KEYS = `/v1/applications/${server.applicationId}/agent-keys`;
const TOKENS = '/v1/account/tokens';
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
/** The code with which a connection is closed when its key is no longer valid. The contract documents it. */
const KEY_ENDED_CODE = 4001;

const owner = await createCliToken();

async function createCliToken(...options: string[]): Promise<string> {
  const { code, stdout, stderr } = await server.operate('tokens', 'create', '--json', ...options);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout).token;
}

const sendAs =
  (key: string) =>
  <Body = ErrorBody>(method: string, path: string, body?: object) =>
    server.api<Body>(method, path, { key, ...(body ? { body } : {}) });
const sendAsOwner = sendAs(owner);

const timeAfter = (ms: number): string => new Date(server.now().getTime() + ms).toISOString();

async function issueKey(fields: object = {}): Promise<IssuedAgentKey> {
  const { status, body, text } = await sendAsOwner<IssuedAgentKey>('POST', KEYS, { name: 'test', ...fields });
  assert.equal(status, 201, text);
  return body;
}

async function issueToken(fields: object, key = owner): Promise<IssuedToken> {
  const { status, body, text } = await sendAs(key)<IssuedToken>('POST', TOKENS, { name: 'test', ...fields });
  assert.equal(status, 201, text);
  return body;
}

const readTokenId = async (token: string): Promise<string> =>
  (await sendAs(token)<Token>('GET', `${TOKENS}/current`)).body.id;

// ---- tokens -----------------------------------------------------------------------------------------------------------

test('a token without the scope account:tokens cannot list tokens and can revoke only itself', async () => {
  const otherApplicationId = (await sendAsOwner<Application>('POST', '/v1/applications', { name: 'Other' })).body.id;
  const confinedToken = await issueToken({ scopes: ['applications:read'], applicationIds: [otherApplicationId] });
  const listResponse = await sendAs(confinedToken.token)('GET', TOKENS);
  assert.equal(listResponse.status, 403, listResponse.text);
  assert.equal(listResponse.body.code, 'permission_denied');
  assert.match(listResponse.body.message, /account:tokens/);
  const revokeRefusal = await sendAs(confinedToken.token)('DELETE', `${TOKENS}/${await readTokenId(owner)}`);
  assert.equal(revokeRefusal.status, 403, revokeRefusal.text);
  assert.equal(await readTokenId(owner), await readTokenId(owner));
  assert.equal((await sendAsOwner('GET', TOKENS)).status, 200);
  assert.equal((await sendAs(confinedToken.token)('DELETE', `${TOKENS}/${confinedToken.id}`)).status, 204);
  assert.equal((await sendAs(confinedToken.token)('GET', `${TOKENS}/current`)).status, 401);
});

test('a restricted token can list only itself and the tokens that it issued, and can revoke no other tokens', async () => {
  const managerToken = await createCliToken(
    ...['--application', server.applicationId, '--scope', 'applications:read', 'account:tokens'],
  );
  const ownToken = await issueToken({ scopes: ['applications:read'] }, managerToken);
  assert.deepEqual(ownToken.applicationIds, [server.applicationId]);
  const listedIds = (await sendAs(managerToken)<TokenPage>('GET', TOKENS)).body.data.map(({ id }) => id);
  assert.deepEqual(listedIds, [ownToken.id, await readTokenId(managerToken)]);
  const foreignToken = await issueToken({ scopes: ['applications:read'], applicationIds: [server.applicationId] });
  assert.equal((await sendAs(managerToken)('DELETE', `${TOKENS}/${foreignToken.id}`)).status, 404);
  assert.equal((await sendAs(managerToken)('DELETE', `${TOKENS}/${await readTokenId(owner)}`)).status, 404);
  assert.equal((await sendAs(foreignToken.token)('GET', `${TOKENS}/current`)).status, 200);
  assert.equal((await sendAs(managerToken)('DELETE', `${TOKENS}/${ownToken.id}`)).status, 204);
});

test('a restricted token cannot issue a token with fewer restrictions or a longer lifetime', async () => {
  const expiresAt = timeAfter(HOUR_MS);
  const restrictedToken = await createCliToken(
    ...['--scope', 'applications:read', 'account:tokens', '--expires', expiresAt],
    ...['--cidr', '127.0.0.0/8', '203.0.113.0/24'],
  );
  const issue = (fields: object) =>
    sendAs(restrictedToken)<IssuedToken & ErrorBody>('POST', TOKENS, {
      name: 'x',
      scopes: ['applications:read'],
      ...fields,
    });
  const plainResponse = await issue({});
  assert.equal(plainResponse.status, 201, plainResponse.text);
  assert.deepEqual(plainResponse.body.cidrAllow, ['127.0.0.0/8', '203.0.113.0/24']);
  assert.equal(plainResponse.body.expiresAt, expiresAt);
  const narrowerKeyResponse = await issue({ cidrAllow: ['203.0.113.128/25'], expiresAt: timeAfter(HOUR_MS / 2) });
  assert.equal(narrowerKeyResponse.status, 201, narrowerKeyResponse.text);
  assert.deepEqual(narrowerKeyResponse.body.cidrAllow, ['203.0.113.128/25']);
  for (const [fields, path] of [
    [{ cidrAllow: ['0.0.0.0/0'] }, 'cidrAllow[0]'],
    [{ cidrAllow: ['203.0.113.7', '203.0.112.0/23'] }, 'cidrAllow[1]'],
    [{ cidrAllow: ['::/0'] }, 'cidrAllow[0]'],
    [{ expiresAt: timeAfter(2 * HOUR_MS) }, 'expiresAt'],
  ] as const) {
    const refusal = await issue(fields);
    assert.equal(refusal.status, 400, refusal.text);
    assert.deepEqual(
      Object(refusal.body.details).issues.map((issue: { path: string }) => issue.path),
      [path],
    );
  }
});

// ---- rotation -----------------------------------------------------------------------------------------------------------

test('a rotated or expired key cannot be rotated, and the error explains what to do', async () => {
  const rotate = (id: string) => sendAsOwner<IssuedAgentKey & ErrorBody>('POST', `${KEYS}/${id}/rotate`, {});
  const oldKey = await issueKey();
  const rotateResponse = await rotate(oldKey.id);
  assert.equal(rotateResponse.status, 201, rotateResponse.text);
  assert.equal(rotateResponse.body.expiresAt, undefined);
  const rotateRefusal = await rotate(oldKey.id);
  assert.equal(rotateRefusal.status, 409, rotateRefusal.text);
  assert.equal(rotateRefusal.body.code, 'key_not_rotatable');
  assert.match(rotateRefusal.body.message, new RegExp(`${rotateResponse.body.id}`));
  const expiredKey = await issueKey({ expiresAt: timeAfter(MINUTE_MS) });
  await server.advance(MINUTE_MS + 1000);
  const expiredKeyRefusal = await rotate(expiredKey.id);
  assert.equal(expiredKeyRefusal.status, 409, expiredKeyRefusal.text);
  assert.equal(expiredKeyRefusal.body.code, 'key_not_rotatable');
  assert.match(expiredKeyRefusal.body.message, /Issue a new key/);
});

test('only one of several concurrent rotations succeeds, and the others create no keys', async () => {
  const { id } = await issueKey({ name: 'twice' });
  const responses = await Promise.all([1, 2, 3].map(() => sendAsOwner('POST', `${KEYS}/${id}/rotate`, {})));
  assert.deepEqual(responses.map(({ status }) => status).sort(), [201, 409, 409]);
  const { body } = await sendAsOwner<{ data: { name: string; status: string }[] }>('GET', `${KEYS}?limit=100`);
  assert.equal(body.data.filter(({ name }) => name === 'twice').length, 2);
});

// ---- the end of a key ---------------------------------------------------------------------------------------------------

/** Connections of every kind that can be open with a key. */
interface OpenConnections {
  readonly session: CreatedSession;
  readonly headerClient: CdpClient;
  readonly addressClient: CdpClient;
  readonly guest: CdpClient;
  readonly viewer: LiveViewer;
  readonly events: EventStream;
  readonly logs: EventStream;
  readonly debuggerUrl: string;
}

const bareUrl = (session: CreatedSession): string => session.connectUrl.replace(/\?.*/, '');
const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

async function readDebugUrls(session: Session, key: string): Promise<DebugUrls & { wsUrl: string }> {
  const { status, body, text } = await sendAs(key)<DebugUrls>('GET', `${SESSIONS}/${session.id}/debug`);
  assert.equal(status, 200, text);
  assert.ok(body.wsUrl);
  return { ...body, wsUrl: body.wsUrl };
}

async function openAll(key: string, session: CreatedSession): Promise<OpenConnections> {
  const { wsUrl, debuggerUrl } = await readDebugUrls(session, key);
  return {
    session,
    debuggerUrl,
    headerClient: await CdpClient.connect(bareUrl(session), bearer(key)),
    addressClient: await CdpClient.connect(session.connectUrl),
    guest: await CdpClient.connect(wsUrl),
    viewer: await LiveViewer.open(debuggerUrl),
    events: await EventStream.open(`${server.url}${SESSIONS}/${session.id}/events`, bearer(key)),
    logs: await EventStream.open(`${server.url}${SESSIONS}/${session.id}/logs`, bearer(key)),
  };
}

/** Asserts that every connection is closed and cannot be opened again. */
async function assertClosed({ session, debuggerUrl, ...open }: OpenConnections): Promise<void> {
  for (const client of [open.headerClient, open.addressClient, open.guest])
    assert.equal((await client.waitForClose()).code, KEY_ENDED_CODE);
  await eventually('the viewer to be closed', () => open.viewer.closeInfo);
  for (const stream of [open.events, open.logs]) await stream.waitForEnd();
  const refusal = await expectUpgradeRefusal(session.connectUrl);
  assert.equal(refusal.status, 401);
  assert.equal(refusal.body.code, 'invalid_credentials');
  const discoveryResponse = await fetch(
    session.connectUrl.replace(/^ws/, 'http').replace('/connect?', '/connect/json/version?'),
  );
  assert.equal(discoveryResponse.status, 401, await discoveryResponse.text());
  await assert.rejects(LiveViewer.open(debuggerUrl), /refused with 403/);
}

const endings: Readonly<Record<string, (key: IssuedAgentKey) => Promise<void>>> = {
  'is revoked': async ({ id }) => assert.equal((await sendAsOwner('DELETE', `${KEYS}/${id}`)).status, 204),
  'is revoked at the command line': async ({ id }) => {
    const { code, stderr } = await server.operate('keys', 'revoke', id, '--application', server.applicationId);
    assert.equal(code, 0, stderr);
  },
  'reaches an expiry time that was set later': async ({ id }) => {
    const headers = { 'if-match': '*' };
    const readResponse = await sendAsOwner('GET', `${KEYS}/${id}`);
    const body = { expiresAt: timeAfter(5000) };
    const changeResponse = await server.api('PATCH', `${KEYS}/${id}`, {
      key: owner,
      body,
      headers: { ...headers, 'if-match': String(readResponse.headers.etag) },
    });
    assert.equal(changeResponse.status, 200, changeResponse.text);
    await server.advance(6000);
  },
  'reaches the end of the grace period of its rotation': async ({ id }) => {
    const rotateResponse = await sendAsOwner('POST', `${KEYS}/${id}/rotate`, { graceSeconds: 5 });
    assert.equal(rotateResponse.status, 201, rotateResponse.text);
    await server.advance(6000);
  },
  'is rotated without a grace period': async ({ id }) => {
    assert.equal((await sendAsOwner('POST', `${KEYS}/${id}/rotate`, { graceSeconds: 0 })).status, 201);
  },
};

for (const [how, end] of Object.entries(endings))
  test(`when a key ${how}, all its connections are closed, and connections of other keys stay open`, async () => {
    const key = await issueKey();
    const session = await server.createSession({ keepAlive: true }, key.key);
    const open = await openAll(key.key, session);
    const sessionResponse = await server.api<CreatedSession>('GET', `${SESSIONS}/${session.id}`);
    assert.notEqual(sessionResponse.body.connectUrl, session.connectUrl);
    const [headerClient, addressClient] = [
      await CdpClient.connect(bareUrl(session), bearer(server.key)),
      await CdpClient.connect(sessionResponse.body.connectUrl),
    ];
    const viewer = await LiveViewer.open((await readDebugUrls(session, server.key)).debuggerUrl);
    await end(key);
    await assertClosed(open);
    for (const client of [headerClient, addressClient]) await client.send('Browser.getVersion');
    assert.equal(viewer.closeInfo, undefined);
    assert.equal((await server.read(session.id)).status, 'RUNNING');
    await (await CdpClient.connect(sessionResponse.body.connectUrl)).close();
    await server.release(session.id);
  });

test('a session ends when the key of its last client is revoked', async () => {
  const key = await issueKey();
  const session = await server.createSession({}, key.key);
  const client = await CdpClient.connect(session.connectUrl);
  await sendAsOwner('DELETE', `${KEYS}/${key.id}`);
  await client.waitForClose();
  await server.advance(3000);
  const endedSession = await server.waitUntilEnded(session.id);
  assert.deepEqual([endedSession.status, endedSession.endReason], ['COMPLETED', 'client_disconnected']);
});

test('open connections of a key that is revoked with closeConnections=false stay open, but new connections are refused', async () => {
  const key = await issueKey();
  const session = await server.createSession({ keepAlive: true }, key.key);
  const client = await CdpClient.connect(session.connectUrl);
  assert.equal((await sendAsOwner('DELETE', `${KEYS}/${key.id}?closeConnections=false`)).status, 204);
  assert.equal((await expectUpgradeRefusal(session.connectUrl)).status, 401);
  await client.send('Browser.getVersion');
  await client.close();
  await server.release(session.id);
});

test('connect addresses of a key that was revoked while the server was down are refused', async () => {
  const key = await issueKey();
  const session = await server.createSession({ keepAlive: true }, key.key);
  await server.kill();
  const { code, stderr } = await server.operate('keys', 'revoke', key.id, '--application', server.applicationId);
  await server.start();
  assert.equal(code, 0, stderr);
  assert.equal((await expectUpgradeRefusal(session.connectUrl)).status, 401);
  await server.release(session.id);
});

// ---- addresses ------------------------------------------------------------------------------------------------------

test('behind a trusted proxy, cidrAllow applies to the address of the caller, for HTTP and CDP', async () => {
  const { key } = await issueKey({ cidrAllow: ['203.0.113.0/24'] });
  const from = (forwarded: string) => server.api('GET', SESSIONS, { key, headers: { 'x-forwarded-for': forwarded } });
  assert.equal((await from('203.0.113.7')).status, 200);
  assert.equal((await from('198.51.100.1, 203.0.113.7, 10.9.3.1')).status, 200);
  assert.equal((await from('203.0.113.7, 198.51.100.1')).status, 403, 'entries written by the caller are ignored');
  assert.equal((await from('203.0.113.7, 10.10.0.1')).status, 403, 'the first untrusted hop is the caller');
  assert.equal((await from('nonsense')).status, 403);
  assert.equal((await server.api('GET', SESSIONS, { key })).status, 403);
  const session = await server.createSession({ keepAlive: true });
  const headers = { ...bearer(key), 'x-forwarded-for': '203.0.113.7' };
  await (await CdpClient.connect(bareUrl(session), headers)).close();
  assert.equal((await expectUpgradeRefusal(bareUrl(session), bearer(key))).status, 403);
  await server.release(session.id);
});

test('ended sessions leave no process, file or unfinished database row behind', () => server.waitUntilSettled());
