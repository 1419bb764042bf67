// Attacks on consumer sessions: stolen codes and tokens, other applications, origins and redirect addresses.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ErrorBody } from '../../contract/common.ts';
import type { HostedSignInResult } from '../../contract/consumers.ts';
import type { EmailCodeSent, PasskeyChallenge } from '../../contract/sign-in.ts';
import { ACTION_SCOPES, ActionAgent } from '../harness/actions.ts';
import { Authenticator } from '../harness/authenticator.ts';
import { cancelOrderOperation, Owner } from '../harness/configured.ts';
import { ConsumerFixture, challengeOf, REDIRECT_URI, SHOP_ORIGIN } from '../harness/consumers.ts';
import { claimFreePort } from '../harness/free-port.ts';
import { liftLimits } from '../harness/limits.ts';
import { issueAgentKey } from '../harness/operations.ts';
import { PageInSession, settingsForOwnPages } from '../harness/page-in-session.ts';
import { Person } from '../harness/person.ts';
import { startServer } from '../harness/server.ts';
import { openUpstream } from '../harness/upstream.ts';

const upstream = await openUpstream();
const port = await claimFreePort();
const server = await startServer({ clock: 'test', port, env: settingsForOwnPages(port, upstream.port) });
const owner = await Person.setUpOwner(server);
const lab = await ConsumerFixture.open(server, owner);
const { body: otherApplication } = await owner.post<{ id: string }>('/v1/applications', { name: 'Other' });
const otherLab = await ConsumerFixture.open(server, owner, otherApplication.id);

const TEN_MINUTES_MS = 600_000;
const cookieOf = (accessToken: string): string => `berth-consumer-${lab.appId.replaceAll('-', '')}=${accessToken}`;
const codeOf = (redirectTo: string): string => new URL(redirectTo).searchParams.get('code') ?? assert.fail(redirectTo);

test('a refresh token that is sent a second time ends the whole consumer session', async () => {
  const firstTokens = await lab.signIn('reuse@example.com');
  const refreshResponse = await lab.send<typeof firstTokens>('session.refresh', {
    refreshToken: firstTokens.refreshToken,
  });
  assert.equal(refreshResponse.status, 200, refreshResponse.text);
  const reuseRefusal = await lab.send<ErrorBody>('session.refresh', { refreshToken: firstTokens.refreshToken });
  assert.deepEqual([reuseRefusal.status, reuseRefusal.body.code], [400, 'invalid_grant'], reuseRefusal.text);
  assert.equal((await lab.send('session.get', {}, refreshResponse.body.accessToken)).status, 401);
  const laterResponse = await lab.send<ErrorBody>('session.refresh', {
    refreshToken: refreshResponse.body.refreshToken,
  });
  assert.deepEqual([laterResponse.status, laterResponse.body.code], [400, 'invalid_grant']);
});

test('at most one of twenty concurrent requests with the same refresh token gets tokens, and these tokens are then revoked', async () => {
  const { refreshToken } = await lab.signIn('race@example.com');
  const responses = await Promise.all(
    Array.from({ length: 20 }, () => lab.send<{ accessToken: string }>('session.refresh', { refreshToken })),
  );
  const successfulResponses = responses.filter(({ status }) => status === 200);
  assert.ok(successfulResponses.length <= 1, String(successfulResponses.length));
  for (const { body } of successfulResponses)
    assert.equal((await lab.send('session.get', {}, body.accessToken)).status, 401);
});

test('an authorization code works once, and sending it again ends the consumer session that it opened', async () => {
  const startedSignIn = await lab.startSignIn();
  const redirectTo = await lab.finish(startedSignIn, 'code@example.com');
  const firstResponse = await lab.exchange(startedSignIn, redirectTo);
  assert.equal(firstResponse.status, 200, firstResponse.text);
  const secondResponse = await lab.exchange(startedSignIn, redirectTo);
  assert.deepEqual([secondResponse.status, Object(secondResponse.body).code], [400, 'invalid_grant']);
  assert.equal((await lab.send('session.get', {}, firstResponse.body.accessToken)).status, 401);
});

test('a stolen authorization code is refused with a wrong verifier, with another redirect URI, or for another application', async () => {
  const attempts: ReadonlyArray<(code: string, verifier: string) => Promise<{ status: number; body: unknown }>> = [
    code => lab.send('session.exchange', { code, codeVerifier: 'x'.repeat(43), redirectUri: REDIRECT_URI }),
    (code, codeVerifier) => lab.send('session.exchange', { code, codeVerifier, redirectUri: `${REDIRECT_URI}/` }),
    (code, codeVerifier) => otherLab.send('session.exchange', { code, codeVerifier, redirectUri: REDIRECT_URI }),
  ];
  for (const attempt of attempts) {
    const startedSignIn = await lab.startSignIn();
    const { status, body } = await attempt(
      codeOf(await lab.finish(startedSignIn, 'stolen@example.com')),
      startedSignIn.verifier,
    );
    assert.deepEqual([status, Object(body).code], [400, 'invalid_grant']);
  }
});

test('an e-mail code from one sign-in cannot complete another sign-in', async () => {
  const [ownSignIn, otherSignIn] = [await lab.startSignIn(), await lab.startSignIn()];
  const codeResponse = await lab.sendFromPage<EmailCodeSent>('hosted.code', {
    signIn: ownSignIn.signIn,
    email: 'victim@example.com',
  });
  const code = await lab.codeMailedTo('victim@example.com');
  const verifyResponse = await lab.sendFromPage<ErrorBody>('hosted.verify', {
    ...{ signIn: otherSignIn.signIn, ticket: codeResponse.body.ticket, code },
  });
  assert.deepEqual([verifyResponse.status, verifyResponse.body.code], [401, 'sign_in_failed'], verifyResponse.text);
});

test('a six-digit code cannot be guessed, because the sixth attempt is refused even with the right code', async () => {
  const { signIn } = await lab.startSignIn();
  const codeResponse = await lab.sendFromPage<EmailCodeSent>('hosted.code', { signIn, email: 'guess@example.com' });
  const code = await lab.codeMailedTo('guess@example.com');
  const wrongCode = code === '000000' ? '000001' : '000000';
  for (let tries = 0; tries < 5; tries += 1) {
    const refusal = await lab.sendFromPage('hosted.verify', {
      signIn,
      ticket: codeResponse.body.ticket,
      code: wrongCode,
    });
    assert.equal(refusal.status, 401, refusal.text);
  }
  const sixthRefusal = await lab.sendFromPage('hosted.verify', { signIn, ticket: codeResponse.body.ticket, code });
  assert.equal(sixthRefusal.status, 401, sixthRefusal.text);
});

test('a request for an e-mail code gets the same response for known and unknown addresses, and no code is e-mailed to an unknown address', async () => {
  await lab.signIn('known@example.com');
  await lab.configure({ hosted: { methods: ['email_code', 'password', 'passkey'], registration: 'closed' } });
  const { signIn } = await lab.startSignIn();
  const knownResponse = await lab.sendFromPage<object>('hosted.code', { signIn, email: 'known@example.com' });
  const unknownResponse = await lab.sendFromPage<object>('hosted.code', { signIn, email: 'unknown@example.com' });
  assert.deepEqual(
    [knownResponse.status, Object.keys(knownResponse.body)],
    [unknownResponse.status, Object.keys(unknownResponse.body)],
  );
  await assert.rejects(lab.codeMailedTo('unknown@example.com'), /no code was e-mailed/);
  await lab.configure({});
});

test('an access token of a consumer does not work for another application, another provider or other parts of the API', async () => {
  const { accessToken } = await lab.signIn('token@example.com');
  const refusal = await otherLab.send<ErrorBody>('session.get', {}, accessToken);
  assert.deepEqual([refusal.status, refusal.body.code], [404, 'not_found'], refusal.text);
  assert.equal((await lab.send('session.get', {}, accessToken, { provider: 'acme' })).status, 404);
  for (const path of ['/v1/account', '/v1/browsers/sessions', `/v1/applications/${lab.appId}`]) {
    const response = await server.api<ErrorBody>('GET', path, { key: accessToken });
    assert.deepEqual([response.status, response.body.code], [401, 'invalid_credentials'], path);
  }
});

test('requests from pages of other origins are refused, with or without a preflight', async () => {
  const { accessToken } = await lab.signIn('origin@example.com');
  const path = `/v1/consumer/applications/${lab.appId}/providers/hosted/session.get`;
  for (const origin of [
    'https://evil.example',
    'null',
    `${SHOP_ORIGIN}.evil.example`,
    'https://shop.example:444',
    'http://shop.example',
  ]) {
    const preflightResponse = await server.api('OPTIONS', path, { key: null, headers: { origin } });
    assert.deepEqual(
      [preflightResponse.status, preflightResponse.headers['access-control-allow-origin']],
      [403, undefined],
      origin,
    );
    const refusal = await lab.send<ErrorBody>('session.get', {}, accessToken, { headers: { origin } });
    assert.deepEqual([refusal.status, refusal.body.code], [403, 'origin_not_allowed'], origin);
    assert.equal(refusal.headers['access-control-allow-origin'], undefined);
  }
});

test('a sign-in with an unregistered redirect address is refused, and so is a cookie sign-in with an address that is not a consumer page of the service', async () => {
  const codeChallenge = challengeOf('x'.repeat(43));
  for (const redirectUri of [
    'https://evil.example/',
    `${REDIRECT_URI}?next=https://evil.example`,
    `${REDIRECT_URI}/../evil`,
    `${REDIRECT_URI}#x`,
    REDIRECT_URI.toUpperCase(),
    `https://shop.example@evil.example/signed-in`,
    `https://shop.example\\@evil.example/signed-in`,
    'javascript:alert(1)',
    `${server.url}/consumer/${lab.appId}`,
  ]) {
    const refusal = await lab.send<ErrorBody>('session.start', { redirectUri, codeChallenge });
    assert.deepEqual([refusal.status, refusal.body.code], [400, 'invalid_request'], redirectUri);
  }
  for (const redirectUri of [
    REDIRECT_URI,
    'https://evil.example/',
    `${server.url}/console`,
    `${server.url}/approve/../x`,
  ]) {
    const refusal = await lab.send<ErrorBody>('session.start', { redirectUri, codeChallenge, transport: 'cookie' });
    assert.deepEqual([refusal.status, refusal.body.code], [400, 'invalid_request'], redirectUri);
  }
});

test('unsafe origins and addresses cannot be registered', async () => {
  const path = `/v1/applications/${lab.appId}/identity`;
  for (const wrongBody of [
    { origins: ['*'] },
    { origins: ['null'] },
    { origins: ['https://shop.example/'] },
    { origins: ['http://shop.example'] },
    { origins: ['https://*'] },
    { origins: ['https://*.shop.example'] },
    { origins: ['https://a;sandbox'] },
    { origins: ['https://a,b'] },
    { redirectUris: ['https://*/cb'] },
    { redirectUris: ['http://shop.example/cb'] },
    { redirectUris: ['https://user@shop.example/cb'] },
    { redirectUris: ['https://shop.example/cb#x'] },
    { redirectUris: ['javascript:alert(1)'] },
  ]) {
    const refusal = await owner.send<ErrorBody>('PUT', path, wrongBody, { 'if-match': '*' });
    assert.deepEqual([refusal.status, refusal.body.code], [400, 'invalid_request'], JSON.stringify(wrongBody));
  }
});

test('only pages of the service itself can use the sign-in commands and the cookie', async () => {
  const { signIn } = await lab.startSignIn();
  for (const headers of [{ origin: SHOP_ORIGIN }, { origin: 'https://evil.example' }, {}]) {
    const refusal = await lab.send<ErrorBody>('hosted.code', { signIn, email: 'x@example.com' }, undefined, {
      headers,
    });
    assert.deepEqual([refusal.status, refusal.body.code], [403, 'cross_site_request'], JSON.stringify(headers));
  }
  const { accessToken } = await lab.signIn('cookie@example.com');
  const cookie = cookieOf(accessToken);
  for (const origin of [SHOP_ORIGIN, undefined]) {
    const headers = { cookie, ...(origin ? { origin } : {}) };
    const refusal = await lab.send<ErrorBody>('session.end', {}, undefined, { headers });
    assert.deepEqual([refusal.status, refusal.body.code], [403, 'cross_site_request'], origin ?? 'none');
  }
  assert.equal((await lab.sendFromPage('session.get', {}, { cookie })).status, 200);
});

test('a passkey of another application or host, or without user verification, cannot sign in', async () => {
  const origin = server.url.replace('127.0.0.1', 'localhost');
  const authenticator = await addPasskey(lab, origin, 'key@example.com');
  const attempt = async (fixture: ConsumerFixture, forged: object = {}): Promise<number> => {
    const { signIn } = await fixture.startSignIn();
    const optionsResponse = await fixture.sendFromPage<PasskeyChallenge>(
      'hosted.passkeyOptions',
      { signIn },
      { origin },
    );
    const response = authenticator.get(optionsResponse.body.publicKey, forged);
    const body = { signIn, ticket: optionsResponse.body.ticket, response };
    return (await fixture.sendFromPage<HostedSignInResult>('hosted.passkey', body, { origin })).status;
  };
  assert.equal(await attempt(lab), 200);
  assert.equal(await attempt(otherLab), 401);
  assert.equal(await attempt(lab, { rpId: 'evil.example' }), 401);
  assert.equal(await attempt(lab, { origin: 'https://evil.example' }), 401);
  assert.equal(await attempt(lab, { isVerified: false }), 401);
  assert.equal(await attempt(lab, { challenge: Buffer.alloc(32).toString('base64url') }), 401);
});

test('the browser of a session in which a consumer has signed in cannot approve an Action', async () => {
  await liftLimits(server);
  const applicationOwner = await Owner.open(server);
  const approvalOptions = { effect: 'irreversible', approval: 'end_user' } as const;
  await applicationOwner.publish('orders.cancel', cancelOrderOperation(upstream, approvalOptions));
  const { key } = await issueAgentKey(server, { scopes: ACTION_SCOPES, grants: [{ operationId: 'orders.cancel' }] });
  const { accessToken, consumer } = await lab.signIn('approver@example.com');
  const endUser = { providerId: 'hosted', subject: consumer.subject };
  const action = await new ActionAgent(server, key).prepareSuccessfully('orders.cancel', {
    input: { orderId: 'C-1' },
    endUser,
  });
  const approval = { jobId: action.jobId, digest: action.digest };
  const page = await PageInSession.open(server, cookieOf(accessToken));
  const sendCommand = (name: string, body: object) =>
    page.send('POST', `/v1/consumer/applications/${lab.appId}/providers/hosted/${name}`, body);
  const readResponse = await sendCommand('actions.get', { jobId: action.jobId });
  assert.equal(readResponse.status, 200, 'the page is signed in');
  const refusal = await sendCommand('actions.approve', approval);
  assert.deepEqual([refusal.status, refusal.code], [403, 'address_not_allowed']);
  const approveResponse = await lab.send('actions.approve', approval, accessToken);
  assert.equal(approveResponse.status, 200, approveResponse.text);
  await page.close();
});

test('after fifty wrong passwords for several accounts from one client address, even the right password is refused from this address', async () => {
  const [email, password] = ['password@example.com', 'a long enough password'];
  await server.advance(TEN_MINUTES_MS);
  const { signIn } = await lab.startSignIn();
  const registerResponse = await lab.sendFromPage<EmailCodeSent>('hosted.register', { signIn, email, password });
  const verifyBody = { signIn, ticket: registerResponse.body.ticket, code: await lab.codeMailedTo(email) };
  assert.equal((await lab.sendFromPage('hosted.verify', verifyBody)).status, 200);
  const attempt = async (fields: object, { signIn }: { readonly signIn: string }) => {
    const { status, body } = await lab.sendFromPage<ErrorBody>('hosted.password', { signIn, password, ...fields });
    return `${status} ${body.code}`;
  };
  const startedSignIn = await lab.startSignIn();
  for (let account = 0; account < 5; account += 1)
    for (let count = 0; count < 10; count += 1)
      assert.equal(await attempt({ email: `nobody-${account}@example.com` }, startedSignIn), '401 sign_in_failed');
  assert.equal(await attempt({ email }, startedSignIn), '429 rate_limited');
  await server.advance(TEN_MINUTES_MS);
  assert.equal(await attempt({ email }, await lab.startSignIn()), '200 undefined');
});

test('the sign-in pages cannot be framed and load nothing from other origins', async () => {
  const { startResult: started } = await lab.startSignIn();
  const url = started.authorizationUrl.replace('127.0.0.1', 'localhost');
  const response = await fetch(url);
  assert.equal(response.headers.get('x-frame-options'), 'DENY');
  const policy = response.headers.get('content-security-policy') ?? '';
  assert.match(policy, /default-src 'none'/);
  assert.match(policy, /frame-ancestors 'none'/);
  assert.doesNotMatch(await response.text(), /https?:\/\//);
});

/** Adds a passkey to a consumer on one of Berth's pages. */
async function addPasskey(fixture: ConsumerFixture, origin: string, email: string): Promise<Authenticator> {
  const { accessToken } = await fixture.signIn(email);
  const headers = { origin, cookie: `berth-consumer-${fixture.appId.replaceAll('-', '')}=${accessToken}` };
  const authenticator = new Authenticator(origin);
  const optionsResponse = await fixture.sendFromPage<PasskeyChallenge>('passkeys.options', {}, headers);
  const response = authenticator.create(optionsResponse.body.publicKey);
  const addResponse = await fixture.sendFromPage(
    'passkeys.add',
    { ticket: optionsResponse.body.ticket, name: 'Key', response },
    headers,
  );
  assert.equal(addResponse.status, 200, addResponse.text);
  return authenticator;
}
