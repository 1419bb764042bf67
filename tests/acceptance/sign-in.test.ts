// Signing in with a browser: the set-up link of the first account, passwords, authenticator apps, recovery codes,
// e-mailed codes, passkeys and step-up, and listing and ending human sessions.
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { Secret as Seed, TOTP } from 'otpauth';
import type { ErrorBody } from '../../contract/common.ts';
import type {
  CurrentAccount,
  EmailCodeSent,
  PasskeyChallenge,
  RecoveryCodes,
  SignedInSessions,
  SignInResult,
  TotpSecret,
} from '../../contract/sign-in.ts';
import { Authenticator } from '../harness/authenticator.ts';
import { queryRows } from '../harness/other-person.ts';
import { createSetUpToken, PASSWORD, Person, readMailedCode } from '../harness/person.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const EMAIL = 'ada@example.com';
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const CODE_STEP_MS = 30_000;

const server = await startServer({ clock: 'test' });
let ada: Person;

before(async () => {
  ada = await Person.setUpOwner(server, EMAIL);
});

const read = async (person: Person): Promise<CurrentAccount> => {
  const response = await person.get<CurrentAccount>('/v1/account');
  assert.equal(response.status, 200, response.text);
  return response.body;
};

const codeOf = (result: { readonly body: unknown }): string => (result.body as ErrorBody).code;

/** Passkeys are bound to a host name, so these requests come from a page at localhost. */
const localhostHeaders = { origin: server.url.replace('127.0.0.1', 'localhost') };

test('the person who sets up the first account owns the first application, and can manage the application with only the sign-in cookie', async () => {
  const { name, email, emailVerified, hasPassword, session } = await read(ada);
  assert.deepEqual([name, email, emailVerified, hasPassword], ['Ada', EMAIL, false, true]);
  assert.deepEqual([session?.acr, session?.strongestAcr], ['berth:1', 'berth:1']);
  const listResponse = await ada.get<{ data: Array<{ id: string; role: string }> }>('/v1/applications');
  assert.deepEqual(
    listResponse.body.data.map(({ id, role }) => [id, role]),
    [[server.applicationId, 'owner']],
  );
  const issueKeyResponse = await ada.post(`/v1/applications/${server.applicationId}/agent-keys`, { name: 'by hand' });
  assert.equal(issueKeyResponse.status, 201, issueKeyResponse.text);
});

test('a set-up link works once', async () => {
  const token = await createSetUpToken(server, '--email', EMAIL);
  const person = new Person(server);
  const setUpBody = { token, name: 'Ada', email: EMAIL, password: PASSWORD };
  assert.equal((await person.post('/v1/sign-in/setup', setUpBody)).status, 200);
  const secondResponse = await new Person(server).post('/v1/sign-in/setup', setUpBody);
  assert.deepEqual([secondResponse.status, codeOf(secondResponse)], [401, 'sign_in_failed']);
  // The set-up has ended all earlier human sessions of the account.
  assert.equal((await ada.get('/v1/account')).status, 401);
  ada = person;
});

test('changing the address of an account with a set-up link leaves the address unverified', async () => {
  const { ticket } = (await ada.post<EmailCodeSent>('/v1/account/email/verification')).body;
  const verifyResponse = await ada.post('/v1/account/email/verify', {
    ticket,
    code: await readMailedCode(server, EMAIL),
  });
  assert.equal(verifyResponse.status, 200, verifyResponse.text);
  const unusedTicket = (await new Person(server).post<EmailCodeSent>('/v1/sign-in/email-code', { email: EMAIL })).body
    .ticket;
  const code = await readMailedCode(server, EMAIL);
  const changeEmail = async (email: string, from: string): Promise<CurrentAccount> => {
    const token = await createSetUpToken(server, '--email', from);
    const person = new Person(server);
    assert.equal(
      (await person.post('/v1/sign-in/setup', { token, name: 'Ada', email, password: PASSWORD })).status,
      200,
    );
    ada = person;
    return read(person);
  };
  const changedAccount = await changeEmail('other@example.com', EMAIL);
  assert.deepEqual([changedAccount.email, changedAccount.emailVerified], ['other@example.com', false]);
  // A code sent to the previous address neither signs in nor verifies the new address.
  const lateResponse = await new Person(server).post('/v1/sign-in/email-code/verify', { ticket: unusedTicket, code });
  assert.equal(codeOf(lateResponse), 'sign_in_failed');
  assert.equal((await read(ada)).emailVerified, false);
  const restoredAccount = await changeEmail(EMAIL, 'other@example.com');
  assert.deepEqual([restoredAccount.email, restoredAccount.emailVerified], [EMAIL, false]);
});

test('a set-up link that was refused because another account took the address can be used again with another address', async () => {
  await queryRows(
    server,
    "insert into accounts (id, name, email, created_at) values (gen_random_uuid(), 'Bob', 'bob@example.com', now())",
  );
  const setUp = async (token: string, email: string) => {
    const person = new Person(server);
    const body = { token, name: 'Ada', email, password: PASSWORD };
    const { status, text } = await person.post('/v1/sign-in/setup', body);
    return { person, status, text };
  };
  const ownEmails = [EMAIL, 'bob@example.com'];
  const tokens: string[] = [];
  for (const email of ownEmails) tokens.push(await createSetUpToken(server, '--email', email));
  const responses = await Promise.all(tokens.map(token => setUp(token, 'shared@example.com')));
  assert.deepEqual(responses.map(({ status }) => status).sort(), [200, 409]);
  const loserIndex = responses.findIndex(({ status }) => status === 409);
  assert.match(responses[loserIndex]?.text ?? '', /email_taken/);
  const secondSetUp = await setUp(tokens[loserIndex] ?? '', ownEmails[loserIndex] ?? '');
  assert.equal(secondSetUp.status, 200, secondSetUp.text);
  const winnersToken = await createSetUpToken(server, '--email', 'shared@example.com');
  const thirdSetUp = await setUp(winnersToken, ownEmails[1 - loserIndex] ?? '');
  assert.equal(thirdSetUp.status, 200, thirdSetUp.text);
  ada = loserIndex === 0 ? secondSetUp.person : thirdSetUp.person;
  assert.equal((await read(ada)).email, EMAIL);
});

test('signing in with a password works, and a wrong password does not reveal whether the account exists', async () => {
  const person = new Person(server);
  const wrongResponse = await person.signIn(EMAIL, 'not the password');
  const unknownResponse = await person.signIn('nobody@example.com');
  assert.deepEqual([wrongResponse.status, codeOf(wrongResponse)], [401, 'sign_in_failed']);
  const { requestId: _one, ...first } = wrongResponse.body as unknown as ErrorBody;
  const { requestId: _two, ...other } = unknownResponse.body as unknown as ErrorBody;
  assert.deepEqual(first, other);
  assert.equal((await person.signIn('  ADA@Example.com ')).body.status, 'signed_in');
  assert.equal((await read(person)).email, EMAIL);
});

test('an e-mailed code works for one sign-in and verifies the address', async () => {
  const person = new Person(server);
  const { ticket } = (await person.post<EmailCodeSent>('/v1/sign-in/email-code', { email: EMAIL })).body;
  const code = await readMailedCode(server, EMAIL);
  const wrongResponse = await person.post('/v1/sign-in/email-code/verify', {
    ticket,
    code: code === '000000' ? '111111' : '000000',
  });
  assert.equal(codeOf(wrongResponse), 'sign_in_failed');
  const signInResponse = await person.post<SignInResult>('/v1/sign-in/email-code/verify', { ticket, code });
  assert.equal(signInResponse.body.status, 'signed_in', signInResponse.text);
  assert.equal((await read(person)).emailVerified, true);
  const secondResponse = await person.post('/v1/sign-in/email-code/verify', { ticket, code });
  assert.equal(codeOf(secondResponse), 'sign_in_failed');
});

test('no e-mail is sent to an unknown address, and a code for it is refused', async () => {
  const person = new Person(server);
  const { status, body } = await person.post<EmailCodeSent>('/v1/sign-in/email-code', { email: 'nobody@example.com' });
  assert.equal(status, 202);
  const { stdout } = await server.operate('outbox', '--json');
  assert.ok(!stdout.includes('nobody@example.com'));
  const verifyResponse = await person.post('/v1/sign-in/email-code/verify', { ticket: body.ticket, code: '000000' });
  assert.equal(codeOf(verifyResponse), 'sign_in_failed');
});

test('with an authenticator app, each sign-in requires a new code or a recovery code', async () => {
  await ada.post('/v1/account/step-up', { method: 'password', password: PASSWORD });
  const { secret, uri } = (await ada.post<TotpSecret>('/v1/account/totp')).body;
  assert.match(uri, /^otpauth:\/\/totp\/Berth:/);
  const app = new TOTP({ secret: Seed.fromBase32(secret) });
  const currentCode = (): string => app.generate({ timestamp: server.now().getTime() });
  const firstCode = currentCode();
  const confirmResponse = await ada.post<RecoveryCodes>('/v1/account/totp/confirm', { code: firstCode });
  assert.equal(confirmResponse.body.recoveryCodes?.length, 10, confirmResponse.text);
  assert.equal((await read(ada)).session?.strongestAcr, 'berth:2');

  const person = new Person(server);
  const passwordResponse = await person.signIn(EMAIL);
  assert.deepEqual([passwordResponse.body.status, person.cookie], ['second_factor_required', undefined]);
  const { ticket } = passwordResponse.body;
  const reuseResponse = await person.post('/v1/sign-in/second-factor', { ticket, method: 'totp', code: firstCode });
  assert.equal(codeOf(reuseResponse), 'sign_in_failed');
  await server.advance(CODE_STEP_MS);
  const code = currentCode();
  const secondFactorResponse = await person.post<SignInResult>('/v1/sign-in/second-factor', {
    ticket,
    method: 'totp',
    code,
  });
  assert.equal(secondFactorResponse.body.status, 'signed_in', secondFactorResponse.text);
  assert.equal((await read(person)).session?.acr, 'berth:2');

  const [recoveryCode = ''] = confirmResponse.body.recoveryCodes;
  for (const expected of ['signed_in', 'sign_in_failed']) {
    const nextTicket = (await person.signIn(EMAIL)).body.ticket;
    const response = await person.post<SignInResult>('/v1/sign-in/second-factor', {
      ...{ ticket: nextTicket, method: 'recovery_code', code: recoveryCode.toUpperCase() },
    });
    assert.equal(response.body.status ?? codeOf(response), expected);
  }
  assert.equal((await read(person)).recoveryCodesLeft, 9);
  assert.equal((await person.send('DELETE', '/v1/account/totp')).status, 204);
  ada = person;
});

test('a passkey can be added after a step-up, is enough to sign in, and is then required for every step-up', async () => {
  const authenticator = new Authenticator(localhostHeaders.origin);
  await ada.post('/v1/account/step-up', { method: 'password', password: PASSWORD });
  const postFromLocalhost = (path: string, body: unknown = {}) => ada.send('POST', path, body, localhostHeaders);
  const { ticket, publicKey } = (await postFromLocalhost('/v1/account/passkeys/options')).body as PasskeyChallenge;
  const addResponse = await postFromLocalhost('/v1/account/passkeys', {
    ticket,
    name: 'Laptop',
    response: authenticator.create(publicKey),
  });
  assert.equal(addResponse.status, 201, addResponse.text);

  const person = new Person(server);
  const challenge = (await person.send('POST', '/v1/sign-in/passkey/options', {}, localhostHeaders))
    .body as PasskeyChallenge;
  const response = authenticator.get(challenge.publicKey);
  const signInBody = { ticket: challenge.ticket, response };
  const signInResponse = await person.send<SignInResult>('POST', '/v1/sign-in/passkey', signInBody, localhostHeaders);
  assert.equal(signInResponse.body.status, 'signed_in', signInResponse.text);
  assert.equal((await read(person)).session?.acr, 'phr');
  const replayResponse = await person.send('POST', '/v1/sign-in/passkey', signInBody, localhostHeaders);
  assert.equal(codeOf(replayResponse), 'sign_in_failed');

  await person.post('/v1/account/step-up', { method: 'password', password: PASSWORD });
  const refusal = await person.send('PUT', '/v1/account/password', { password: `${PASSWORD}!` });
  assert.deepEqual([refusal.status, codeOf(refusal)], [401, 'insufficient_user_authentication']);
  assert.match(refusal.headers['www-authenticate'] ?? '', /acr_values="phr", max_age=300/);
  const stepUpChallenge = (await person.send('POST', '/v1/account/step-up/options', {}, localhostHeaders))
    .body as PasskeyChallenge;
  const proof = {
    method: 'passkey',
    ticket: stepUpChallenge.ticket,
    response: authenticator.get(stepUpChallenge.publicKey),
  };
  assert.equal((await person.send('POST', '/v1/account/step-up', proof, localhostHeaders)).status, 200);
  assert.equal((await person.send('PUT', '/v1/account/password', { password: PASSWORD })).status, 200);
  const [passkey] = (await read(person)).passkeys;
  assert.equal(passkey?.name, 'Laptop');
  assert.equal((await person.send('DELETE', `/v1/account/passkeys/${passkey?.id}`)).status, 204);
  ada = person;
});

test('a step-up expires after five minutes', async () => {
  await ada.post('/v1/account/step-up', { method: 'password', password: PASSWORD });
  assert.equal((await ada.post('/v1/account/totp')).status, 200);
  await server.advance(5 * MINUTE_MS + 1000);
  const refusal = await ada.post('/v1/account/totp');
  assert.deepEqual([refusal.status, codeOf(refusal)], [401, 'insufficient_user_authentication']);
});

test('a person can list their sign-in sessions, end one of them, and end all other sessions', async () => {
  const [phone, laptop] = [new Person(server), new Person(server)];
  await phone.signIn(EMAIL);
  await laptop.signIn(EMAIL);
  const { data } = (await phone.get<SignedInSessions>('/v1/account/sessions')).body;
  assert.equal(data.filter(({ isCurrent }) => isCurrent).length, 1);
  const laptopSessionId = (await read(laptop)).session?.id;
  assert.equal((await phone.send('DELETE', `/v1/account/sessions/${laptopSessionId}`)).status, 204);
  assert.equal((await laptop.get('/v1/account')).status, 401);
  assert.equal((await phone.send('DELETE', '/v1/account/sessions')).status, 204);
  assert.equal((await ada.get('/v1/account')).status, 401);
  const cookie = phone.cookie;
  assert.equal((await phone.post('/v1/account/sign-out')).status, 204);
  phone.cookie = cookie;
  assert.equal((await phone.get('/v1/account')).status, 401);
  ada = new Person(server);
  await ada.signIn(EMAIL);
});

test('a sign-in session ends after twelve hours without use, and after seven days even if it is used', async () => {
  for (let uses = 1; uses <= 15; uses += 1) {
    await server.advance(11 * HOUR_MS);
    assert.equal((await ada.get('/v1/account')).status, 200, `after ${uses} times 11 hours`);
    await waitUntilUseIsRecorded();
  }
  await server.advance(4 * HOUR_MS); // 169 hours after the sign-in, and 4 hours after the last use.
  assert.equal((await ada.get('/v1/account')).status, 401, 'after seven days');
  await ada.signIn(EMAIL);
  await server.advance(12 * HOUR_MS);
  assert.equal((await ada.get('/v1/account')).status, 401, 'after twelve hours without use');
});

/** Waits until the use of the human session is recorded, which happens after the response was sent. */
const waitUntilUseIsRecorded = (): Promise<unknown> =>
  eventually(
    'the use of the human session to be recorded',
    async () => (await ada.get<SignedInSessions>('/v1/account/sessions')).body.data.find(one => one.isCurrent),
    session => server.now().getTime() - Date.parse(session?.lastUsedAt ?? '') < MINUTE_MS,
  );
