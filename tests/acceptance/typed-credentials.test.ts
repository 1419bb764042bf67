// Credentials that Berth types into pages and frames, in operations of an application and in an agent's own steps:
// which credentials a call may use, how a rotation affects running calls, and what is refused before a browser starts.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TOTP } from 'otpauth';
import type { AgentOperation } from '../../contract/invocations.ts';
import type { StoredCredential } from '../../contract/stored-credentials.ts';
import { Owner } from '../harness/configured.ts';
import { liftLimits } from '../harness/limits.ts';
import { agentPath, invoke, issueAgentKey } from '../harness/operations.ts';
import { openPages } from '../harness/pages.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const USERNAME = 'mara.lind@bank.example';
const PASSWORD = 'k9!zäLuft "quoted" &more';
const SEED = 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP';

/** The values that the pages received. A page reports its values only to its own server. */
const receivedValues: Array<Readonly<Record<string, string>>> = [];
const FORM = `<!doctype html><title>Bank</title><form id="form"><input id="user" name="user"><input id="code" name="code" inputmode="numeric">
  <input id="password" name="password" type="password"><textarea id="note" name="note"></textarea><input id="fixed" readonly><button>Sign in</button></form>
  <p id="heard"></p><p id="state"></p><script>
  const heard = new Set();
  for (const type of ['focus', 'input', 'change']) form.addEventListener(type, event => { heard.add(event.target.id + ' ' + type); document.querySelector('#heard').textContent = [...heard].join(', ') }, true);
  form.onsubmit = event => { event.preventDefault(); fetch('/take', { method: 'POST', body: JSON.stringify(Object.fromEntries(new FormData(form))) }).then(() => { state.textContent = 'done' }) };
  </script>`;
const pages = await openPages({
  '/login': FORM,
  '/shadow': `<!doctype html><title>Bank</title><div id="host"></div><p id="state"></p><script>
    const root = host.attachShadow({ mode: 'open' });
    root.innerHTML = '<input id="inner" type="password">';
    root.querySelector('input').oninput = ({ target }) => fetch('/take', { method: 'POST', body: JSON.stringify({ password: target.value }) }).then(() => { state.textContent = 'done' });
    </script>`,
  '/framed': (_, response) => {
    response.setHeader('content-type', 'text/html; charset=utf-8');
    response.end(`<!doctype html><title>Bank</title><iframe id="login" src="${pages.b}/login"></iframe>`);
  },
  '/take': (request, response) => {
    let body = '';
    request.on('data', part => {
      body += part;
    });
    request.on('end', () => {
      receivedValues.push(JSON.parse(body));
      response.end('ok');
    });
  },
});
const server = await startServer({ pages, env: { BERTH_SLOTS: '3' } });
await liftLimits(server);
const owner = await Owner.open(server);
const login = { type: 'login', value: { username: USERNAME, password: PASSWORD, totpSeed: SEED }, origins: [pages.a] };
const { key } = await issueAgentKey(server, {
  grants: [
    { operationId: 'bank.enter' },
    { operationId: 'bank.frame' },
    { operationId: 'browser.steps', credentials: ['bank', 'other'] },
  ],
});
let callCount = 0;
const call = (id: string, input: object, as = key) => {
  callCount += 1;
  return invoke(server, as, id, input, { headers: { 'idempotency-key': `call ${callCount}` } });
};
const runSteps = (all: readonly object[], more: object = {}, as = key) =>
  call('browser.steps', { url: `${pages.a}/login`, steps: all, ...more }, as);

const operation = (binding: object) => ({
  ...{ title: 'Sign in', description: 'Signs in at the bank.', kind: 'browser', effect: 'write' },
  inputSchema: { type: 'object', properties: {}, additionalProperties: false },
  binding,
});
const SIGN_IN = [
  { do: 'fill', selector: '#user', credential: 'bank', field: 'username' },
  { do: 'fill', selector: '#password', credential: 'bank', field: 'password' },
  { do: 'fill', selector: '#code', totp: 'bank' },
  { do: 'click', selector: 'button' },
  { do: 'waitFor', selector: '#state:has-text("done")' },
];

test('an operation types a user name, password and one-time code into a page of an allowed origin, and the use of the credential is recorded', async () => {
  const { status, text } = await owner.writeCredential('bank', login);
  assert.equal(status, 201, text);
  await owner.publish(
    'bank.enter',
    operation({
      url: `${pages.a}/login`,
      steps: [...SIGN_IN, { do: 'extract', fields: { heard: { selector: '#heard' } } }],
    }),
  );
  const { body, text: said } = await call('bank.enter', {});
  assert.equal(body.status, 'succeeded', said);
  const { user, password, code } = receivedValues.at(-1) ?? {};
  assert.deepEqual([user, password], [USERNAME, PASSWORD]);
  const totp = new TOTP({ secret: SEED });
  assert.notEqual(totp.validate({ token: code ?? '', window: 4 }), null, code);
  const heard = String(Object(body.output).fields.heard);
  for (const event of ['user input', 'password input', 'password change', 'code input'])
    assert.match(heard, new RegExp(event));
  assert.ok(!said.includes(PASSWORD) && !said.includes(USERNAME), said);
  // The use of the credential is recorded while the call is still running.
  const readResponse = await eventually(
    'the use to be counted',
    () => owner.send<StoredCredential>('GET', 'credentials/bank'),
    ({ body: { lastUsedAt } }) => lastUsedAt !== undefined,
  );
  assert.deepEqual(readResponse.body.usedBy, ['bank.enter']);
});

test('an agent can use its own steps to type a credential that its grant allows, including into a shadow root', async () => {
  const { body, text } = await runSteps([
    ...SIGN_IN,
    { do: 'fill', selector: '#note', credential: 'bank', field: 'password' },
  ]);
  assert.equal(body.status, 'succeeded', text);
  assert.equal(receivedValues.at(-1)?.password, PASSWORD);
  const shadowSteps = [
    { do: 'fill', selector: '#inner', credential: 'bank', field: 'password' },
    { do: 'waitFor', selector: '#state:has-text("done")' },
  ];
  const shadowStepsResponse = await runSteps(shadowSteps, { url: `${pages.a}/shadow` });
  assert.equal(shadowStepsResponse.body.status, 'succeeded', shadowStepsResponse.text);
  assert.equal(receivedValues.at(-1)?.password, PASSWORD);
});

test('a credential is typed into a frame of another origin if the credential allows both origins', async () => {
  const { status, text } = await owner.writeCredential('both', { ...login, origins: [pages.a, pages.b] });
  assert.equal(status, 201, text);
  const framePrefix = '#login >> internal:control=enter-frame >> ';
  const frameSteps = (credential: string) => [
    { do: 'fill', selector: `${framePrefix}#password`, credential, field: 'password' },
    { do: 'click', selector: `${framePrefix}button` },
    { do: 'waitFor', selector: `${framePrefix}#state:has-text("done")` },
  ];
  await owner.publish('bank.frame', operation({ url: `${pages.a}/framed`, steps: frameSteps('both') }));
  const { body, text: said } = await call('bank.frame', {});
  assert.equal(body.status, 'succeeded', said);
  assert.equal(receivedValues.at(-1)?.password, PASSWORD);
});

test('a fill step for a field that does not accept text fails, and the error states the reason', async () => {
  const cases = [
    ['#fixed', /cannot be changed by a user/],
    ['button', /not a text field/],
  ] as const;
  for (const [selector, why] of cases) {
    const { body, text } = await runSteps([{ do: 'fill', selector, credential: 'bank', field: 'password' }]);
    assert.deepEqual([body.status, body.error?.code], ['failed', 'not_possible'], text);
    assert.match(body.error?.message ?? '', why);
  }
});

test('a fill step with no value, several values or an incomplete credential is refused, and so is a credential in a click step', async () => {
  const selector = '#password';
  const cases = [
    [{ do: 'fill', selector }, 'input.steps.0.value'],
    [{ do: 'fill', selector, value: 'x', credential: 'bank', field: 'password' }, 'input.steps.0'],
    [{ do: 'fill', selector, totp: 'bank', credential: 'bank', field: 'password' }, 'input.steps.0'],
    [{ do: 'fill', selector, credential: 'bank' }, 'input.steps.0.field'],
    [{ do: 'fill', selector, field: 'password' }, 'input.steps.0.credential'],
    [{ do: 'click', selector, totp: 'bank' }, 'input.steps.0.totp'],
  ] as const;
  for (const [step, path] of cases) {
    const { status, body, text } = await runSteps([step]);
    assert.deepEqual([status, body.code], [400, 'invalid_request'], text);
    assert.equal(Object(body).details.issues[0].path, path, text);
  }
});

test('a call with a credential that is not in the grant or does not exist is refused, and no page is opened', async () => {
  const hitsBefore = pages.hits('/login');
  const plainKey = await issueAgentKey(server, { grants: [{ operationId: 'browser.steps' }] });
  const refusal = await runSteps(SIGN_IN, {}, plainKey.key);
  assert.deepEqual([refusal.status, refusal.body.code], [403, 'input_not_granted'], refusal.text);
  const unnamedCredentialRefusal = await runSteps([
    { do: 'fill', selector: '#password', credential: 'both', field: 'password' },
  ]);
  assert.deepEqual(
    [unnamedCredentialRefusal.status, unnamedCredentialRefusal.body.code],
    [403, 'input_not_granted'],
    unnamedCredentialRefusal.text,
  );
  const missingCredentialRefusal = await runSteps([
    { do: 'fill', selector: '#password', credential: 'other', field: 'password' },
  ]);
  assert.deepEqual(
    [missingCredentialRefusal.status, missingCredentialRefusal.body.code],
    [424, 'credential_missing'],
    missingCredentialRefusal.text,
  );
  assert.equal(pages.hits('/login'), hitsBefore);
  const { body } = await server.api<AgentOperation>('GET', agentPath(server, 'operations/browser.steps'), { key });
  assert.deepEqual(body.grant.credentials, ['bank', 'other']);
  const grants = [{ operationId: 'bank.enter', credentials: ['bank'] }];
  const grantResponse = await owner.send('POST', 'agent-keys', {
    body: { name: 'x', scopes: ['operations:invoke'], grants },
  });
  assert.deepEqual([grantResponse.status, grantResponse.body.code], [400, 'invalid_request'], grantResponse.text);
});

test('an operation whose credential does not exist or is not a login is refused, and so is a call whose credential lacks a TOTP secret or was deleted', async () => {
  const { status, text } = await owner.writeCredential('shop-api', {
    type: 'api_key',
    value: { key: 'key-of-the-shop' },
    hosts: ['api.shop.example'],
  });
  assert.equal(status, 201, text);
  for (const [credential, why] of [
    ['shop-api', /not a login/],
    ['nothing', /does not exist/],
  ] as const) {
    const binding = {
      url: `${pages.a}/login`,
      steps: [{ do: 'fill', selector: '#password', credential, field: 'password' }],
    };
    const refusal = await owner.configure('bank.wrong', operation(binding));
    assert.deepEqual([refusal.status, refusal.body.code], [400, 'invalid_request'], refusal.text);
    assert.match(refusal.text, why);
  }
  await owner.writeCredential('seedless', {
    type: 'login',
    value: { username: USERNAME, password: PASSWORD },
    origins: [pages.a],
  });
  await owner.publish(
    'bank.enter',
    operation({ url: `${pages.a}/login`, steps: [{ do: 'fill', selector: '#code', totp: 'seedless' }] }),
  );
  const seedlessResponse = await call('bank.enter', {});
  assert.deepEqual(
    [seedlessResponse.status, seedlessResponse.body.code],
    [424, 'credential_missing'],
    seedlessResponse.text,
  );
  const deleteRefusal = await owner.send('DELETE', 'credentials/seedless', { ifMatch: '*' });
  assert.deepEqual([deleteRefusal.status, deleteRefusal.body.code], [409, 'not_ready'], deleteRefusal.text);
  assert.equal((await owner.send('DELETE', 'credentials/seedless?force=true', { ifMatch: '*' })).status, 204);
  const callRefusal = await call('bank.enter', {});
  assert.deepEqual([callRefusal.status, callRefusal.body.code], [424, 'credential_missing'], callRefusal.text);
  const { body } = await server.api<AgentOperation>('GET', agentPath(server, 'operations/bank.enter'), { key });
  assert.equal(body.requires.connection, 'missing');
});

test('a running call keeps the credential value that it started with, and the next call uses the new value', async () => {
  const countBefore = receivedValues.length;
  const pendingCall = runSteps([{ do: 'sleep', ms: 3_000 }, ...SIGN_IN]);
  await eventually(
    'the call to have opened its page',
    () => pages.hits('/login'),
    hits => hits > 0,
  );
  const { body: runningCalls } = await eventually(
    'a running call',
    () => server.api<{ data: { status: string }[] }>('GET', agentPath(server, 'invocations?status=running'), { key }),
    ({ body }) => body.data.length > 0,
  );
  assert.equal(runningCalls.data.length, 1);
  const { status, text } = await owner.writeCredential(
    'bank',
    { ...login, value: { ...login.value, password: 'the new one 2' } },
    '*',
  );
  assert.equal(status, 200, text);
  assert.equal((await pendingCall).body.status, 'succeeded');
  const nextResponse = await runSteps(SIGN_IN);
  assert.equal(nextResponse.body.status, 'succeeded', nextResponse.text);
  assert.deepEqual(
    receivedValues.slice(countBefore).map(({ password }) => password),
    [PASSWORD, 'the new one 2'],
  );
});
