// End users of an application sign in on a page of Berth, and get a consumer session that the application can refresh
// and end.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ErrorBody } from '../../contract/common.ts';
import type {
  ApplicationIdentity,
  ConsumerProfile,
  ConsumerSession,
  ConsumerTokens,
  HostedSignIn,
  HostedSignInResult,
} from '../../contract/consumers.ts';
import type { SessionEventPage } from '../../contract/events.ts';
import type { EmailCodeSent, PasskeyChallenge } from '../../contract/sign-in.ts';
import { Authenticator } from '../harness/authenticator.ts';
import { ConsumerFixture, challengeOf, REDIRECT_URI, SHOP_ORIGIN } from '../harness/consumers.ts';
import { Person } from '../harness/person.ts';
import { startServer } from '../harness/server.ts';

const server = await startServer({ clock: 'test' });
const owner = await Person.setUpOwner(server);
const lab = await ConsumerFixture.open(server, owner);

test('nobody can sign in if no sign-in method is configured, and the public configuration does not mention consumers', async () => {
  const { id } = (await owner.post<{ id: string }>('/v1/applications', { name: 'Without consumers' })).body;
  const { body, headers } = await owner.get<ApplicationIdentity>(`/v1/applications/${id}/identity`);
  assert.deepEqual([body.hosted.methods, body.revision, headers.etag], [[], 0, '"0"']);
  const startResponse = await server.api<ErrorBody>(
    'POST',
    `/v1/consumer/applications/${id}/providers/hosted/session.start`,
    { key: null, body: { redirectUri: REDIRECT_URI, codeChallenge: challengeOf('x'.repeat(43)) } },
  );
  assert.deepEqual([startResponse.status, startResponse.body.code], [422, 'feature_unavailable'], startResponse.text);
  const serverConfig = await server.api('GET', '/v1/config', { key: null });
  const applicationConfig = await server.api('GET', `/v1/config?application=${id}`, { key: null });
  assert.deepEqual(applicationConfig.body, serverConfig.body);
});

test('the public configuration of an application lists the sign-in providers of its consumers', async () => {
  const { body } = await server.api<{ consumer: object }>('GET', `/v1/config?application=${server.applicationId}`, {
    key: null,
  });
  assert.deepEqual(body.consumer, {
    name: 'Default',
    providers: [{ id: 'hosted', title: 'Default', kind: 'hosted' }],
  });
});

test('a consumer signs in with an e-mailed code, and the application exchanges the authorization code from the redirect for tokens', async () => {
  const pendingSignIn = await lab.startSignIn({ loginHint: 'kim@example.com' });
  const page = await lab.sendFromPage<HostedSignIn>('hosted.describe', { signIn: pendingSignIn.signIn });
  assert.equal(page.status, 200, page.text);
  assert.deepEqual(
    [page.body.application.name, page.body.loginHint, page.body.returnsTo, page.body.registration],
    ['Default', 'kim@example.com', SHOP_ORIGIN, 'open'],
  );
  const redirectUrl = new URL(await lab.finish(pendingSignIn, 'Kim@Example.com'));
  assert.equal(`${redirectUrl.origin}${redirectUrl.pathname}`, REDIRECT_URI);
  assert.equal(redirectUrl.searchParams.get('state'), pendingSignIn.state);
  assert.equal(redirectUrl.searchParams.get('iss'), `${server.url}/a/default`);
  const { body, status, text } = await lab.exchange(pendingSignIn, redirectUrl.href);
  assert.equal(status, 200, text);
  assert.match(body.accessToken ?? '', /^bcs_/);
  assert.match(body.refreshToken ?? '', /^bcr_/);
  assert.deepEqual([body.acr, body.expiresIn, body.consumer.providerId], ['berth:1', 3600, 'hosted']);
  const session = await lab.send<ConsumerSession>('session.get', {}, body.accessToken);
  assert.equal(session.status, 200, session.text);
  assert.deepEqual(session.body.consumer, body.consumer);
});

test('an e-mail address belongs to one consumer in an application, and to a different consumer in another application', async () => {
  const [first, second] = [await lab.signIn('same@example.com'), await lab.signIn('same@example.com')];
  assert.equal(second.consumer.id, first.consumer.id);
  const applicationResponse = await owner.post<{ id: string }>('/v1/applications', { name: 'Other shop' });
  const otherLab = await ConsumerFixture.open(server, owner, applicationResponse.body.id);
  const otherConsumer = await otherLab.signIn('same@example.com');
  assert.notEqual(otherConsumer.consumer.id, first.consumer.id);
  assert.notEqual(otherConsumer.consumer.subject, first.consumer.subject);
});

test('a refresh of a consumer session replaces both of its tokens', async () => {
  const tokensBefore = await lab.signIn('refresh@example.com');
  const { body, status, text } = await lab.send<ConsumerTokens>('session.refresh', {
    refreshToken: tokensBefore.refreshToken,
  });
  assert.equal(status, 200, text);
  assert.notEqual(body.refreshToken, tokensBefore.refreshToken);
  assert.equal((await lab.send('session.get', {}, tokensBefore.accessToken)).status, 401);
  assert.equal((await lab.send('session.get', {}, body.accessToken)).status, 200);
});

test('signing out ends only the current consumer session, and signing out everywhere ends all consumer sessions of the consumer', async () => {
  const [one, other] = [await lab.signIn('out@example.com'), await lab.signIn('out@example.com')];
  assert.equal((await lab.send('session.end', {}, one.accessToken)).status, 204);
  assert.equal((await lab.send('session.get', {}, one.accessToken)).status, 401);
  assert.equal((await lab.send('session.get', {}, other.accessToken)).status, 200);
  const thirdTokens = await lab.signIn('out@example.com');
  assert.equal((await lab.send('session.endAll', {}, thirdTokens.accessToken)).status, 204);
  assert.equal((await lab.send('session.get', {}, other.accessToken)).status, 401);
  const refreshRefusal = await lab.send<ErrorBody>('session.refresh', { refreshToken: other.refreshToken });
  assert.deepEqual([refreshRefusal.status, refreshRefusal.body.code], [400, 'invalid_grant']);
});

test('a consumer sets a password with an e-mailed code, which ends earlier consumer sessions, and signs in with the password', async () => {
  const tokensBefore = await lab.signIn('pass@example.com');
  const pendingSignIn = await lab.startSignIn();
  const loginFields = { signIn: pendingSignIn.signIn, email: 'pass@example.com', password: 'a long enough password' };
  const registerResponse = await lab.sendFromPage<EmailCodeSent>('hosted.register', loginFields);
  assert.equal(registerResponse.status, 202, registerResponse.text);
  const code = await lab.codeMailedTo('pass@example.com');
  const verifyResponse = await lab.sendFromPage('hosted.verify', {
    signIn: pendingSignIn.signIn,
    ticket: registerResponse.body.ticket,
    code,
  });
  assert.equal(verifyResponse.status, 200, verifyResponse.text);
  assert.equal((await lab.send('session.get', {}, tokensBefore.accessToken)).status, 401);
  const next = await lab.startSignIn();
  const passwordResponse = await lab.sendFromPage<HostedSignInResult>('hosted.password', {
    ...loginFields,
    signIn: next.signIn,
  });
  assert.equal(passwordResponse.status, 200, passwordResponse.text);
  assert.equal((await lab.exchange(next, passwordResponse.body.redirectTo)).body.consumer.id, tokensBefore.consumer.id);
});

test('on pages of the service, the consumer session is stored in a cookie, and a passkey can be added and used to sign in', async () => {
  const origin = server.url.replace('127.0.0.1', 'localhost');
  const redirectUri = `${origin}/consumer/${lab.appId}`;
  const headers = { origin };
  const verifier = 'v'.repeat(43);
  const startBody = { redirectUri, codeChallenge: challengeOf(verifier), transport: 'cookie' };
  const startSignIn = async (): Promise<string> => {
    const { body, text } = await lab.sendFromPage<{ authorizationUrl: string }>('session.start', startBody, headers);
    assert.match(body.authorizationUrl ?? text, new RegExp(`^${origin}/consumer/signin/`));
    return body.authorizationUrl.split('/').at(-1) ?? '';
  };
  const exchangeForCookie = async (redirectTo: string): Promise<string> => {
    const code = new URL(redirectTo).searchParams.get('code');
    const {
      status,
      body,
      headers: set,
      text,
    } = await lab.sendFromPage<ConsumerTokens>(
      'session.exchange',
      { code, codeVerifier: verifier, redirectUri },
      headers,
    );
    assert.equal(status, 200, text);
    assert.deepEqual([body.accessToken, body.refreshToken], [undefined, undefined]);
    return set['set-cookie']?.[0]?.split(';', 1)[0] ?? assert.fail(text);
  };
  const signIn = await startSignIn();
  const codeResponse = await lab.sendFromPage<EmailCodeSent>(
    'hosted.code',
    { signIn, email: 'page@example.com' },
    headers,
  );
  const code = await lab.codeMailedTo('page@example.com');
  const verifyResponse = await lab.sendFromPage<HostedSignInResult>(
    'hosted.verify',
    { signIn, ticket: codeResponse.body.ticket, code },
    headers,
  );
  let cookie = await exchangeForCookie(verifyResponse.body.redirectTo);
  const sendWithCookie = <Body>(name: string, body: object = {}) =>
    lab.sendFromPage<Body>(name, body, { ...headers, cookie });
  const authenticator = new Authenticator(origin);
  const optionsResponse = await sendWithCookie<PasskeyChallenge>('passkeys.options');
  assert.equal(optionsResponse.status, 200, optionsResponse.text);
  const addResponse = await sendWithCookie<{ data: readonly unknown[] }>('passkeys.add', {
    ...{
      ticket: optionsResponse.body.ticket,
      name: 'Phone',
      response: authenticator.create(optionsResponse.body.publicKey),
    },
  });
  assert.deepEqual([addResponse.status, addResponse.body.data.length], [200, 1], addResponse.text);
  cookie = addResponse.headers['set-cookie']?.[0]?.split(';', 1)[0] ?? assert.fail();
  assert.equal((await sendWithCookie<ConsumerSession>('session.get')).body.acr, 'phr');
  const secondSignIn = await startSignIn();
  const challenge = await lab.sendFromPage<PasskeyChallenge>(
    'hosted.passkeyOptions',
    { signIn: secondSignIn },
    headers,
  );
  const response = authenticator.get(challenge.body.publicKey);
  const passkeyResponse = await lab.sendFromPage<HostedSignInResult>(
    'hosted.passkey',
    { signIn: secondSignIn, ticket: challenge.body.ticket, response },
    headers,
  );
  assert.equal(passkeyResponse.status, 200, passkeyResponse.text);
  cookie = await exchangeForCookie(passkeyResponse.body.redirectTo);
  assert.equal((await sendWithCookie<ConsumerSession>('session.get')).body.acr, 'phr');
  await server.advance(301_000);
  const optionsRefusal = await sendWithCookie<ErrorBody>('passkeys.options');
  assert.deepEqual(
    [optionsRefusal.status, optionsRefusal.body.code],
    [401, 'insufficient_user_authentication'],
    optionsRefusal.text,
  );
  const proofChallenge = await sendWithCookie<PasskeyChallenge>('passkeys.challenge');
  const stepUpResponse = await sendWithCookie<ConsumerSession>('session.stepUp', {
    ...{ ticket: proofChallenge.body.ticket, response: authenticator.get(proofChallenge.body.publicKey) },
  });
  assert.equal(stepUpResponse.status, 200, stepUpResponse.text);
  cookie = stepUpResponse.headers['set-cookie']?.[0]?.split(';', 1)[0] ?? assert.fail();
  assert.equal((await sendWithCookie('passkeys.options')).status, 200);
});

test('the profile of a consumer can be changed field by field, and invalid values are refused', async () => {
  const { accessToken } = await lab.signIn('profile@example.com');
  const updateResponse = await lab.send<ConsumerProfile>(
    'profile.update',
    { displayName: ' Kim ', locale: 'de-AT', timezone: 'Europe/Vienna', metadata: { size: 'M' } },
    accessToken,
  );
  assert.equal(updateResponse.status, 200, updateResponse.text);
  const { body } = await lab.send<ConsumerProfile>('profile.update', { displayName: 'Kim K' }, accessToken);
  const emptyUpdateResponse = await lab.send<ConsumerProfile>('profile.update', {}, accessToken);
  assert.deepEqual([emptyUpdateResponse.status, emptyUpdateResponse.body], [200, body], emptyUpdateResponse.text);
  assert.deepEqual(
    [body.displayName, body.locale, body.timezone, body.metadata, body.email],
    ['Kim K', 'de-AT', 'Europe/Vienna', { size: 'M' }, 'profile@example.com'],
  );
  for (const wrong of [{ locale: 'not a tag' }, { timezone: 'Mars/Base' }, { metadata: { text: 'x'.repeat(4100) } }]) {
    const refusal = await lab.send<ErrorBody>('profile.update', wrong, accessToken);
    assert.deepEqual([refusal.status, refusal.body.code], [400, 'invalid_request'], refusal.text);
  }
});

test('a deleted consumer loses access immediately, and a new sign-in creates a new consumer', async () => {
  const { accessToken, consumer } = await lab.signIn('gone@example.com');
  const deleteResponse = await lab.send('profile.delete', {}, accessToken);
  assert.equal(deleteResponse.status, 202, deleteResponse.text);
  assert.equal((await lab.send('profile.get', {}, accessToken)).status, 401);
  const newTokens = await lab.signIn('gone@example.com');
  assert.notEqual(newTokens.consumer.id, consumer.id);
  assert.notEqual(newTokens.consumer.subject, consumer.subject);
});

test('pages of registered origins can call the consumer API after a preflight request, and can read its errors', async () => {
  const path = `/v1/consumer/applications/${lab.appId}/providers/hosted/session.get`;
  const preflightResponse = await server.api('OPTIONS', path, {
    key: null,
    headers: { origin: SHOP_ORIGIN, 'access-control-request-method': 'POST' },
  });
  assert.equal(preflightResponse.status, 204);
  assert.equal(preflightResponse.headers['access-control-allow-origin'], SHOP_ORIGIN);
  assert.equal(preflightResponse.headers['access-control-allow-methods'], 'POST');
  const { accessToken } = await lab.signIn('cors@example.com');
  const sessionResponse = await lab.send('session.get', {}, accessToken, { headers: { origin: SHOP_ORIGIN } });
  assert.deepEqual(
    [sessionResponse.status, sessionResponse.headers['access-control-allow-origin']],
    [200, SHOP_ORIGIN],
  );
  const unauthorizedResponse = await lab.send('session.get', {}, undefined, { headers: { origin: SHOP_ORIGIN } });
  assert.deepEqual(
    [unauthorizedResponse.status, unauthorizedResponse.headers['access-control-allow-origin']],
    [401, SHOP_ORIGIN],
  );
});

test('the audit log records the sign-in of a consumer, with the consumer as the actor', async () => {
  const { consumer } = await lab.signIn('audit@example.com');
  const path = `/v1/applications/${lab.appId}/audit?action=consumer.session.started&actor=${consumer.id}`;
  const { body } = await owner.get<{ data: ReadonlyArray<{ actor: object; details: object }> }>(path);
  assert.deepEqual(body.data[0]?.actor, { kind: 'consumer', id: consumer.id });
  assert.deepEqual(body.data[0]?.details, { provider: 'hosted', acr: 'berth:1' });
});

test('the sign-in, sign-out and deletion of a consumer are recorded as events that refer to the consumer only by id', async () => {
  const { accessToken, consumer } = await lab.signIn('told@example.com');
  assert.equal((await lab.send('session.end', {}, accessToken)).status, 204);
  const newTokens = await lab.signIn('told@example.com');
  assert.equal((await lab.send('profile.delete', {}, newTokens.accessToken)).status, 202);
  const { body, text } = await server.api<SessionEventPage>('GET', '/v1/browsers/events?limit=1000');
  const ownEvents = body.data.filter(({ detail }) => detail.consumerId === consumer.id);
  assert.deepEqual(
    ownEvents.map(({ type, actor, detail }) => [type, actor, detail]),
    [
      ['consumer.session.started', { provider: 'hosted', acr: 'berth:1' }],
      ['consumer.session.ended', { which: 'this' }],
      ['consumer.session.started', { provider: 'hosted', acr: 'berth:1' }],
      ['consumer.deleted', {}],
    ].map(([type, facts]) => [
      ...[type, { kind: 'consumer', id: consumer.id }],
      { consumerId: consumer.id, ...Object(facts) },
    ]),
  );
  assert.doesNotMatch(text, /told@example|subject/);
});
