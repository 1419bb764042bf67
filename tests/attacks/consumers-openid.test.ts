// Attacks by and through OpenID providers: forged ID tokens, responses that do not belong to the sign-in, and addresses
// of this machine.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type JWK, type JWTPayload, SignJWT, UnsecuredJWT } from 'jose';
import type { AuditEntry } from '../../contract/audit.ts';
import type { ErrorBody } from '../../contract/common.ts';
import type { ConsumerTokens } from '../../contract/consumers.ts';
import { ConsumerFixture, type StartedSignIn } from '../harness/consumers.ts';
import { CLIENT, HostileProvider, settingsToReach } from '../harness/openid-provider.ts';
import { Person } from '../harness/person.ts';
import { startServer } from '../harness/server.ts';

const [hostileProvider, otherProvider] = [await HostileProvider.open(), await HostileProvider.open()];
const publicKey: JWK = JSON.parse(await hostileProvider.publicKeyText());
hostileProvider.extraKeys = [
  { kty: 'EC', crv: 'P-256', x: 'AAAA', y: 'AAAA', kid: 'broken', alg: 'ES256' },
  ...[1, 2].map(() => ({ ...publicKey, kid: 'twin', alg: 'ES256' })),
];
const server = await startServer({
  clock: 'test',
  // The number of sign-ins per client address is limited, so the tests report a different address for each sign-in.
  env: { ...settingsToReach(hostileProvider.issuer, otherProvider.issuer), BERTH_TRUSTED_PROXIES: '127.0.0.1/32' },
});
const owner = await Person.setUpOwner(server);
const lab = await ConsumerFixture.open(server, owner);
const providerPath = (id: string): string => `/v1/applications/${server.applicationId}/identity/providers/${id}`;
const providerBody = {
  title: 'Evil',
  issuer: hostileProvider.issuer,
  clientId: CLIENT.id,
  clientSecret: CLIENT.secret,
};
await owner.send('PUT', providerPath('evil'), providerBody);

const parameterOf = ({ startResult: started }: StartedSignIn, name: string): string =>
  new URL(started.authorizationUrl).searchParams.get(name) ?? assert.fail(name);

/** Completes the sign-in with the provider's current ID token, and returns the redirect. */
async function finishSignIn(startedSignIn: StartedSignIn, more: Readonly<Record<string, string>> = {}): Promise<URL> {
  hostileProvider.nonce = parameterOf(startedSignIn, 'nonce');
  const query = new URLSearchParams({ code: 'any', state: parameterOf(startedSignIn, 'state'), ...more });
  const callbackResponse = await server.api('GET', `/v1/consumer/callback?${query}`, { key: null });
  assert.equal(callbackResponse.status, 303, callbackResponse.text);
  return new URL(callbackResponse.headers.location ?? assert.fail(callbackResponse.text));
}

const beginSignIn = (more: object = {}): Promise<StartedSignIn> => lab.startSignIn(more, 'evil');

const isRefused = (redirectTo: URL): boolean =>
  redirectTo.searchParams.get('error') === 'server_error' && !redirectTo.searchParams.has('code');

test('a valid ID token signs the consumer in', async () => {
  const startedSignIn = await beginSignIn();
  const { status, body, text } = await lab.exchange(startedSignIn, (await finishSignIn(startedSignIn)).href, 'evil');
  assert.equal(status, 200, text);
  const tokens: ConsumerTokens = body;
  assert.equal(tokens.acr, 'berth:1');
});

const nowSeconds = (): number => Math.floor(Date.now() / 1000) + hostileProvider.aheadSeconds;

/** Returns the reason of the last refused sign-in, from the audit log. */
async function readRefusalReason(): Promise<unknown> {
  const path = `/v1/applications/${server.applicationId}/audit?action=consumer.session.refused&limit=1`;
  return (await owner.send<{ data: AuditEntry[] }>('GET', path)).body.data[0]?.details?.why;
}

/** Creates ID tokens that must be refused, each with the reason in the audit log. */
const FORGERIES: Readonly<Record<string, readonly [reason: string, forge: (nonce: string) => Promise<string>]>> = {
  'another nonce': ['the nonce check failed', () => hostileProvider.sign(hostileProvider.claims('another'))],
  'no nonce': [
    'the nonce check failed',
    nonce => hostileProvider.sign(withoutClaim(hostileProvider.claims(nonce), 'nonce')),
  ],
  'another audience': [
    'the aud check failed',
    nonce => hostileProvider.sign({ ...hostileProvider.claims(nonce), aud: 'another client' }),
  ],
  'several audiences without azp': [
    'the azp check failed',
    nonce => hostileProvider.sign({ ...hostileProvider.claims(nonce), aud: [CLIENT.id, 'other'] }),
  ],
  'another azp': [
    'the azp check failed',
    nonce => hostileProvider.sign({ ...hostileProvider.claims(nonce), azp: 'other' }),
  ],
  'another issuer': [
    'the iss check failed',
    nonce => hostileProvider.sign({ ...hostileProvider.claims(nonce), iss: otherProvider.issuer }),
  ],
  expired: [
    'the exp check failed',
    nonce => hostileProvider.sign({ ...hostileProvider.claims(nonce), exp: nowSeconds() - 120 }),
  ],
  'issued long ago': [
    'the iat check failed',
    nonce => hostileProvider.sign({ ...hostileProvider.claims(nonce), iat: nowSeconds() - 3600 }),
  ],
  'issued in the future': [
    'the iat check failed',
    nonce => hostileProvider.sign({ ...hostileProvider.claims(nonce), iat: nowSeconds() + 3600 }),
  ],
  'no subject': [
    'the sub check failed',
    nonce => hostileProvider.sign(withoutClaim(hostileProvider.claims(nonce), 'sub')),
  ],
  'a subject that is not a string': [
    'the sub check failed',
    nonce => hostileProvider.sign({ ...hostileProvider.claims(nonce), sub: 7 as unknown as string }),
  ],
  'a subject of a thousand characters': [
    'the sub check failed',
    nonce => hostileProvider.sign({ ...hostileProvider.claims(nonce), sub: 'x'.repeat(1000) }),
  ],
  'another access token': [
    'the at_hash check failed',
    nonce => hostileProvider.sign({ ...hostileProvider.claims(nonce), at_hash: 'xxxxxxxxxxxxxxxxxxxxxw' }),
  ],
  'an auth_time in the future': [
    'the auth_time check failed',
    nonce => hostileProvider.sign({ ...hostileProvider.claims(nonce), auth_time: 1e15 }),
  ],
  'no signature (none)': [
    'its signature algorithm is not allowed for this provider',
    async nonce => new UnsecuredJWT(hostileProvider.claims(nonce)).encode(),
  ],
  'the public key as a shared secret (HS256)': [
    'its signature algorithm is not allowed for this provider',
    async nonce =>
      new SignJWT(hostileProvider.claims(nonce))
        .setProtectedHeader({ alg: 'HS256', kid: 'first' })
        .sign(Buffer.from((await hostileProvider.publicKeyText()).padEnd(32))),
  ],
  'the client secret as a shared secret (HS256)': [
    'its signature algorithm is not allowed for this provider',
    nonce =>
      new SignJWT(hostileProvider.claims(nonce))
        .setProtectedHeader({ alg: 'HS256' })
        .sign(Buffer.from(CLIENT.secret.padEnd(32))),
  ],
  'a key of another provider': ['its signature is wrong', nonce => otherProvider.sign(hostileProvider.claims(nonce))],
  'a key that is not published': [
    'it names no key in the key set of the provider',
    nonce => hostileProvider.sign(hostileProvider.claims(nonce), { kid: 'unknown' }),
  ],
  'a changed payload': [
    'its signature is wrong',
    async nonce => {
      const [header, , signature] = (await hostileProvider.sign(hostileProvider.claims(nonce))).split('.');
      const payload = Buffer.from(JSON.stringify({ ...hostileProvider.claims(nonce), sub: 'admin' })).toString(
        'base64url',
      );
      return `${header}.${payload}.${signature}`;
    },
  ],
  'a critical extension': [
    'it requires an extension that is not supported',
    async nonce => {
      const [, payload, signature] = (await hostileProvider.sign(hostileProvider.claims(nonce))).split('.');
      const header = { alg: 'ES256', kid: 'first', crit: ['extension'], extension: true };
      return `${Buffer.from(JSON.stringify(header)).toString('base64url')}.${payload}.${signature}`;
    },
  ],
  'a key that is not on its curve': [
    'its key in the key set of the provider cannot be used',
    nonce => hostileProvider.sign(hostileProvider.claims(nonce), { kid: 'broken' }),
  ],
  'a key id that two keys have': [
    'several keys in the key set of the provider match it',
    nonce => hostileProvider.sign(hostileProvider.claims(nonce), { kid: 'twin' }),
  ],
  'no token': ['it is not a signed JSON Web Token', async () => 'not a token'],
};

for (const [what, [reason, forge]] of Object.entries(FORGERIES))
  test(`an invalid ID token is refused: ${what}`, async () => {
    const startedSignIn = await beginSignIn();
    hostileProvider.idToken = forge;
    try {
      const redirectTo = await finishSignIn(startedSignIn);
      assert.ok(isRefused(redirectTo), redirectTo.href);
      assert.equal(await readRefusalReason(), `The ID token is not valid: ${reason}.`);
    } finally {
      hostileProvider.idToken = nonce => hostileProvider.sign(hostileProvider.claims(nonce));
    }
  });

test('a sign-in at the provider is refused if it is older than the requested maximum age, or if the ID token has no auth_time', async () => {
  const startedSignIn = await beginSignIn({ maxAge: 60 });
  hostileProvider.idToken = nonce =>
    hostileProvider.sign({ ...hostileProvider.claims(nonce), auth_time: nowSeconds() - 3600 });
  assert.ok(isRefused(await finishSignIn(startedSignIn)));
  hostileProvider.idToken = nonce => hostileProvider.sign(hostileProvider.claims(nonce));
  assert.ok(isRefused(await finishSignIn(await beginSignIn({ maxAge: 60 }))), 'a token without auth_time');
});

test('a response with the issuer of another provider is refused', async () => {
  assert.ok(isRefused(await finishSignIn(await beginSignIn(), { iss: otherProvider.issuer })));
});

test('a state value works once, and an unknown state value is refused', async () => {
  const startedSignIn = await beginSignIn();
  await finishSignIn(startedSignIn);
  const query = new URLSearchParams({ code: 'any', state: parameterOf(startedSignIn, 'state') });
  for (const search of [query.toString(), 'code=any&state=unknown', 'code=any', 'state=a&state=b&code=any']) {
    const callbackResponse = await server.api<ErrorBody>('GET', `/v1/consumer/callback?${search}`, { key: null });
    assert.deepEqual(
      [callbackResponse.status, callbackResponse.body.code, callbackResponse.headers.location],
      [401, 'sign_in_failed', undefined],
    );
  }
});

test('the same e-mail address at two providers belongs to two consumers', async () => {
  const mailSignIn = await lab.signIn('kim@example.com');
  hostileProvider.idToken = nonce =>
    hostileProvider.sign({ ...hostileProvider.claims(nonce), email: 'kim@example.com', email_verified: true });
  const startedSignIn = await beginSignIn();
  const { body } = await lab.exchange(startedSignIn, (await finishSignIn(startedSignIn)).href, 'evil');
  hostileProvider.idToken = nonce => hostileProvider.sign(hostileProvider.claims(nonce));
  assert.notEqual(body.consumer.id, mailSignIn.consumer.id);
});

test('the keys of a provider are fetched again for a token with a new key, but not for each token with an unknown key', async () => {
  const countBefore = hostileProvider.keyRequestCount;
  hostileProvider.idToken = nonce => hostileProvider.sign(hostileProvider.claims(nonce), { kid: 'unknown' });
  for (let tries = 0; tries < 3; tries += 1) assert.ok(isRefused(await finishSignIn(await beginSignIn())));
  assert.ok(hostileProvider.keyRequestCount - countBefore <= 1, String(hostileProvider.keyRequestCount - countBefore));
  hostileProvider.idToken = nonce => hostileProvider.sign(hostileProvider.claims(nonce));
  hostileProvider.rotate();
  await server.advance(31_000);
  hostileProvider.aheadSeconds += 31;
  const startedSignIn = await beginSignIn();
  assert.equal((await lab.exchange(startedSignIn, (await finishSignIn(startedSignIn)).href, 'evil')).status, 200);
});

for (const name of ['authorization_endpoint', 'token_endpoint', 'jwks_uri', 'end_session_endpoint'])
  test(`a discovery document whose ${name} is an internal or invalid address is refused, and the error does not contain the address`, async () => {
    for (const address of [
      'http://169.254.169.254/latest/meta-data',
      'https://169.254.169.254/',
      'https://10.0.0.1/',
      'https://[::ffff:127.0.0.1]/',
      'http://127.0.0.1:1/',
      'file:///etc/passwd',
      'https://user@shop.example/',
      7,
    ]) {
      hostileProvider.document = { [name]: address };
      const refusal = await owner.send<ErrorBody>('PUT', providerPath('inside'), providerBody);
      assert.deepEqual([refusal.status, refusal.body.code], [502, 'upstream_failed'], String(address));
      assert.doesNotMatch(refusal.text, /meta-data|10\.0\.0\.1|passwd/);
    }
    hostileProvider.document = {};
  });

test('an issuer is refused if it is an internal address, or if its discovery document has another issuer or only unsafe algorithms', async () => {
  for (const issuer of [
    'http://169.254.169.254',
    'https://10.0.0.1',
    'http://127.0.0.1:1',
    server.url,
    'file:///etc',
  ]) {
    const refusal = await owner.send<ErrorBody>('PUT', providerPath('inside'), { ...providerBody, issuer });
    assert.deepEqual([refusal.status, refusal.body.code], [502, 'upstream_failed'], issuer);
  }
  hostileProvider.document = { issuer: otherProvider.issuer };
  assert.equal((await owner.send('PUT', providerPath('inside'), providerBody)).status, 502);
  hostileProvider.document = { id_token_signing_alg_values_supported: ['none', 'HS256'] };
  assert.equal((await owner.send('PUT', providerPath('inside'), providerBody)).status, 502);
  hostileProvider.document = {};
  assert.equal((await owner.get(providerPath('inside'))).status, 404);
});

test('the issuer of a provider can be changed only together with the client secret, so that the new issuer does not get the stored secret', async () => {
  const { clientSecret: _, ...rest } = providerBody;
  const writeResponse = await owner.send<ErrorBody>(
    'PUT',
    providerPath('evil'),
    { ...rest, issuer: otherProvider.issuer, authMethod: 'client_secret_basic' },
    { 'if-match': '*' },
  );
  assert.deepEqual([writeResponse.status, writeResponse.body.code], [400, 'invalid_request'], writeResponse.text);
});

const withoutClaim = (claims: JWTPayload, name: string): JWTPayload =>
  Object.fromEntries(Object.entries(claims).filter(([one]) => one !== name));
