// Attacks on sign-in: from other sites, by guessing, and with stolen and forged proofs. Each must fail.
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { Secret as Seed, TOTP } from 'otpauth';
import type { ErrorBody } from '../../contract/common.ts';
import type { PasskeyChallenge, TotpSecret } from '../../contract/sign-in.ts';
import { Authenticator, type Forgery } from '../harness/authenticator.ts';
import { createOwnerToken } from '../harness/limits.ts';
import { invite, register } from '../harness/members.ts';
import { PASSWORD, Person, readMailedCode } from '../harness/person.ts';
import { startServer } from '../harness/server.ts';

const EMAIL = 'ada@example.com';
const EVIL = 'https://evil.example';
const GUESS = { email: EMAIL, password: 'a guess' };
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

const server = await startServer({ clock: 'test', env: { BERTH_TRUSTED_PROXIES: '127.0.0.0/8' } });
let ada: Person;

before(async () => {
  ada = await Person.setUpOwner(server, EMAIL);
});

const codeOf = (result: { readonly body: unknown }): string => (result.body as ErrorBody).code;
const localhostHeaders = { origin: server.url.replace('127.0.0.1', 'localhost') };

for (const [what, headers] of [
  ['another origin', { origin: EVIL }],
  ['the origin null', { origin: 'null' }],
  ['another port of this machine', { origin: 'http://127.0.0.1:1' }],
  ['another site according to Sec-Fetch-Site', { 'sec-fetch-site': 'cross-site' }],
  ['a form', { 'content-type': 'text/plain' }],
] as const)
  test(`a request from ${what} can neither use the cookie nor sign in`, async () => {
    const path = `/v1/applications/${server.applicationId}/agent-keys`;
    const writeRefusal = await ada.send('POST', path, '{"name":"evil"}', {
      'content-type': 'application/json',
      ...headers,
    });
    assert.ok([403, 415].includes(writeRefusal.status), writeRefusal.text);
    const login = { email: EMAIL, password: PASSWORD };
    const signInResponse = await new Person(server).send('POST', '/v1/sign-in/password', JSON.stringify(login), {
      ...{ 'content-type': 'application/json', ...headers },
    });
    assert.ok([403, 415].includes(signInResponse.status), signInResponse.text);
    const listResponse = await ada.get<{ data: Array<{ name: string }> }>(path);
    assert.ok(!listResponse.body.data.some(({ name }) => name === 'evil'));
  });

test('a write request with the cookie but without an Origin header is refused', async () => {
  const refusal = await server.api('POST', '/v1/account/sign-out', {
    key: null,
    headers: { cookie: ada.cookie ?? '' },
  });
  assert.deepEqual([refusal.status, codeOf(refusal)], [403, 'cross_site_request']);
});

test('the cookie is refused as a bearer credential, and tokens are refused by operations that require a signed-in person', async () => {
  const secret = ada.cookie?.split('=')[1] ?? '';
  const bearerResponse = await server.api('GET', '/v1/account', { key: secret });
  assert.deepEqual([bearerResponse.status, codeOf(bearerResponse)], [401, 'invalid_credentials']);
  const token = await createOwnerToken(server);
  for (const [method, path] of [
    ['GET', '/v1/account/sessions'],
    ['POST', '/v1/account/step-up'],
    ['PUT', '/v1/account/password'],
    ['POST', '/v1/account/passkeys/options'],
  ] as const) {
    const response = await server.api(method, path, { key: token, body: method === 'GET' ? undefined : {} });
    assert.deepEqual([response.status, codeOf(response)], [401, 'invalid_credentials'], `${method} ${path}`);
  }
  const sessionsResponse = await ada.get('/v1/browsers/sessions');
  assert.equal(sessionsResponse.status, 401);
});

test('a cookie that was set before the sign-in is refused', async () => {
  const victim = new Person(server);
  victim.cookie = `berth=${'bhs_'.padEnd(53, 'a')}`;
  const plantedCookie = victim.cookie;
  await victim.signIn(EMAIL);
  assert.notEqual(victim.cookie, plantedCookie);
  victim.cookie = plantedCookie;
  assert.equal((await victim.get('/v1/account')).status, 401);
});

test('a step-up replaces the cookie, and the old cookie is refused at once', async () => {
  const person = new Person(server);
  await person.signIn(EMAIL);
  const oldCookie = person.cookie;
  assert.equal((await person.post('/v1/account/step-up', { method: 'password', password: PASSWORD })).status, 200);
  person.cookie = oldCookie;
  assert.equal((await person.get('/v1/account')).status, 401);
});

test('after ten wrong passwords from one client address, even the right password is refused from this address for ten minutes', async () => {
  const person = new Person(server);
  for (let count = 0; count < 10; count += 1) assert.equal((await person.signIn(EMAIL, `wrong ${count}`)).status, 401);
  const refusal = await person.signIn(EMAIL);
  assert.deepEqual([refusal.status, codeOf(refusal)], [429, 'rate_limited']);
  assert.ok(Number(refusal.headers['retry-after']) > 0);
  await server.advance(10 * MINUTE_MS);
  assert.equal((await person.signIn(EMAIL)).status, 200);
});

test('after fifty wrong passwords for several accounts from one client address, even the right password is refused from this address', async () => {
  const attempt = (email: string, password: string, address: string) =>
    new Person(server).send('POST', '/v1/sign-in/password', { email, password }, { 'x-forwarded-for': address });
  for (let account = 0; account < 5; account += 1)
    for (let count = 0; count < 10; count += 1) {
      const refusal = await attempt(`nobody-${account}@example.com`, 'a guess', '198.51.100.50');
      assert.deepEqual([refusal.status, codeOf(refusal)], [401, 'sign_in_failed']);
    }
  const refusal = await attempt(EMAIL, PASSWORD, '198.51.100.50');
  assert.deepEqual([refusal.status, codeOf(refusal)], [429, 'rate_limited']);
  assert.equal((await attempt(EMAIL, PASSWORD, '198.51.100.51')).status, 200, 'from another address');
  await server.advance(10 * MINUTE_MS);
  assert.equal((await attempt(EMAIL, PASSWORD, '198.51.100.50')).status, 200);
});

test('after ten wrong passwords in step-ups with a stolen cookie, even the right password is refused for ten minutes', async () => {
  await ada.signIn(EMAIL);
  const thief = new Person(server);
  thief.cookie = ada.cookie;
  const stepUpAsThief = (password: string) => thief.post('/v1/account/step-up', { method: 'password', password });
  for (let count = 0; count < 10; count += 1)
    assert.equal(codeOf(await stepUpAsThief(`wrong ${count}`)), 'sign_in_failed');
  const refusal = await stepUpAsThief(PASSWORD);
  assert.deepEqual([refusal.status, codeOf(refusal)], [429, 'rate_limited']);
  await server.advance(10 * MINUTE_MS);
  assert.equal((await stepUpAsThief(PASSWORD)).status, 200);
});

test('five wrong authenticator codes end the sign-in that required the code', async () => {
  await ada.signIn(EMAIL);
  const email = 'bob@example.com';
  const bob = await register(server, await invite(server, ada, email, 'viewer'), email);
  const { secret } = (await bob.post<TotpSecret>('/v1/account/totp')).body;
  const app = new TOTP({ secret: Seed.fromBase32(secret) });
  const currentCode = (): string => app.generate({ timestamp: server.now().getTime() });
  assert.equal((await bob.post('/v1/account/totp/confirm', { code: currentCode() })).status, 200);
  await server.advance(MINUTE_MS);
  const beginSignIn = async () => {
    const { ticket } = (await new Person(server).signIn(email)).body as unknown as { ticket: string };
    return (code: string) => new Person(server).post('/v1/sign-in/second-factor', { ticket, method: 'totp', code });
  };
  const sendCode = await beginSignIn();
  const wrongCode = currentCode() === '000000' ? '111111' : '000000';
  for (let count = 0; count < 5; count += 1) assert.equal(codeOf(await sendCode(wrongCode)), 'sign_in_failed');
  assert.equal(codeOf(await sendCode(currentCode())), 'sign_in_failed');
  const sendSecondCode = await beginSignIn();
  assert.equal((await sendSecondCode(currentCode())).status, 200, 'the same code, in a new sign-in');
});

test('five wrong attempts invalidate a code sent by e-mail', async () => {
  await server.advance(HOUR_MS);
  const person = new Person(server);
  const { ticket } = (await person.post('/v1/sign-in/email-code', { email: EMAIL })).body as { ticket: string };
  const code = await readMailedCode(server, EMAIL);
  const wrongCode = code === '000000' ? '111111' : '000000';
  for (let count = 0; count < 5; count += 1)
    assert.equal(
      codeOf(await person.post('/v1/sign-in/email-code/verify', { ticket, code: wrongCode })),
      'sign_in_failed',
    );
  assert.equal(codeOf(await person.post('/v1/sign-in/email-code/verify', { ticket, code })), 'sign_in_failed');
});

test('at most five codes are e-mailed to an address in an hour', async () => {
  await server.advance(HOUR_MS);
  const statuses: number[] = [];
  for (let count = 0; count < 6; count += 1)
    statuses.push((await new Person(server).post('/v1/sign-in/email-code', { email: EMAIL })).status);
  assert.deepEqual(statuses, [202, 202, 202, 202, 202, 429]);
});

test('only one of fifty concurrent sign-ins with the same e-mailed code succeeds', async () => {
  await server.advance(HOUR_MS);
  const { ticket } = (await new Person(server).post('/v1/sign-in/email-code', { email: EMAIL })).body as {
    ticket: string;
  };
  const code = await readMailedCode(server, EMAIL);
  const people = Array.from({ length: 50 }, () => new Person(server));
  const responses = await Promise.all(
    people.map(person => person.post('/v1/sign-in/email-code/verify', { ticket, code })),
  );
  assert.equal(responses.filter(({ status }) => status === 200).length, 1);
  await server.advance(10 * MINUTE_MS);
});

test('only ten of many concurrent guesses of a code or a password are admitted, and the others are refused', async () => {
  await server.advance(HOUR_MS);
  const { ticket } = (await new Person(server).post('/v1/sign-in/email-code', { email: EMAIL })).body as {
    ticket: string;
  };
  const code = await readMailedCode(server, EMAIL);
  const guesses = Array.from({ length: 100 }, (_, guess) => String(guess).padStart(6, '0')).filter(one => one !== code);
  const responses = await Promise.all(
    guesses.map(guess => new Person(server).post('/v1/sign-in/email-code/verify', { ticket, code: guess })),
  );
  assert.equal(responses.filter(({ status }) => status === 401).length, 10);
  assert.equal(responses.filter(({ status }) => status === 429).length, guesses.length - 10);
  await server.advance(10 * MINUTE_MS);
  assert.equal(
    codeOf(await new Person(server).post('/v1/sign-in/email-code/verify', { ticket, code })),
    'sign_in_failed',
  );
  const pendingSignIns = Array.from({ length: 30 }, (_, guess) => new Person(server).signIn(EMAIL, `guess ${guess}`));
  // The limit admits ten of the thirty attempts, and refuses the others with 429. On a busy machine, some of the ten
  // get 503, because too many passwords are waiting to be checked.
  assert.equal((await Promise.all(pendingSignIns)).filter(({ status }) => status === 429).length, 20);
  await server.advance(10 * MINUTE_MS);
});

test('a password attempt that was refused because the queue was full does not count towards the limit, but checked attempts do', async () => {
  const guess = (address: string) =>
    new Person(server).send('POST', '/v1/sign-in/password', GUESS, { 'x-forwarded-for': address });
  // Two passwords are checked at a time, and up to 32 wait.
  const otherGuesses = Array.from({ length: 48 }, (_, at) => guess(`192.0.2.${at + 1}`));
  const guessResponses = await Promise.all(Array.from({ length: 10 }, () => guess('198.51.100.1')));
  await Promise.all(otherGuesses);
  const busyCount = guessResponses.filter(({ status }) => status === 503).length;
  assert.ok(busyCount > 0, 'the queue was full');
  assert.equal(guessResponses.filter(({ status }) => status === 401).length, 10 - busyCount);
  for (let count = 0; count < busyCount; count += 1) assert.equal((await guess('198.51.100.1')).status, 401);
  assert.equal((await guess('198.51.100.1')).status, 429);
  await server.advance(10 * MINUTE_MS);
});

test('nobody can register without an invitation', async () => {
  const registration = { name: 'Eve', email: 'eve@evil.example', password: PASSWORD };
  for (const invitation of [undefined, 'biv_guess']) {
    const response = await new Person(server).post('/v1/sign-in/register', {
      ...registration,
      ...(invitation ? { invitation } : {}),
    });
    assert.deepEqual([response.status, codeOf(response)], [403, 'permission_denied']);
  }
});

test('a passkey that is not registered for the account is refused in a step-up', async () => {
  const strangeAuthenticator = new Authenticator(localhostHeaders.origin);
  await ada.signIn(EMAIL);
  const { ticket, publicKey } = (await ada.send('POST', '/v1/account/step-up/options', {}, localhostHeaders))
    .body as PasskeyChallenge;
  const proof = { method: 'passkey', ticket, response: strangeAuthenticator.get(publicKey) };
  assert.equal(codeOf(await ada.send('POST', '/v1/account/step-up', proof, localhostHeaders)), 'sign_in_failed');
});

test('forged passkey responses can neither register a passkey nor sign in', async () => {
  const authenticator = new Authenticator(localhostHeaders.origin);
  await ada.signIn(EMAIL);
  await ada.post('/v1/account/step-up', { method: 'password', password: PASSWORD });
  const register = async (forgery: Forgery): Promise<number> => {
    const { ticket, publicKey } = (await ada.send('POST', '/v1/account/passkeys/options', {}, localhostHeaders))
      .body as PasskeyChallenge;
    const response = authenticator.create(publicKey, forgery);
    return (await ada.send('POST', '/v1/account/passkeys', { ticket, name: 'key', response }, localhostHeaders)).status;
  };
  const forgeries: readonly Forgery[] = [
    { origin: EVIL },
    { rpId: 'evil.example' },
    { challenge: 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA' },
    { isVerified: false },
    { type: 'payment.get' },
  ];
  for (const forgery of forgeries) assert.equal(await register(forgery), 401, JSON.stringify(forgery));
  assert.equal(await register({}), 201);

  await server.advance(10 * MINUTE_MS);
  const person = new Person(server);
  const signIn = async (change: (response: object) => unknown, forgery: Forgery = {}): Promise<number> => {
    const { ticket, publicKey } = (await person.send('POST', '/v1/sign-in/passkey/options', {}, localhostHeaders))
      .body as PasskeyChallenge;
    const response = change(authenticator.get(publicKey, forgery));
    return (await person.send('POST', '/v1/sign-in/passkey', { ticket, response }, localhostHeaders)).status;
  };
  for (const forgery of forgeries)
    assert.equal(await signIn(response => response, forgery), 401, JSON.stringify(forgery));
  await server.advance(10 * MINUTE_MS);
  const otherChanges: ReadonlyArray<(response: object) => unknown> = [
    () => ({}),
    () => ({ id: 1, type: 'public-key', response: {} }),
    response => ({ ...response, response: { clientDataJSON: {}, authenticatorData: [], signature: null } }),
    response => ({ ...response, id: 'AAAA' }),
    response => ({ ...response, response: { ...Object(response).response, signature: 'AAAA' } }),
    response => ({ ...response, response: { ...Object(response).response, authenticatorData: 'AAAA' } }),
  ];
  for (const change of otherChanges) assert.equal(await signIn(change), 401, change.toString());
  assert.equal(await signIn(response => response), 200);
});
