// Consumers sign in with an OpenID provider of the application. The provider is an unmodified `oidc-provider`.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ErrorBody } from '../../contract/common.ts';
import type { ConsumerProvider, ConsumerTokens } from '../../contract/consumers.ts';
import { ConsumerFixture } from '../harness/consumers.ts';
import { CLIENT, PlainBrowser, settingsToReach, startOpenIdProvider } from '../harness/openid-provider.ts';
import { Person } from '../harness/person.ts';
import { startServer } from '../harness/server.ts';

const provider = await startOpenIdProvider();
const server = await startServer({ env: settingsToReach(provider.issuer) });
const owner = await Person.setUpOwner(server);
const lab = await ConsumerFixture.open(server, owner);
await provider.register(`${server.url}/v1/consumer/callback`);
const path = `/v1/applications/${server.applicationId}/identity/providers/acme`;
const providerSettings = { title: 'Acme', issuer: provider.issuer, clientId: CLIENT.id, clientSecret: CLIENT.secret };
await owner.send('PUT', path, providerSettings);

/** Signs in at the provider. Returns the values with which the application exchanges the code. */
async function signInAtProvider(login: string, more: object = {}) {
  const pendingSignIn = await lab.startSignIn(more, 'acme');
  const callback = await new PlainBrowser().signIn(pendingSignIn.startResult.authorizationUrl, login, [
    provider.issuer,
  ]);
  assert.ok(callback.startsWith(`${server.url}/v1/consumer/callback?`), callback);
  const callbackResponse = await server.api('GET', callback.slice(server.url.length), { key: null });
  assert.equal(callbackResponse.status, 303, callbackResponse.text);
  const redirectTo = callbackResponse.headers.location ?? assert.fail();
  assert.equal(new URL(redirectTo).searchParams.get('state'), pendingSignIn.state, redirectTo);
  return { begun: pendingSignIn, redirectTo };
}

async function signIn(login: string, more: object = {}): Promise<ConsumerTokens> {
  const { begun: pendingSignIn, redirectTo } = await signInAtProvider(login, more);
  const { body, status, text } = await lab.exchange(pendingSignIn, redirectTo, 'acme');
  assert.equal(status, 200, `${redirectTo} ${text}`);
  return body;
}

test('a provider is configured from its discovery document, and its secret is never returned', async () => {
  const { body, status, text, headers } = await owner.get<ConsumerProvider>(path);
  assert.equal(status, 200, text);
  assert.deepEqual(
    [body.clientSecret, body.authMethod, body.canEndSessions, body.enabled, headers.etag],
    ['set', 'client_secret_basic', true, true, '"1"'],
  );
  assert.equal(body.redirectUri, `${server.url}/v1/consumer/callback`);
  assert.ok(!text.includes(CLIENT.secret));
  const configResponse = await server.api<{ consumer: { providers: unknown } }>(
    'GET',
    `/v1/config?application=${server.applicationId}`,
    { key: null },
  );
  assert.deepEqual(configResponse.body.consumer.providers, [
    { id: 'hosted', title: 'Default', kind: 'hosted' },
    { id: 'acme', title: 'Acme', kind: 'oidc' },
  ]);
});

test('a consumer signs in at the provider, refreshes the consumer session, and gets a logout URL of the provider', async () => {
  const tokens = await signIn('kim');
  assert.equal(tokens.consumer.providerId, 'acme');
  assert.notEqual(tokens.consumer.subject, 'kim');
  const refreshResponse = await lab.send<ConsumerTokens>(
    'session.refresh',
    { refreshToken: tokens.refreshToken },
    undefined,
    { provider: 'acme' },
  );
  assert.equal(refreshResponse.status, 200, refreshResponse.text);
  const endResponse = await lab.send<{ logoutUrl: string }>('session.end', {}, refreshResponse.body.accessToken, {
    provider: 'acme',
  });
  assert.equal(endResponse.status, 200, endResponse.text);
  const logoutUrl = new URL(endResponse.body.logoutUrl);
  assert.equal(logoutUrl.origin, provider.issuer);
  assert.match(logoutUrl.searchParams.get('id_token_hint') ?? '', /^ey/);
  const page = await fetch(logoutUrl);
  assert.equal(page.status, 200);
  assert.match(await page.text(), /session\/end\/confirm/);
});

test('two sign-ins with the same account of the provider return the same consumer, and another account returns a different consumer', async () => {
  const [one, again, other] = [await signIn('kim'), await signIn('kim'), await signIn('lee')];
  assert.equal(again.consumer.id, one.consumer.id);
  assert.notEqual(other.consumer.id, one.consumer.id);
});

test('a sign-in with a maximum age of 0 returns a current authentication time', async () => {
  const { authTime } = await signIn('kim', { maxAge: 0, prompt: 'login' });
  assert.ok(Math.abs(authTime - Date.now() / 1000) < 300, String(authTime));
});

test('a consumer who cancels the sign-in at the provider is redirected to the application with an error and the state', async () => {
  const pendingSignIn = await lab.startSignIn({}, 'acme');
  const url = new URL(pendingSignIn.startResult.authorizationUrl);
  const query = new URLSearchParams({ error: 'access_denied', state: url.searchParams.get('state') ?? '' });
  const callbackResponse = await server.api('GET', `/v1/consumer/callback?${query}`, { key: null });
  const redirectTo = new URL(callbackResponse.headers.location ?? assert.fail(callbackResponse.text));
  assert.deepEqual(
    [redirectTo.searchParams.get('error'), redirectTo.searchParams.get('state'), redirectTo.searchParams.has('code')],
    ['access_denied', pendingSignIn.state, false],
  );
});

test('nobody can sign in with a disabled or removed provider, and existing consumer sessions remain valid', async () => {
  const { refreshToken } = await signIn('kim');
  const { begun: pendingSignIn, redirectTo } = await signInAtProvider('lee');
  const disableResponse = await owner.send('PUT', path, { ...providerSettings, enabled: false }, { 'if-match': '"1"' });
  assert.equal(disableResponse.status, 200, disableResponse.text);
  const refusal = await lab.send<ErrorBody>(
    'session.start',
    { redirectUri: 'https://shop.example/signed-in', codeChallenge: 'x'.repeat(43) },
    undefined,
    { provider: 'acme' },
  );
  assert.deepEqual([refusal.status, refusal.body.code], [422, 'feature_unavailable'], refusal.text);
  assert.equal((await owner.send('DELETE', path, undefined, { 'if-match': '"2"' })).status, 204);
  assert.equal((await owner.get(path)).status, 404);
  const exchangeResponse = await lab.exchange(pendingSignIn, redirectTo, 'acme');
  assert.equal(exchangeResponse.status, 404, exchangeResponse.text);
  const provider = { provider: 'acme' };
  const refreshResponse = await lab.send<ConsumerTokens>('session.refresh', { refreshToken }, undefined, provider);
  assert.equal(refreshResponse.status, 200, refreshResponse.text);
  const sessionResponse = await lab.send('session.get', {}, refreshResponse.body.accessToken, provider);
  assert.equal(sessionResponse.status, 200, sessionResponse.text);
});
