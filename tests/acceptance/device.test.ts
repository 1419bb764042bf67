// Device authorization with an unmodified OAuth client, and with raw requests.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as client from 'openid-client';
import type { Application, ApplicationPage } from '../../contract/applications.ts';
import type { AuditPage } from '../../contract/audit.ts';
import type { ErrorBody } from '../../contract/common.ts';
import { type CollectedToken, DEVICE_GRANT_TYPE, type DeviceState, type StartedDevice } from '../../contract/device.ts';
import type { Token } from '../../contract/tokens.ts';
import { AUTHORIZATIONS, DEVICE_TOKENS, DeviceFixture } from '../harness/device.ts';
import { createOwnerToken } from '../harness/limits.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const server = await startServer({ clock: 'test' });
const devices = await DeviceFixture.open(server);

const REVOKE_PATH = '/v1/account/tokens/revoke';
const FORM_HEADERS = { 'content-type': 'application/x-www-form-urlencoded' };
const POLL_INTERVAL_MS = 5_000;
const HOUR_MS = 3_600_000;

const form = (fields: Record<string, string>): string => new URLSearchParams(fields).toString();

const statusWith = async (key: string): Promise<number> =>
  (await server.api('GET', '/v1/applications', { key })).status;

// ---- an unmodified OAuth client -------------------------------------------------------------------------------------

const discoverServer = (): Promise<client.Configuration> =>
  client.discovery(new URL(server.url), 'openid-client-test', undefined, client.None(), {
    algorithm: 'oauth2',
    execute: [client.allowInsecureRequests],
  });

test('openid-client discovers the service, waits for the approval, and revokes its token', async () => {
  const configuration = await discoverServer();
  assert.ok(configuration.serverMetadata().device_authorization_endpoint?.startsWith(server.url));
  const authorization = await client.initiateDeviceAuthorization(configuration, {
    scope: 'applications:read keys:write',
  });
  assert.equal(authorization.verification_uri, `${server.url}/device`);
  assert.equal(authorization.verification_uri_complete, `${server.url}/device#${authorization.user_code}`);
  const tokenPoll = client.pollDeviceAuthorizationGrant(configuration, authorization);
  await devices.approve(authorization);
  const tokens = await tokenPoll;
  assert.match(tokens.access_token, /^bdt_/);
  assert.equal(tokens.token_type, 'bearer');
  assert.equal(tokens.scope, 'applications:read keys:write');
  assert.equal(tokens.expires_in, 28_800);
  assert.equal(await statusWith(tokens.access_token), 200);
  await client.tokenRevocation(configuration, tokens.access_token);
  assert.equal(await statusWith(tokens.access_token), 401);
});

test('openid-client gets an error when the request is denied', async () => {
  const configuration = await discoverServer();
  const authorization = await client.initiateDeviceAuthorization(configuration, {});
  const tokenPoll = client.pollDeviceAuthorizationGrant(configuration, authorization);
  const pollRefusal = assert.rejects(tokenPoll, { error: 'access_denied', status: 400 });
  await devices.read(devices.owner, authorization.user_code);
  const denialResponse = await devices.decide(devices.owner, authorization.user_code, { decision: 'deny' });
  assert.deepEqual([denialResponse.status, denialResponse.body.status], [200, 'denied']);
  await pollRefusal;
});

// ---- raw requests, as JSON and as forms -----------------------------------------------------------------------------

test('the start of a device authorization returns 200 for a form and 201 for JSON, and the token can be requested in the other format', async () => {
  const formStartResponse = await devices.sendWithoutCredential<StartedDevice>(
    AUTHORIZATIONS,
    form({ client_id: 'my-agent' }),
    FORM_HEADERS,
  );
  assert.equal(formStartResponse.status, 200, formStartResponse.text);
  assert.equal(formStartResponse.headers['cache-control'], 'no-store');
  const { user_code: userCode, device_code: deviceCode, interval, expires_in: expiresIn } = formStartResponse.body;
  assert.match(userCode, /^[BCDFGHJKLMNPQRSTVWXZ2-9]{4}-[BCDFGHJKLMNPQRSTVWXZ2-9]{4}$/);
  assert.match(deviceCode, /^bdc_[A-Za-z0-9_-]{49}$/);
  assert.deepEqual([interval, expiresIn], [5, 600]);
  assert.ok(userCode);
  await devices.approve(formStartResponse.body);
  const token = await devices.collectToken(formStartResponse.body);
  assert.equal(token.scope, 'applications:read keys:write');
  assert.deepEqual(token.application_ids, [server.applicationId]);

  const jsonStart = await devices.start();
  await devices.approve(jsonStart);
  const fields = {
    grant_type: DEVICE_GRANT_TYPE,
    device_code: jsonStart.device_code,
    client_id: 'my-agent',
    unknown: 'x',
  };
  const formTokenResponse = await devices.sendWithoutCredential<CollectedToken>(
    DEVICE_TOKENS,
    form(fields),
    FORM_HEADERS,
  );
  assert.equal(formTokenResponse.status, 200, formTokenResponse.text);
  assert.equal(formTokenResponse.headers['cache-control'], 'no-store');
});

test('a person who enters the code sees the program name, the requested scopes and the network address', async () => {
  const authorization = await devices.start({ scope: 'keys:write audit:read', device_name: 'build-7' });
  const typedCode = authorization.user_code.toLowerCase().replace('-', '%20-');
  const { status, body, text } = await devices.read(devices.owner, typedCode);
  assert.equal(status, 200, text);
  assert.equal(body.id, authorization.id);
  assert.equal(body.status, 'claimed');
  assert.deepEqual(body.client, { id: 'my-agent', verified: false });
  assert.equal(body.deviceName, 'build-7');
  assert.deepEqual(body.scopes, ['keys:write', 'audit:read']);
  assert.deepEqual(body.requestedFrom, { ip: '127.0.0.1', isYourNetwork: true });
  assert.deepEqual(
    body.applications.map(({ id, role }) => ({ id, role })),
    [{ id: server.applicationId, role: 'owner' }],
  );
  assert.equal(Date.parse(body.expiresAt) - Date.parse(body.startedAt), 600_000);
});

test('a device login returns a developer token that is valid for eight hours and has only the scopes and applications that the person selected', async () => {
  const authorization = await devices.start({
    scope: 'applications:read keys:write audit:read',
    device_name: 'laptop',
  });
  await devices.approve(authorization, { scopes: ['applications:read', 'keys:write'] });
  const { access_token: token, token_id: id, scope, expires_in: expiresIn } = await devices.collectToken(authorization);
  assert.deepEqual([scope, expiresIn], ['applications:read keys:write', 28_800]);
  const currentResponse = await server.api<Token>('GET', '/v1/account/tokens/current', { key: token });
  assert.equal(currentResponse.body.id, id);
  assert.equal(currentResponse.body.kind, 'developer');
  assert.equal(currentResponse.body.name, 'laptop');
  assert.deepEqual(currentResponse.body.applicationIds, [server.applicationId]);
  const keys = `/v1/applications/${server.applicationId}/agent-keys`;
  assert.equal((await server.api('POST', keys, { key: token, body: { name: 'from a device' } })).status, 201);
  assert.equal((await server.api('GET', `/v1/applications/${server.applicationId}/audit`, { key: token })).status, 403);
  await server.advance(8 * HOUR_MS + 1000);
  assert.equal(await statusWith(token), 401);
});

test('a token request returns authorization_pending before the approval, slow_down if sent too soon, and the token after the approval', async () => {
  const authorization = await devices.start();
  const firstResponse = await devices.collect(authorization);
  assert.deepEqual(
    [firstResponse.status, firstResponse.body.error, firstResponse.body.code],
    [400, 'authorization_pending', 'authorization_pending'],
  );
  assert.equal(firstResponse.headers['x-should-retry'], 'true');
  const secondResponse = await devices.collect(authorization);
  assert.deepEqual([secondResponse.status, secondResponse.body.error], [400, 'slow_down']);
  assert.equal(secondResponse.headers['retry-after'], '10');
  assert.equal(secondResponse.body.statusCode, 400);
  assert.ok(secondResponse.body.error_description && secondResponse.body.requestId);
  await server.advance(POLL_INTERVAL_MS);
  assert.equal((await devices.collect(authorization)).body.error, 'slow_down', 'the interval is ten seconds now');
  await server.advance(4 * POLL_INTERVAL_MS);
  await devices.approve(authorization);
  await devices.collectToken(authorization);
});

test('the codes of an authorization expire after ten minutes, even if the request was approved', async () => {
  const [pending, approved] = [await devices.start(), await devices.start()];
  await devices.approve(approved);
  await server.advance(601_000);
  for (const authorization of [pending, approved])
    assert.equal((await devices.collect(authorization)).body.error, 'expired_token');
  const person = await devices.signInOwner();
  assert.equal((await devices.read(person, pending.user_code)).status, 404);
});

test('a token request requires the verifier if the authorization has a code challenge', async () => {
  const verifier = client.randomPKCECodeVerifier();
  const challenge = await client.calculatePKCECodeChallenge(verifier);
  const authorization = await devices.start({
    code_challenge: challenge,
    code_challenge_method: 'S256',
    resource: server.url,
  });
  await devices.approve(authorization);
  assert.equal((await devices.collect(authorization)).body.error, 'invalid_grant');
  await devices.collectToken(authorization, { code_verifier: verifier });
});

test('OAuth errors have the fields of RFC 6749 and the fields of other API errors', async () => {
  const authorization = await devices.start();
  const cases: ReadonlyArray<readonly [string, string, object]> = [
    [AUTHORIZATIONS, 'invalid_scope', { client_id: 'my-agent', scope: 'openid' }],
    [AUTHORIZATIONS, 'invalid_target', { client_id: 'my-agent', resource: 'https://elsewhere.example' }],
    [AUTHORIZATIONS, 'invalid_request', {}],
    [AUTHORIZATIONS, 'invalid_request', { client_id: 'my agent' }],
    [AUTHORIZATIONS, 'invalid_request', { client_id: 'my-agent', code_challenge: 'x'.repeat(43) }],
    [DEVICE_TOKENS, 'unsupported_grant_type', { grant_type: 'refresh_token', client_id: 'my-agent' }],
    [DEVICE_TOKENS, 'invalid_client', { grant_type: DEVICE_GRANT_TYPE, device_code: authorization.device_code }],
    [
      DEVICE_TOKENS,
      'invalid_grant',
      { grant_type: DEVICE_GRANT_TYPE, device_code: authorization.device_code, client_id: 'other' },
    ],
    [DEVICE_TOKENS, 'invalid_grant', { grant_type: DEVICE_GRANT_TYPE, device_code: 'bdc_x', client_id: 'my-agent' }],
    [DEVICE_TOKENS, 'invalid_request', { grant_type: DEVICE_GRANT_TYPE, client_id: 'my-agent' }],
  ];
  for (const [path, error, body] of cases) {
    const response = await devices.sendWithoutCredential(path, body);
    assert.deepEqual([response.status, response.body.error, response.body.code], [400, error, error], response.text);
    assert.match(response.body.error_description, /^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/);
    assert.equal(response.body.requestId, response.headers['x-request-id']);
  }
});

test('a decision about a device authorization cannot be changed, and an approval requires a recent proof of identity, but a denial does not', async () => {
  const authorization = await devices.start();
  await devices.signInOwner();
  await server.advance(301_000);
  const { owner } = devices;
  assert.equal((await devices.read(owner, authorization.user_code)).status, 200);
  const stepUpRefusal = await devices.decide<ErrorBody>(owner, authorization.user_code, devices.approval);
  assert.deepEqual([stepUpRefusal.status, stepUpRefusal.body.code], [401, 'insufficient_user_authentication']);
  assert.equal((await devices.decide(owner, authorization.user_code, { decision: 'deny' })).status, 200);
  const conflictResponse = await devices.decide<ErrorBody>(
    await devices.signInOwner(),
    authorization.user_code,
    devices.approval,
  );
  assert.deepEqual([conflictResponse.status, conflictResponse.body.code], [409, 'already_decided']);
  assert.equal((await devices.collect(authorization)).body.error, 'access_denied');
});

test('an authorization request that nobody has read can be denied, but not approved', async () => {
  const authorization = await devices.start();
  const owner = await devices.signInOwner();
  const approvalRefusal = await devices.decide<ErrorBody>(owner, authorization.user_code, devices.approval);
  assert.deepEqual([approvalRefusal.status, approvalRefusal.body.code], [404, 'not_found']);
  const denialResponse = await devices.decide(owner, authorization.user_code, { decision: 'deny' });
  assert.deepEqual([denialResponse.status, denialResponse.body.status], [200, 'denied']);
  assert.equal((await devices.collect(authorization)).body.error, 'access_denied');
});

// ---- the state of an authorization ----------------------------------------------------------------------------------

const stateOf = (authorization: StartedDevice, query = '') =>
  server.api<DeviceState>('GET', `${AUTHORIZATIONS}/${authorization.id}${query}`, { key: authorization.device_code });

test('a program can wait until the state of its authorization changes', async () => {
  const authorization = await devices.start();
  const stateResponse = await stateOf(authorization);
  assert.equal(stateResponse.status, 200, stateResponse.text);
  assert.equal(stateResponse.body.status, 'pending');
  assert.ok(stateResponse.body.expiresIn > 590 && stateResponse.body.expiresIn <= 600);
  const earlyRefusal = await stateOf(authorization);
  assert.deepEqual([earlyRefusal.status, earlyRefusal.headers['retry-after']], [429, '5']);
  const changedState = stateOf(authorization, '?wait=55&since=pending');
  assert.equal((await devices.read(await devices.signInOwner(), authorization.user_code)).status, 200);
  assert.equal((await changedState).body.status, 'claimed');
  const unchangedState = stateOf(authorization, '?wait=55');
  const ended = { is: false };
  void unchangedState.then(() => Object.assign(ended, { is: true }));
  const advanceAndCheck = () => server.advance(5_000).then(() => ended.is);
  await eventually('the wait to end', advanceAndCheck, Boolean);
  assert.equal((await unchangedState).body.status, 'claimed', 'nothing has changed until the end of the wait');
  await server.advance(600_000);
  assert.equal((await stateOf(authorization, '?since=claimed&wait=55')).body.status, 'expired');
});

test('the row of a device authorization is removed a day after its codes expire', async () => {
  const authorization = await devices.start();
  await server.advance(24 * HOUR_MS + 660_000);
  const statusOf = async (): Promise<number> => (await stateOf(authorization)).status;
  await server.eventuallyHourly('the row to be removed', statusOf, status => status === 401);
  assert.equal((await devices.collect(authorization)).body.error, 'invalid_grant');
});

// ---- revocation by value, creation of an application, the audit log ---------------------------------------------------

test('a token can be revoked by its value, sent as JSON or as a form, and a revocation of an unknown token returns 200', async () => {
  const owner = await createOwnerToken(server);
  const issueOptions = { key: owner, body: { name: 'to be revoked', scopes: ['applications:read'] } };
  const { body } = await server.api<{ token: string }>('POST', '/v1/account/tokens', issueOptions);
  assert.equal(await statusWith(body.token), 200);
  const revokeResponse = await devices.sendWithoutCredential(
    REVOKE_PATH,
    form({ token: body.token, token_type_hint: 'access_token' }),
    FORM_HEADERS,
  );
  assert.deepEqual([revokeResponse.status, revokeResponse.text], [200, '']);
  assert.equal(await statusWith(body.token), 401);
  for (const token of [body.token, 'nonsense', server.key])
    assert.equal((await devices.sendWithoutCredential(REVOKE_PATH, { token })).status, 200);
  assert.equal((await server.api('GET', '/v1/browsers/sessions')).status, 200, 'agent keys are not revoked here');
  assert.equal((await devices.sendWithoutCredential(REVOKE_PATH, {})).body.error, 'invalid_request');
});

test('the audit log records that an account approved a device in a signed-in session', async () => {
  const owner = await createOwnerToken(server);
  const authorization = await devices.start();
  await devices.approve(authorization);
  await devices.collectToken(authorization);
  const path = `/v1/applications/${server.applicationId}/audit?action=device.approved`;
  const { body } = await server.api<AuditPage>('GET', path, { key: owner });
  const entry = body.data.find(({ target }) => target?.id === authorization.id);
  assert.equal(entry?.actor.kind, 'account');
  assert.equal(entry.via?.kind, 'human_session');
  assert.equal(entry.outcome, 'success');
});

test('a token with applications:write but without access to any application can create one application and then use that application', async () => {
  const authorization = await devices.start({ scope: 'applications:read applications:write keys:write' });
  await devices.approve(authorization, { applicationIds: [] });
  const { access_token: key, application_ids: ids } = await devices.collectToken(authorization);
  assert.deepEqual(ids, []);
  assert.equal((await server.api('GET', `/v1/applications/${server.applicationId}`, { key })).status, 404);
  const createApplication = () =>
    server.api<Application>('POST', '/v1/applications', { key, body: { name: 'By an agent' } });
  const createResponses = await Promise.all(Array.from({ length: 10 }, createApplication));
  const successes = createResponses.filter(({ status }) => status === 201);
  assert.deepEqual([successes.length, createResponses.filter(({ status }) => status === 403).length], [1, 9]);
  const id = successes[0]?.body.id;
  const keys = { key, body: { name: 'first' } };
  assert.equal((await server.api('POST', `/v1/applications/${id}/agent-keys`, keys)).status, 201);
  const listResponse = await server.api<ApplicationPage>('GET', '/v1/applications', { key });
  assert.deepEqual(
    listResponse.body.data.map(one => one.id),
    [id],
  );
  assert.equal((await createApplication()).status, 403);
});
