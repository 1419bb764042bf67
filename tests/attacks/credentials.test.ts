// What a credential must not do: reach beyond its confinement, outlive its end, or be used from elsewhere.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { IssuedAgentKey } from '../../contract/agent-keys.ts';
import type { Application } from '../../contract/applications.ts';
import type { ErrorBody } from '../../contract/common.ts';
import type { IssuedToken, Token, TokenPage } from '../../contract/tokens.ts';
import { startServer } from '../harness/server.ts';

const server = await startServer({ clock: 'test' });

const KEYS = `/v1/applications/${server.applicationId}/agent-keys`;
const TOKENS = '/v1/account/tokens';
const MINUTE = 60_000;
const HOUR = 3_600_000;

const owner = await cliToken();

async function cliToken(...options: string[]): Promise<string> {
  const { code, stdout, stderr } = await server.berth('tokens', 'create', '--json', ...options);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout).token;
}

const as =
  (key: string) =>
  <Body = ErrorBody>(method: string, path: string, body?: object) =>
    server.api<Body>(method, path, { key, ...(body ? { body } : {}) });
const asOwner = as(owner);

const inFuture = (ms: number): string => new Date(server.now().getTime() + ms).toISOString();

async function issueKey(wish: object = {}): Promise<IssuedAgentKey> {
  const { status, body, text } = await asOwner<IssuedAgentKey>('POST', KEYS, { name: 'test', ...wish });
  assert.equal(status, 201, text);
  return body;
}

async function issueToken(wish: object, key = owner): Promise<IssuedToken> {
  const { status, body, text } = await as(key)<IssuedToken>('POST', TOKENS, { name: 'test', ...wish });
  assert.equal(status, 201, text);
  return body;
}

const idOf = async (token: string): Promise<string> => (await as(token)<Token>('GET', `${TOKENS}/current`)).body.id;

// ---- tokens -----------------------------------------------------------------------------------------------------------

test('a token without the right to manage tokens lists none, and revokes itself only', async () => {
  const other = (await asOwner<Application>('POST', '/v1/applications', { name: 'Other' })).body.id;
  const confined = await issueToken({ scopes: ['applications:read'], applicationIds: [other] });
  const listed = await as(confined.token)('GET', TOKENS);
  assert.equal(listed.status, 403, listed.text);
  assert.equal(listed.body.code, 'permission_denied');
  assert.match(listed.body.message, /account:tokens/);
  const revoked = await as(confined.token)('DELETE', `${TOKENS}/${await idOf(owner)}`);
  assert.equal(revoked.status, 403, revoked.text);
  assert.equal(await idOf(owner), await idOf(owner));
  assert.equal((await asOwner('GET', TOKENS)).status, 200);
  assert.equal((await as(confined.token)('DELETE', `${TOKENS}/${confined.id}`)).status, 204);
  assert.equal((await as(confined.token)('GET', `${TOKENS}/current`)).status, 401);
});

test('a confined token that manages tokens sees and revokes itself and those it has issued', async () => {
  const manager = await cliToken(
    ...['--application', server.applicationId, '--scope', 'applications:read', 'account:tokens'],
  );
  const made = await issueToken({ scopes: ['applications:read'] }, manager);
  assert.deepEqual(made.applicationIds, [server.applicationId]);
  const seen = (await as(manager)<TokenPage>('GET', TOKENS)).body.data.map(({ id }) => id);
  assert.deepEqual(seen, [made.id, await idOf(manager)]);
  const foreign = await issueToken({ scopes: ['applications:read'], applicationIds: [server.applicationId] });
  assert.equal((await as(manager)('DELETE', `${TOKENS}/${foreign.id}`)).status, 404);
  assert.equal((await as(manager)('DELETE', `${TOKENS}/${await idOf(owner)}`)).status, 404);
  assert.equal((await as(foreign.token)('GET', `${TOKENS}/current`)).status, 200);
  assert.equal((await as(manager)('DELETE', `${TOKENS}/${made.id}`)).status, 204);
});

test('a token that is issued by a restricted one is never wider and never lasts longer', async () => {
  const end = inFuture(HOUR);
  const restricted = await cliToken(
    ...['--scope', 'applications:read', 'account:tokens', '--expires', end],
    ...['--cidr', '127.0.0.0/8', '203.0.113.0/24'],
  );
  const issue = (wish: object) =>
    as(restricted)<IssuedToken & ErrorBody>('POST', TOKENS, { name: 'x', scopes: ['applications:read'], ...wish });
  const plain = await issue({});
  assert.equal(plain.status, 201, plain.text);
  assert.deepEqual(plain.body.cidrAllow, ['127.0.0.0/8', '203.0.113.0/24']);
  assert.equal(plain.body.expiresAt, end);
  const narrower = await issue({ cidrAllow: ['203.0.113.128/25'], expiresAt: inFuture(HOUR / 2) });
  assert.equal(narrower.status, 201, narrower.text);
  assert.deepEqual(narrower.body.cidrAllow, ['203.0.113.128/25']);
  for (const [wish, path] of [
    [{ cidrAllow: ['0.0.0.0/0'] }, 'cidrAllow[0]'],
    [{ cidrAllow: ['203.0.113.7', '203.0.112.0/23'] }, 'cidrAllow[1]'],
    [{ cidrAllow: ['::/0'] }, 'cidrAllow[0]'],
    [{ expiresAt: inFuture(2 * HOUR) }, 'expiresAt'],
  ] as const) {
    const refused = await issue(wish);
    assert.equal(refused.status, 400, refused.text);
    assert.deepEqual(
      Object(refused.body.details).issues.map((issue: { path: string }) => issue.path),
      [path],
    );
  }
});

// ---- rotation -----------------------------------------------------------------------------------------------------------

test('a key that was rotated or has expired is not rotated: the refusal names what to do', async () => {
  const rotate = (id: string) => asOwner<IssuedAgentKey & ErrorBody>('POST', `${KEYS}/${id}/rotate`, {});
  const old = await issueKey();
  const successor = await rotate(old.id);
  assert.equal(successor.status, 201, successor.text);
  assert.equal(successor.body.expiresAt, undefined);
  const again = await rotate(old.id);
  assert.equal(again.status, 409, again.text);
  assert.equal(again.body.code, 'key_not_rotatable');
  assert.match(again.body.message, new RegExp(`${successor.body.id}`));
  const expired = await issueKey({ expiresAt: inFuture(MINUTE) });
  await server.advance(MINUTE + 1000);
  const late = await rotate(expired.id);
  assert.equal(late.status, 409, late.text);
  assert.equal(late.body.code, 'key_not_rotatable');
  assert.match(late.body.message, /Issue a new key/);
});

test('of two rotations at once one succeeds, and no key is left that nobody was told', async () => {
  const { id } = await issueKey({ name: 'twice' });
  const outcomes = await Promise.all([1, 2, 3].map(() => asOwner('POST', `${KEYS}/${id}/rotate`, {})));
  assert.deepEqual(outcomes.map(({ status }) => status).sort(), [201, 409, 409]);
  const { body } = await asOwner<{ data: { name: string; status: string }[] }>('GET', `${KEYS}?limit=100`);
  assert.equal(body.data.filter(({ name }) => name === 'twice').length, 2);
});

test('whatever came before, nothing is left', () => server.settles());
