// The audit log over HTTP: its entries, who may read them, filters and list pages.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AgentKey, IssuedAgentKey } from '../../contract/agent-keys.ts';
import type { Application } from '../../contract/applications.ts';
import type { AuditEntry, AuditPage } from '../../contract/audit.ts';
import type { IssuedToken } from '../../contract/tokens.ts';
import { createOwnerToken, setLimits } from '../harness/limits.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const server = await startServer({ clock: 'test', env: { BERTH_TRUSTED_PROXIES: '127.0.0.0/8' } });
const token = await createOwnerToken(server);
const MINUTE_MS = 60_000;

const ask = <Body>(method: string, path: string, body?: object, headers = {}, key = token) =>
  server.api<Body>(method, path, { key, headers, ...(body ? { body } : {}) });

async function newApplication(): Promise<Application> {
  const { status, body, text } = await ask<Application>('POST', '/v1/applications', { name: 'Shop' });
  assert.equal(status, 201, text);
  return body;
}

async function entries(application: string, query = '', key = token): Promise<AuditEntry[]> {
  const { status, body, text } = await ask<AuditPage>(
    'GET',
    `/v1/applications/${application}/audit${query}`,
    undefined,
    {},
    key,
  );
  assert.equal(status, 200, text);
  return body.data;
}

test('the audit log records each change to an application and its keys, with the actor, the credential and the address', async () => {
  const { id } = await newApplication();
  const keys = `/v1/applications/${id}/agent-keys`;
  const from = { 'x-forwarded-for': '203.0.113.7', 'user-agent': 'shop/1', 'x-request-id': 'req_of_the_test' };
  const renameResponse = await ask('PATCH', `/v1/applications/${id}`, { name: 'Store' }, { ...from, 'if-match': '*' });
  assert.equal(renameResponse.status, 200, renameResponse.text);
  const { body: key } = await ask<IssuedAgentKey>('POST', keys, { name: 'secret name' });
  await ask('PATCH', `${keys}/${key.id}`, { name: 'other name' }, { 'if-match': '*' });
  const { body: successor } = await ask<IssuedAgentKey>('POST', `${keys}/${key.id}/rotate`, {});
  await ask('DELETE', `${keys}/${successor.id}`);
  const all = await entries(id);
  assert.deepEqual(all.map(({ action }) => action).reverse(), [
    ...['application.created', 'application.renamed', 'agent_key.created'],
    ...['agent_key.changed', 'agent_key.rotated', 'agent_key.revoked'],
  ]);
  const [revoked, rotated, , , rename] = all;
  assert.equal(rename?.ip, '203.0.113.7');
  assert.equal(rename.userAgent, 'shop/1');
  assert.equal(rename.requestId, 'req_of_the_test');
  assert.equal(rename.actor.kind, 'account');
  assert.equal(rename.actor.name, 'Operator');
  assert.equal(rename.via?.kind, 'personal_token');
  assert.equal(rename.outcome, 'success');
  assert.deepEqual(rename.target, { kind: 'application', id });
  assert.deepEqual(rotated?.details, { replacedBy: successor.id, graceSeconds: 3600 });
  assert.deepEqual(revoked?.target, { kind: 'agent_key', id: successor.id });
  const text = JSON.stringify(all);
  for (const hidden of [key.key, successor.key, token, 'secret name', 'other name']) assert.ok(!text.includes(hidden));
});

test('the audit log records commands of the operator and changes to limits', async () => {
  await setLimits(server, token, { maxConcurrent: 3 });
  const { stdout } = await server.operate('keys', 'create', '--json', '--application', server.applicationId);
  const createdKey: { id: string } = JSON.parse(stdout);
  const [created, changed] = await entries(server.applicationId);
  assert.equal(created?.action, 'agent_key.created');
  assert.deepEqual(created.actor, { kind: 'operator' });
  assert.deepEqual(created.target, { kind: 'agent_key', id: createdKey.id });
  assert.equal(changed?.action, 'limits.changed');
  const { fields, before, after } = Object(changed.details);
  assert.deepEqual({ fields, before, after }, { fields: ['maxConcurrent'], before: [], after: ['maxConcurrent=3'] });
});

test('if a key is refused five times within a minute because of its address ranges, the audit log records only one refusal', async () => {
  const { id } = await newApplication();
  const keys = `/v1/applications/${id}/agent-keys`;
  const { body } = await ask<IssuedAgentKey>('POST', keys, { name: 'home', cidrAllow: ['203.0.113.0/24'] });
  const use = (ip: string) =>
    ask('GET', '/v1/browsers/sessions', undefined, { 'x-forwarded-for': ip, 'user-agent': 'thief' }, body.key);
  for (let count = 0; count < 5; count += 1) assert.equal((await use('198.51.100.9')).status, 403);
  const refusals = await eventually(
    'the refusal to be recorded',
    () => entries(id, '?action=agent_key.refused_address'),
    found => found.length > 0,
  );
  assert.equal(refusals.length, 1);
  const [entry] = refusals;
  assert.deepEqual(entry?.actor, { kind: 'anonymous' });
  assert.equal(entry.outcome, 'refused');
  assert.equal(entry.ip, '198.51.100.9');
  assert.equal(entry.userAgent, 'thief');
  assert.deepEqual(entry.target, { kind: 'agent_key', id: body.id });
});

test('audit entries can be filtered by action, actor and time, and listed in pages while entries are added', async () => {
  const { id } = await newApplication();
  const keys = `/v1/applications/${id}/agent-keys`;
  const issueKey = () => ask<AgentKey>('POST', keys, { name: 'one' });
  for (let made = 0; made < 4; made += 1) await issueKey();
  const path = `/v1/applications/${id}/audit`;
  const firstResponse = await ask<AuditPage>('GET', `${path}?limit=3`);
  assert.equal(firstResponse.body.data.length, 3);
  await issueKey();
  const secondResponse = await ask<AuditPage>('GET', `${path}?limit=3&cursor=${firstResponse.body.nextCursor}`);
  assert.equal(secondResponse.body.nextCursor, undefined);
  assert.deepEqual(
    secondResponse.body.data.map(({ action }) => action),
    ['agent_key.created', 'application.created'],
  );
  const all = await entries(id);
  const [newest] = all;
  assert.ok(newest);
  const actor = newest.actor.id ?? assert.fail('the newest entry has no actor id');
  assert.equal((await entries(id, `?actor=${actor}`)).length, 6);
  assert.deepEqual(await entries(id, '?actor=01a1fa50-5319-7450-a6b3-c787ada50631'), []);
  assert.equal((await entries(id, '?action=agent_key.created')).length, 5);
  assert.deepEqual(await entries(id, `?after=${newest.at}`), []);
  assert.equal((await entries(id, '?after=2020-01-01T00:00:00Z')).length, 6);
});

test('audit entries cannot be listed with an unknown action, a cursor of another application, an agent key, or a token without access', async () => {
  const { id } = await newApplication();
  const path = `/v1/applications/${id}/audit`;
  assert.equal((await ask('GET', `${path}?action=all`)).status, 400);
  assert.equal((await ask('GET', '/v1/applications/01a1fa50-5319-7450-a6b3-c787ada50631/audit')).status, 404);
  const issueToken = async (more: object) =>
    (await ask<IssuedToken>('POST', '/v1/account/tokens', { name: 'test', scopes: ['audit:read'], ...more })).body
      .token;
  const readerToken = await issueToken({});
  assert.equal((await entries(id, '', readerToken)).length, 1);
  const confinedToken = await issueToken({ applicationIds: [server.applicationId] });
  assert.equal((await ask('GET', path, undefined, {}, confinedToken)).status, 404);
  const otherToken = await issueToken({ scopes: ['applications:read'] });
  assert.equal((await ask('GET', path, undefined, {}, otherToken)).status, 403);
  assert.equal((await ask('GET', path, undefined, {}, server.key)).status, 401);
  const { body } = await ask<AuditPage>('GET', `/v1/applications/${server.applicationId}/audit?limit=1`);
  assert.ok(body.nextCursor);
  assert.equal((await ask('GET', `${path}?cursor=${body.nextCursor}`)).status, 400);
});

test('the operator can list the audit entries that belong to no application, or the entries of one application', async () => {
  const list = async (...options: string[]): Promise<AuditEntry[]> => {
    const { code, stdout, stderr } = await server.operate('audit', 'list', '--json', ...options);
    assert.equal(code, 0, stderr);
    return JSON.parse(stdout);
  };
  const body = { name: 'secret name', scopes: ['audit:read'] };
  const { status, body: issued, text } = await ask<IssuedToken>('POST', '/v1/account/tokens', body);
  assert.equal(status, 201, text);
  // The first use of a token from another test is recorded in the background, so its entry may appear at any time.
  const [newest, ...older] = (await list()).filter(({ action }) => action !== 'token.used_first');
  assert.deepEqual([newest?.action, newest?.target], ['token.created', { kind: 'token', id: issued.id }]);
  assert.ok(older.every(({ applicationId }) => applicationId === undefined));
  assert.ok(!JSON.stringify([newest, older]).includes('secret name'));
  assert.equal((await list('--limit', '1')).length, 1);
  const ids = (all: readonly AuditEntry[]): string[] => all.map(({ id }) => id);
  assert.deepEqual(
    ids(await list('--application', server.applicationId)),
    ids(await entries(server.applicationId, '?limit=100')),
  );
  const { stdout } = await server.operate('audit', 'list');
  assert.match(
    stdout,
    /^AT +ACTION +OUTCOME +ACTOR +TARGET +IP\n(?:.*\n)?\S+Z +token\.created +success +account Operator +token /,
  );
  assert.equal((await server.operate('audit', 'list', '--application', 'nobody')).code, 4);
});

/** Verifies the log, which must be intact, and returns the numbers of entries, chains, seals and unsealed entries. */
async function verifyAndCount(): Promise<readonly number[]> {
  const { code, stdout, stderr } = await server.operate('audit', 'verify');
  assert.equal(code, 0, stderr);
  const [, ...counts] =
    /^The audit log is intact: (\d+) entries in (\d+) chains, with (\d+) seals\. (\d+) entries are not sealed yet\.\n$/.exec(
      stdout,
    ) ?? assert.fail(stdout);
  return counts.map(Number);
}

test('berth audit verify reports an intact log, before and after new entries are sealed', async () => {
  // Entries are sealed every minute, possibly just after they are added. The test therefore adds entries until it
  // observes one that is not sealed.
  const countsBefore = await eventually(
    'an entry that is not sealed',
    async () => {
      await newApplication();
      return verifyAndCount();
    },
    ([, , , unsealed = 0]) => unsealed > 0,
  );
  const countsAfter = await eventually(
    'every entry to be sealed',
    async () => {
      await server.advance(MINUTE_MS);
      return verifyAndCount();
    },
    ([, , , unsealed]) => unsealed === 0,
  );
  const [entriesBefore = 0, chainsBefore, sealsBefore = 0] = countsBefore;
  const [entriesAfter = 0, chainsAfter, sealsAfter = 0] = countsAfter;
  assert.equal(chainsAfter, chainsBefore);
  assert.ok(entriesAfter >= entriesBefore, `${entriesAfter} entries after ${entriesBefore}`);
  assert.ok(sealsAfter > sealsBefore, `${sealsAfter} seals after ${sealsBefore}`);
});
