// Device authorization gives a token only to the program that a person approved, and with no more rights than were
// granted.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import type { ErrorBody } from '../../contract/common.ts';
import type { CollectedToken, StartedDevice } from '../../contract/device.ts';
import type { OAuthError } from '../../contract/oauth.ts';
import type { TokenPage } from '../../contract/tokens.ts';
import { APPROVALS, AUTHORIZATIONS, CLIENT_ID, DEVICE_TOKENS, DeviceFixture } from '../harness/device.ts';
import { claimFreePort } from '../harness/free-port.ts';
import type { HttpResult } from '../harness/http.ts';
import { createOwnerToken } from '../harness/limits.ts';
import { findMachineAddress, readDatabaseText, registerOtherPerson } from '../harness/other-person.ts';
import { PageInSession, settingsForOwnPages } from '../harness/page-in-session.ts';
import { startServer } from '../harness/server.ts';

const port = await claimFreePort();
const server = await startServer({
  clock: 'test',
  port,
  env: {
    BERTH_REGISTRATION: 'open',
    BERTH_TRUSTED_PROXIES: '127.0.0.0/8',
    ...settingsForOwnPages(port),
  },
});
const devices = await DeviceFixture.open(server);
const token = await createOwnerToken(server);

const POLL_INTERVAL_MS = 5_000;
const GUESS_WINDOW_MS = 600_000;
const ATTEMPT_COUNT = 50;

const requestStatus = async (key: string): Promise<number> =>
  (await server.api('GET', '/v1/applications', { key })).status;
const outcomeOf = ({ status, body }: HttpResult<{ code?: string } | ErrorBody>): string => `${status} ${body.code}`;

/** The header with which a reverse proxy reports the address of the caller. */
const forwardedFrom = (ip: string) => ({ 'x-forwarded-for': ip });

// ---- one token ------------------------------------------------------------------------------------------------------

test('only one of fifty concurrent token requests gets the token, and the others are refused with slow_down', async () => {
  const startedDevice = await devices.start({ device_name: 'fifty' });
  await devices.approve(startedDevice);
  const responses = await Promise.all(
    Array.from({ length: ATTEMPT_COUNT }, () => devices.collect<Partial<CollectedToken & OAuthError>>(startedDevice)),
  );
  const tokens = responses.flatMap(({ body }) => body.access_token ?? []);
  assert.equal(tokens.length, 1);
  assert.deepEqual([...new Set(responses.flatMap(({ body }) => body.error ?? []))], ['slow_down']);
  const { body } = await server.api<TokenPage>('GET', '/v1/account/tokens?limit=100', { key: token });
  assert.equal(body.data.filter(({ name }) => name === 'fifty').length, 1);
  assert.equal(await requestStatus(tokens[0] ?? ''), 200);
});

test('sending a device code again revokes the token that was issued for it', async () => {
  const startedDevice = await devices.start();
  await devices.approve(startedDevice);
  const { access_token: issuedToken } = await devices.collectToken(startedDevice);
  assert.equal(await requestStatus(issuedToken), 200);
  await server.advance(POLL_INTERVAL_MS);
  assert.equal(outcomeOf(await devices.collect(startedDevice)), '400 invalid_grant');
  assert.equal(await requestStatus(issuedToken), 401);
  assert.equal(outcomeOf(await devices.collect(startedDevice)), '400 invalid_grant');
});

test('a program whose device code was stolen gets an error, and the token of the thief is revoked', async () => {
  const startedDevice = await devices.start();
  await devices.approve(startedDevice);
  const stolenToken = await devices.collectToken(startedDevice);
  assert.equal(outcomeOf(await devices.collect(startedDevice)), '400 slow_down');
  await server.advance(2 * POLL_INTERVAL_MS);
  assert.equal(outcomeOf(await devices.collect(startedDevice)), '400 invalid_grant');
  assert.equal(await requestStatus(stolenToken.access_token), 401);
});

test('a stolen device code is refused without the verifier or with another client, and the real client is not delayed', async () => {
  const verifier = 'v'.repeat(50);
  const challenge = createHash('sha256').update(verifier).digest('base64url');
  const startedDevice = await devices.start({ code_challenge: challenge, code_challenge_method: 'S256' });
  await devices.approve(startedDevice);
  for (const fields of [
    {},
    { code_verifier: 'w'.repeat(50) },
    { code_verifier: challenge },
    { code_verifier: verifier, client_id: 'other' },
  ])
    assert.equal(outcomeOf(await devices.collect(startedDevice, fields)), '400 invalid_grant', JSON.stringify(fields));
  const { access_token: issuedToken } = await devices.collectToken(startedDevice, { code_verifier: verifier });
  await server.advance(POLL_INTERVAL_MS);
  assert.equal(outcomeOf(await devices.collect(startedDevice)), '400 invalid_grant');
  assert.equal(await requestStatus(issuedToken), 200, 'a replay without the verifier must not end the token');
});

test('developer tokens and device codes are refused by operations that require other credentials', async () => {
  const startedDevice = await devices.start();
  for (const [method, path] of [
    ['GET', '/v1/applications'],
    ['GET', '/v1/browsers/sessions'],
    ['GET', `${AUTHORIZATIONS}?user_code=${startedDevice.user_code}`],
    ['POST', APPROVALS],
  ] as const)
    assert.equal(
      outcomeOf(await server.api(method, path, { key: startedDevice.device_code })),
      '401 invalid_credentials',
      path,
    );
  await devices.approve(startedDevice);
  const { access_token: key } = await devices.collectToken(startedDevice);
  const otherDevice = await devices.start();
  for (const [method, path] of [
    ['GET', '/v1/browsers/sessions'],
    ['GET', `${AUTHORIZATIONS}?user_code=${otherDevice.user_code}`],
    ['POST', APPROVALS],
    ['GET', `${AUTHORIZATIONS}/${otherDevice.id}`],
  ] as const)
    assert.equal(outcomeOf(await server.api(method, path, { key })), '401 invalid_credentials', path);
});

test("a device code cannot read another authorization's state", async () => {
  const [one, other] = [await devices.start(), await devices.start()];
  const { status, body } = await server.api('GET', `${AUTHORIZATIONS}/${one.id}`, { key: other.device_code });
  assert.deepEqual([status, body.code], [404, 'not_found']);
});

// ---- the person ----------------------------------------------------------------------------------------------------------

test('only the person who first looked up a user code can read its authorization again or decide on it', async () => {
  const stranger = await registerOtherPerson(server, 'stranger@example.com');
  const startedDevice = await devices.start();
  const unreadRefusal = await devices.decide<ErrorBody>(
    await devices.signInOwner(),
    startedDevice.user_code,
    devices.approval,
  );
  assert.equal(outcomeOf(unreadRefusal), '404 not_found', 'only a person who has read the request can decide');
  assert.equal((await devices.read(devices.owner, startedDevice.user_code)).status, 200);
  const unknownResponse = await stranger.get<ErrorBody>(`${AUTHORIZATIONS}?user_code=BBBB-BBBB`);
  const readResponse = await stranger.get<ErrorBody>(`${AUTHORIZATIONS}?user_code=${startedDevice.user_code}`);
  const denyRefusal = await devices.decide<ErrorBody>(stranger, startedDevice.user_code, { decision: 'deny' });
  for (const response of [readResponse, denyRefusal]) {
    assert.equal(outcomeOf(response), '404 not_found');
    assert.equal(response.body.message, unknownResponse.body.message);
  }
  const decisionResponse = await devices.decide(devices.owner, startedDevice.user_code, devices.approval);
  assert.equal(decisionResponse.status, 200, decisionResponse.text);
});

test('a person who is not a developer of an application cannot grant access to it', async () => {
  const viewer = await registerOtherPerson(server, 'viewer@example.com', 'viewer');
  const startedDevice = await devices.start();
  const readResponse = await devices.read(viewer, startedDevice.user_code);
  assert.deepEqual(readResponse.body.applications, []);
  const ownRefusal = await devices.decide<ErrorBody>(viewer, startedDevice.user_code, devices.approval);
  assert.equal(outcomeOf(ownRefusal), '403 permission_denied');
  const foreignIds = ['01a1fa50-5319-7450-a6b3-c787ada50631'];
  const otherResponse = await devices.decide<ErrorBody>(viewer, startedDevice.user_code, {
    ...devices.approval,
    applicationIds: foreignIds,
  });
  assert.equal(outcomeOf(otherResponse), '404 not_found');
  const none = await devices.decide<ErrorBody>(viewer, startedDevice.user_code, {
    ...devices.approval,
    applicationIds: [],
  });
  assert.equal(outcomeOf(none), '400 invalid_request');
});

test('an approval cannot grant more than was requested', async () => {
  const startedDevice = await devices.start({ scope: 'applications:read' });
  await devices.read(await devices.signInOwner(), startedDevice.user_code);
  for (const scopes of [['keys:write'], ['applications:read', 'account:tokens'], []])
    assert.equal(
      outcomeOf(
        await devices.decide<ErrorBody>(devices.owner, startedDevice.user_code, { ...devices.approval, scopes }),
      ),
      '400 invalid_request',
      scopes.join(' '),
    );
  await devices.approve(startedDevice);
  const { access_token: key, scope } = await devices.collectToken(startedDevice);
  assert.equal(scope, 'applications:read');
  const made = await server.api('POST', `/v1/applications/${server.applicationId}/agent-keys`, {
    key,
    body: { name: 'x' },
  });
  assert.equal(outcomeOf(made), '403 permission_denied');
});

test('only one of several concurrent decisions about an authorization takes effect', async () => {
  await server.advance(GUESS_WINDOW_MS); // From now on, the wrong codes that other tests entered no longer count.
  const startedDevice = await devices.start();
  await devices.read(await devices.signInOwner(), startedDevice.user_code);
  const responses = await Promise.all(
    Array.from({ length: 8 }, (_, index) =>
      devices.decide(devices.owner, startedDevice.user_code, index % 2 === 0 ? devices.approval : { decision: 'deny' }),
    ),
  );
  assert.equal(responses.filter(({ status }) => status === 200).length, 1);
  assert.ok(responses.every(({ status }) => status === 200 || status === 409));
});

test('a page of another site can neither claim nor approve an authorization', async () => {
  const startedDevice = await devices.start();
  const person = await devices.signInOwner();
  const crossSiteHeaders = { 'sec-fetch-site': 'cross-site' };
  const claimResponse = await person.send<ErrorBody>(
    'GET',
    `${AUTHORIZATIONS}?user_code=${startedDevice.user_code}`,
    undefined,
    crossSiteHeaders,
  );
  assert.equal(outcomeOf(claimResponse), '403 cross_site_request');
  await devices.read(person, startedDevice.user_code);
  const body = { userCode: startedDevice.user_code, ...devices.approval };
  for (const headers of [crossSiteHeaders, { origin: 'https://evil.example' }])
    assert.equal(outcomeOf(await person.send<ErrorBody>('POST', APPROVALS, body, headers)), '403 cross_site_request');
  const formHeaders = { 'content-type': 'application/x-www-form-urlencoded' };
  const formRefusal = await server.api('POST', APPROVALS, {
    key: null,
    headers: { ...person.headers, ...formHeaders },
    body: 'a=1',
  });
  assert.equal(formRefusal.status, 415, formRefusal.text);
});

test('an approval is refused if the trusted proxy reports an address of this machine as the caller', async () => {
  const ownAddress = findMachineAddress() ?? assert.fail('this machine has no address but loopback');
  const startedDevice = await devices.start();
  const person = await devices.signInOwner();
  await devices.read(person, startedDevice.user_code);
  const body = { userCode: startedDevice.user_code, ...devices.approval };
  const refusal = await person.send<ErrorBody>('POST', APPROVALS, body, forwardedFrom(ownAddress));
  assert.equal(outcomeOf(refusal), '403 address_not_allowed');
  assert.equal((await person.send('POST', APPROVALS, body, forwardedFrom('203.0.113.9'))).status, 200);
});

test('the browser of a session cannot approve an authorization, even if sessions can reach this service', async () => {
  const person = await devices.signInOwner();
  const startedDevice = await devices.start();
  await devices.read(person, startedDevice.user_code);
  const page = await PageInSession.open(server, person.cookie ?? '');
  const readResponse = await page.send('GET', `${AUTHORIZATIONS}?user_code=${startedDevice.user_code}`);
  assert.equal(readResponse.status, 200, 'the page is signed in');
  const { code } = await page.send('POST', APPROVALS, { userCode: startedDevice.user_code, ...devices.approval });
  assert.equal(code, 'address_not_allowed');
  assert.equal((await devices.decide(person, startedDevice.user_code, devices.approval)).status, 200);
  await page.close();
});

// ---- guessing --------------------------------------------------------------------------------------------------------------

test('after ten wrong codes within ten minutes, further codes from the same person or address are refused, even if all are sent concurrently', async () => {
  const guesser = await registerOtherPerson(server, 'guesser@example.com');
  const startedDevice = await devices.start();
  const guess = (code: string, ip: string) =>
    guesser.send<ErrorBody>('GET', `${AUTHORIZATIONS}?user_code=${code}`, undefined, forwardedFrom(ip));
  const responses = await Promise.all(
    Array.from({ length: ATTEMPT_COUNT }, (_, index) => guess(`BBBB-BBB${index}`, `198.51.100.${index}`)),
  );
  const outcomes = responses.map(outcomeOf);
  assert.equal(outcomes.filter(code => code === '404 not_found').length, 10);
  assert.equal(outcomes.filter(code => code === '429 rate_limited').length, ATTEMPT_COUNT - 10);
  assert.equal(
    outcomeOf(await guess(startedDevice.user_code, '198.51.100.99')),
    '429 rate_limited',
    'a correct code too',
  );
  assert.ok(Number(responses.find(({ status }) => status === 429)?.headers['retry-after']) > 500);

  const otherPerson = await registerOtherPerson(server, 'other@example.com');
  const ip = '198.51.100.200';
  for (let attempt = 0; attempt < 10; attempt += 1)
    await otherPerson.send('POST', APPROVALS, { userCode: 'BBBB-BBBB', decision: 'deny' }, forwardedFrom(ip));
  const thirdPerson = await registerOtherPerson(server, 'third@example.com');
  const read = (headers: object) =>
    thirdPerson.send<ErrorBody>('GET', `${AUTHORIZATIONS}?user_code=${startedDevice.user_code}`, undefined, {
      ...headers,
    });
  assert.equal(outcomeOf(await read(forwardedFrom(ip))), '429 rate_limited');
  assert.equal((await read(forwardedFrom('198.51.100.201'))).status, 200);
  await server.advance(GUESS_WINDOW_MS);
  assert.equal((await guess('BBBB-BBBB', '198.51.100.99')).status, 404);
});

test('correct codes do not count towards the limit of wrong codes', async () => {
  const person = await registerOtherPerson(server, 'many@example.com');
  const startedDevice = await devices.start();
  for (let attempt = 0; attempt < 15; attempt += 1)
    assert.equal((await devices.read(person, startedDevice.user_code)).status, 200);
});

test('the number of authorizations that an address can start is limited', async () => {
  const ip = '198.51.100.77';
  const startAuthorization = () =>
    devices.sendWithoutCredential<StartedDevice & OAuthError>(
      AUTHORIZATIONS,
      { client_id: CLIENT_ID },
      forwardedFrom(ip),
    );
  const responses = await Promise.all(Array.from({ length: ATTEMPT_COUNT }, startAuthorization));
  assert.equal(responses.filter(({ status }) => status === 201).length, 30);
  const refusal = responses.find(({ status }) => status === 429);
  assert.deepEqual([refusal?.body.code, refusal?.body.error], ['rate_limited', 'temporarily_unavailable']);
});

// ---- stored and sent data ------------------------------------------------------------------------------------------

test('no device code, user code or token is stored or logged in clear text', async () => {
  const startedDevice = await devices.start();
  await devices.approve(startedDevice);
  const { access_token: issuedToken } = await devices.collectToken(startedDevice);
  const code = startedDevice.user_code.replace('-', '');
  const dump = await readDatabaseText(server, ['device_authorizations', 'tokens', 'audit_entries', 'idempotency']);
  for (const secret of [startedDevice.device_code, issuedToken, code, startedDevice.user_code]) {
    assert.ok(!dump.includes(secret), 'a secret is in the database');
    assert.ok(!server.log().some(line => line.includes(secret)), 'a secret is in the log');
  }
  assert.ok(
    !dump.includes(createHash('sha256').update(code).digest('hex')),
    'a plain hash of a user code can be reversed',
  );
});

test('the device endpoints refuse forms that are too large, repeat a parameter or contain __proto__, and a JSON endpoint refuses forms', async () => {
  const headers = { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' };
  const postForm = (path: string, body: string) => server.api<OAuthError>('POST', path, { key: null, headers, body });
  for (const body of ['client_id=a&client_id=b', '__proto__=x&client_id=a', '%00=1', `client_id=${'a'.repeat(65)}`])
    assert.equal(outcomeOf(await postForm(AUTHORIZATIONS, body)), '400 invalid_request', body);
  const largeResponse = await postForm(DEVICE_TOKENS, `grant_type=${'a'.repeat(10_000)}`);
  assert.deepEqual([largeResponse.status, largeResponse.body.error], [413, 'invalid_request']);
  const otherResponse = await server.api('POST', '/v1/applications', { key: token, headers, body: 'name=x' });
  assert.equal(otherResponse.status, 415);
});

test('text direction marks and line breaks are removed from the device name that a program sends', async () => {
  const startedDevice = await devices.start({ device_name: 'lap\u202etop\u200b\n' });
  const { body } = await devices.read(await devices.signInOwner(), startedDevice.user_code);
  assert.equal(body.deviceName, 'laptop');
  const blankNameRefusal = await devices.sendWithoutCredential(AUTHORIZATIONS, {
    client_id: CLIENT_ID,
    device_name: '\u202e\u200b ',
  });
  assert.equal(outcomeOf(blankNameRefusal), '400 invalid_request');
});
