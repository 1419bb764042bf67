// Every limit of a session and of the gateway, exceeded from outside: sizes, counts, slots and authentication. The
// server has one slot, so each test releases its session.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { IssuedAgentKey } from '../../contract/agent-keys.ts';
import type { Application } from '../../contract/applications.ts';
import type { DebugUrls } from '../../contract/live.ts';
import type { Session } from '../../contract/sessions.ts';
import { CdpClient, expectUpgradeRefusal } from '../harness/cdp.ts';
import { LIGHT_ENGINE } from '../harness/engine.ts';
import { type CreatedSession, startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const SESSIONS = '/v1/browsers/sessions';
const UNKNOWN_ID = '01a1fa50-5319-7450-a6b3-c787ada50631';
const MIB = 1024 ** 2;
const CLIENTS_MAX = 20;
const CONTEXTS_MAX = 50;

const server = await startServer({ env: { BERTH_ENGINE: LIGHT_ENGINE, BERTH_SLOTS: '1' } });

/** Runs the work with a session that is released afterwards. */
async function withSession(work: (session: CreatedSession) => Promise<void>): Promise<void> {
  const session = await server.createSession({ keepAlive: true });
  try {
    await work(session);
  } finally {
    await server.release(session.id).catch(() => {});
  }
}

async function issueKeyWith(...scopes: string[]): Promise<string> {
  const { stdout } = await server.operate(
    'keys',
    'create',
    '--json',
    '--application',
    server.applicationId,
    '--scope',
    ...scopes,
  );
  const { key }: { key: string } = JSON.parse(stdout);
  return key;
}

/** The connect address without its key. */
const bareAddressOf = ({ connectUrl }: CreatedSession): string => connectUrl.split('?', 1)[0] ?? '';

const evaluateMessage = (id: number, sessionId: string, expression: string): string =>
  JSON.stringify({
    id,
    method: 'Runtime.evaluate',
    params: { expression, returnByValue: true, awaitPromise: true },
    sessionId,
  });

test('a message of 50 MiB to the browser and a larger message to the client are each forwarded as one message', () =>
  withSession(async ({ connectUrl }) => {
    const client = await CdpClient.connect(connectUrl);
    const page = await client.attachToPage();
    const sent = 'x'.repeat(50 * MIB);
    assert.equal(await client.evaluate(`${JSON.stringify(sent)}.length`, page), sent.length);
    const response = await client.evaluate(`'0123456789'.repeat(${10 * MIB})`, page);
    assert.ok(response === '0123456789'.repeat(10 * MIB), 'the response is unchanged');
    await client.close();
  }));

test('the connection of a client that sends a message above 96 MiB is closed with code 1009, and other clients are not affected', () =>
  withSession(async ({ id, connectUrl }) => {
    const client = await CdpClient.connect(connectUrl);
    const otherClient = await CdpClient.connect(connectUrl);
    const page = await client.attachToPage();
    client.sendRaw(evaluateMessage(1_000, page, `'${'x'.repeat(96 * MIB)}'.length`));
    assert.equal((await client.waitForClose()).code, 1009);
    assert.equal(await otherClient.evaluate('6 * 7', await otherClient.attachToPage()), 42);
    assert.equal((await server.read(id)).status, 'RUNNING');
    await otherClient.close();
  }));

test('the connection of a client that sends a binary message is closed with code 1003', () =>
  withSession(async ({ connectUrl }) => {
    const client = await CdpClient.connect(connectUrl);
    client.sendRaw(Buffer.from('{"id":1,"method":"Browser.getVersion"}'));
    assert.equal((await client.waitForClose()).code, 1003);
  }));

test('the twenty-first client is refused before the upgrade, and a client is accepted after another client has disconnected', () =>
  withSession(async ({ connectUrl }) => {
    const clients = await Promise.all(Array.from({ length: CLIENTS_MAX }, () => CdpClient.connect(connectUrl)));
    const { status, headers, body } = await expectUpgradeRefusal(connectUrl);
    assert.equal(status, 429);
    assert.match(headers['content-type'] ?? '', /^application\/json/);
    assert.equal(body.code, 'client_limit');
    assert.equal(body.requestId, headers['x-request-id']);
    assert.match(body.message, /20 clients/);
    assert.deepEqual(body.details, { limit: CLIENTS_MAX, used: CLIENTS_MAX });
    assert.equal(headers['retry-after'], '5');
    assert.equal(headers['x-ratelimit-limit'], `${CLIENTS_MAX}`);
    assert.equal(headers['x-ratelimit-remaining'], '0');
    assert.equal(headers['x-ratelimit-reset'], '5');
    const [leaver, ...remainingClients] = clients;
    await leaver?.close();
    const next = await eventually(
      'the place to be free',
      () => CdpClient.connect(connectUrl).catch(() => undefined),
      client => client !== undefined,
    );
    assert.ok(next);
    await Promise.all([next, ...remainingClients].map(client => client.send('Browser.getVersion')));
    await Promise.all([next, ...remainingClients].map(client => client.close()));
  }));

test('connections to live view addresses do not count as clients, and have a separate limit of the same size', () =>
  withSession(async ({ id, connectUrl }) => {
    const { wsUrl = '' } = (await server.api<DebugUrls>('GET', `/v1/browsers/sessions/${id}/debug`)).body;
    const viewers = await Promise.all(Array.from({ length: CLIENTS_MAX }, () => CdpClient.connect(wsUrl)));
    const { status, body } = await expectUpgradeRefusal(wsUrl);
    assert.deepEqual([status, body.code], [429, 'client_limit']);
    const client = await CdpClient.connect(connectUrl);
    await Promise.all([client, ...viewers].map(one => one.send('Browser.getVersion')));
    await Promise.all([client, ...viewers].map(one => one.close()));
  }));

test('twenty of thirty clients that connect at the same time are accepted', () =>
  withSession(async ({ connectUrl }) => {
    const outcomes = await Promise.allSettled(Array.from({ length: 30 }, () => CdpClient.connect(connectUrl)));
    const acceptedClients = outcomes.flatMap(outcome => (outcome.status === 'fulfilled' ? [outcome.value] : []));
    assert.equal(acceptedClients.length, CLIENTS_MAX);
    await Promise.all(acceptedClients.map(client => client.close()));
  }));

test('the fifty-first browser context is refused, and a new browser context is accepted after another one is disposed', () =>
  withSession(async ({ connectUrl }) => {
    const client = await CdpClient.connect(connectUrl);
    const made = Array.from({ length: CONTEXTS_MAX }, () => client.send('Target.createBrowserContext'));
    const [first] = await Promise.all(made);
    const refusal = await client.ask('Target.createBrowserContext');
    assert.equal(refusal.error?.code, -32000);
    assert.match(refusal.error.message, /50 browser contexts.*limit/);
    await client.send('Target.disposeBrowserContext', { browserContextId: first?.browserContextId });
    await client.send('Target.createBrowserContext');
    await client.close();
  }));

test('a create is refused while all slots are in use, and a create is accepted after a release', async () => {
  const { id } = await server.createSession({ keepAlive: true });
  const { status, headers, body } = await server.api('POST', SESSIONS, { body: {} });
  assert.equal(status, 503);
  assert.equal(body.code, 'capacity');
  assert.equal(headers['x-should-retry'], 'true');
  assert.ok(Number(headers['retry-after']) >= 1);
  const openSessionsResponse = await server.api<Session[]>('GET', `${SESSIONS}?status=PENDING,RUNNING`);
  assert.deepEqual(
    openSessionsResponse.body.map(session => session.id),
    [id],
  );
  await server.release(id);
  const nextSession = await server.createSession();
  assert.equal(nextSession.status, 'RUNNING');
  await server.release(nextSession.id);
});

test('a connection without a valid credential or session is refused with 401, 403 or 404, and the error states the reason', () =>
  withSession(async session => {
    const address = bareAddressOf(session);
    const alteredAddress = `${session.connectUrl.slice(0, -1)}${session.connectUrl.endsWith('A') ? 'B' : 'A'}`;
    const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
    const cases: ReadonlyArray<[string, string, Record<string, string>, number, string]> = [
      ['no credential', address, {}, 401, 'missing_credentials'],
      ['an altered signingKey', alteredAddress, {}, 401, 'invalid_credentials'],
      ['an empty signingKey', `${address}?signingKey=`, {}, 401, 'invalid_credentials'],
      [
        'a signingKey of another session',
        session.connectUrl.replace(session.id, UNKNOWN_ID),
        {},
        401,
        'invalid_credentials',
      ],
      ['an agent key as the signingKey', `${address}?signingKey=${server.key}`, {}, 401, 'invalid_credentials'],
      ['an unknown agent key', address, bearer('bak_nobody'), 401, 'invalid_credentials'],
      [
        'two different keys',
        address,
        { ...bearer(server.key), 'x-bb-api-key': 'bak_other' },
        401,
        'invalid_credentials',
      ],
      [
        'a key that may not connect',
        address,
        bearer(await issueKeyWith('browsers:read', 'browsers:write')),
        403,
        'permission_denied',
      ],
      ['a session that does not exist', address.replace(session.id, UNKNOWN_ID), bearer(server.key), 404, 'not_found'],
      ['an invalid id', address.replace(session.id, 'none'), bearer(server.key), 404, 'not_found'],
      ['another path', `${address}/further`, bearer(server.key), 404, 'route_not_found'],
      ['a key of another application', address, bearer(await createOtherApplicationKey()), 404, 'not_found'],
    ];
    for (const [who, url, headers, status, code] of cases) {
      const refusal = await expectUpgradeRefusal(url, headers);
      assert.deepEqual({ status: refusal.status, code: refusal.body.code }, { status, code }, who);
      assert.equal(refusal.body.statusCode, status, who);
      assert.equal(refusal.headers['www-authenticate'], status === 401 ? 'Bearer' : undefined, who);
    }
  }));

test('an agent key with browsers:connect is accepted in the headers Authorization and X-BB-API-Key', () =>
  withSession(async session => {
    const key = await issueKeyWith('browsers:connect');
    for (const headers of [{ authorization: `Bearer ${key}` }, { 'x-bb-api-key': key }]) {
      const client = await CdpClient.connect(bareAddressOf(session), headers);
      assert.match(String((await client.send('Browser.getVersion')).product), /^(Headless)?Chrome\//);
      await client.close();
    }
  }));

test('a connection to an ended session is refused with 410 and the end reason', async () => {
  const session = await server.createSession();
  await server.release(session.id);
  const { status, body } = await expectUpgradeRefusal(session.connectUrl);
  assert.equal(status, 410);
  assert.equal(body.code, 'session_ended');
  assert.deepEqual(body.details, { status: 'COMPLETED', endReason: 'released' });
});

test('a plain GET request to the connect address returns 426', () =>
  withSession(async ({ connectUrl }) => {
    const { pathname, search } = new URL(connectUrl);
    const { status, headers, body } = await server.api('GET', `${pathname}${search}`, { key: null });
    assert.equal(status, 426);
    assert.equal(headers.upgrade, 'websocket');
    assert.equal(body.code, 'upgrade_required');
  }));

/** Returns a key with all scopes, in an application of its own. */
async function createOtherApplicationKey(): Promise<string> {
  const { stdout } = await server.operate('tokens', 'create', '--json');
  const { token }: { token: string } = JSON.parse(stdout);
  const applicationResponse = await server.api<Application>('POST', '/v1/applications', {
    body: { name: 'Other' },
    key: token,
  });
  const keyResponse = await server.api<IssuedAgentKey>(
    'POST',
    `/v1/applications/${applicationResponse.body.id}/agent-keys`,
    {
      body: { name: 'other' },
      key: token,
    },
  );
  return keyResponse.body.key;
}
