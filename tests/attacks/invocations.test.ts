// Attacks on operations: addresses that a session may not reach, sessions and invocations of others, hostile pages, and
// altered receipts. Receipts are verified without a network.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash, createHmac, generateKeyPairSync, sign } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { Invocation } from '../../contract/invocations.ts';
import { verifyReceipt } from '../../sdk/index.ts';
import { cancelOrderOperation, Owner } from '../harness/configured.ts';
import { liftLimits } from '../harness/limits.ts';
import { agentPath, invoke, issueAgentKey } from '../harness/operations.ts';
import { readDatabaseText } from '../harness/other-person.ts';
import { openPages } from '../harness/pages.ts';
import { CHECKOUT, startServer } from '../harness/server.ts';
import { openUpstream } from '../harness/upstream.ts';

const pages = await openPages({
  '/page': '<!doctype html><title>Page</title><h1>Page</h1>',
  '/huge': `<!doctype html><title>${'T'.repeat(5000)}</title><script>
    for (let n = 0; n < 20000; n++) document.body.append(Object.assign(document.createElement('a'), { href: '/' + n, textContent: 'x'.repeat(200) }));</script>`,
  '/liar': `<!doctype html><title>Liar</title><body><script>
    Object.defineProperty(document.documentElement, 'outerHTML', { get: () => ({ toString: 1 }) });
    Object.defineProperty(HTMLElement.prototype, 'innerText', { get: () => '\\ud800' + 'y'.repeat(5e6) });</script>`,
  '/nul': "<!doctype html><title>NUL</title><body><script>document.body.append('a\\0b')</script>",
  '/late':
    '<!doctype html><title>Late</title><script>addEventListener("load", () => setTimeout(() => { for (;;); }, 200))</script>',
  '/loop': '<!doctype html><title>Loop</title><script>addEventListener("load", () => { for (;;); })</script>',
});
const server = await startServer({ pages, env: { BERTH_SLOTS: '4' } });
await liftLimits(server);
const { key } = await issueAgentKey(server);
const folder = mkdtempSync(join(tmpdir(), 'berth-receipts-'));
after(() => rmSync(folder, { recursive: true }));

test('an operation cannot open files, internal pages or addresses that sessions may not reach', async () => {
  for (const url of ['file:///etc/passwd', 'chrome://version', 'javascript:1', 'data:text/html,x']) {
    const refusal = await invoke(server, key, 'browser.content', { url });
    assert.deepEqual([refusal.status, refusal.body.code], [400, 'invalid_request'], url);
  }
  for (const url of [`${server.url}/v1/config`, 'http://127.0.0.1:9/', 'http://[::1]/', 'http://localhost:22/']) {
    const { body, text } = await invoke(server, key, 'browser.content', { url });
    assert.deepEqual([body.status, body.error?.code], ['failed', 'page_failed'], `${url}: ${text}`);
  }
});

test('no step or redirect can open files, internal pages or private addresses', async () => {
  const { key: stepsKey } = await issueAgentKey(server, { grants: [{ operationId: 'browser.steps' }] });
  let callCount = 0;
  const goTo = (url: string) => {
    callCount += 1;
    const input = {
      url: `${pages.url}/page`,
      steps: [{ do: 'goto', url }, { do: 'content', as: 'html' }, { do: 'screenshot' }],
    };
    return invoke(server, stepsKey, 'browser.steps', input, { headers: { 'idempotency-key': `go ${callCount}` } });
  };
  for (const url of ['file:///etc/passwd', 'chrome://version', 'view-source:http://127.0.0.1/']) {
    const { status, body, text } = await goTo(url);
    assert.deepEqual([status, body.code], [400, 'invalid_request'], text);
  }
  const forbiddenUrls = [
    'file:///etc/passwd',
    'chrome://version',
    'http://169.254.169.254/latest/',
    'http://10.0.0.1/',
    server.url,
  ];
  for (const [index, location] of forbiddenUrls.entries()) {
    pages.set(`/to/${index}`, (_, response) => void response.writeHead(302, { location }).end());
    const { body, text } = await goTo(`${pages.url}/to/${index}`);
    assert.deepEqual([body.status, body.error?.code], ['failed', 'page_failed'], `${location}: ${text}`);
    assert.ok(!/root:x:|Executable Path/.test(text), text);
  }
});

test('capturing an error page fails, even after a redirect', async () => {
  pages.set('/gone', (_, response) => void response.writeHead(410, { 'content-type': 'text/html' }).end('<h1>Gone'));
  pages.set('/to-gone', (_, response) => void response.writeHead(302, { location: '/gone' }).end());
  pages.set('/broken', request => void request.socket.destroy());
  pages.set('/refused', (_, response) => void response.writeHead(302, { location: 'http://10.0.0.1/' }).end());
  for (const path of ['/gone', '/to-gone', '/broken', '/refused', '/nothing-there'])
    for (const operation of ['browser.screenshot', 'browser.pdf', 'browser.content']) {
      const { body, text } = await invoke(server, key, operation, { url: `${pages.url}${path}` });
      assert.deepEqual(
        [body.status, body.error?.code, body.output],
        ['failed', 'page_failed', undefined],
        `${path}: ${text}`,
      );
    }
});

test('a session or an invocation of another application is not found', async () => {
  const session = (await server.api<{ id: string }>('POST', '/v1/browsers/sessions')).body;
  const helpResult = await server.berth('apps', 'create', '--help');
  assert.equal(helpResult.code, 0);
  const otherApplication = await createOtherApplicationKey();
  const invokeResponse = await server.api<Invocation & { code: string }>(
    'POST',
    `/v1/agent/applications/${otherApplication.applicationId}/operations/browser.content/invoke`,
    { key: otherApplication.key, body: { input: { sessionId: session.id } } },
  );
  assert.deepEqual([invokeResponse.status, invokeResponse.body.code], [404, 'not_found'], invokeResponse.text);
  const ownInvocation = (await invoke(server, key, 'browser.content', { url: `${pages.url}/page` })).body;
  const path = `/v1/agent/applications/${otherApplication.applicationId}/invocations/${ownInvocation.id}`;
  assert.equal((await server.api('GET', path, { key: otherApplication.key })).status, 404);
  assert.equal((await server.api('POST', `${path}/cancel`, { key: otherApplication.key })).status, 404);
  await server.api('POST', `/v1/browsers/sessions/${session.id}`, { body: { status: 'REQUEST_RELEASE' } });
});

/** Returns a key with grants, in its own application. */
async function createOtherApplicationKey(): Promise<{ key: string; applicationId: string }> {
  const made = await server.berth('tokens', 'create', '--name', 'other', '--json');
  const { token }: { token: string } = JSON.parse(made.stdout);
  const { id } = (await server.api<{ id: string }>('POST', '/v1/applications', { key: token, body: { name: 'Other' } }))
    .body;
  const keyResponse = await server.api<{ key: string }>('POST', `/v1/applications/${id}/agent-keys`, {
    key: token,
    body: {
      name: 'thief',
      scopes: ['operations:invoke', 'browsers:connect'],
      grants: [{ operationId: '*', effect: 'read' }],
    },
  });
  assert.equal(keyResponse.status, 201, keyResponse.text);
  return { key: keyResponse.body.key, applicationId: id };
}

test('calls on hostile pages return a bounded output or fail, and do not delay other calls', async () => {
  const linksInvocation = (await invoke(server, key, 'browser.content', { url: `${pages.url}/huge`, as: 'links' }))
    .body;
  assert.equal(linksInvocation.status, 'succeeded', JSON.stringify(linksInvocation.error));
  assert.ok(Buffer.byteLength(Object(linksInvocation.output).content) <= 262_144);
  assert.ok(Object(linksInvocation.output).title.length <= 300);
  const liar = { url: `${pages.url}/liar` };
  const textInvocation = (await invoke(server, key, 'browser.content', { ...liar, as: 'text' })).body;
  if (textInvocation.status === 'succeeded') assert.ok(Object(textInvocation.output).content.isWellFormed());
  assert.notEqual((await invoke(server, key, 'browser.content', { ...liar, as: 'html' })).body.status, 'running');
  const loop = invoke(server, key, 'browser.screenshot', { url: `${pages.url}/loop`, timeoutMs: 4_000 });
  const otherInvocation = (await invoke(server, key, 'browser.content', { url: `${pages.url}/page` })).body;
  assert.equal(otherInvocation.status, 'succeeded');
  assert.equal((await loop).body.status, 'failed');
});

test('a call on a page that hangs after loading ends at the deadline, and later calls work', async () => {
  const url = `${pages.url}/late`;
  const wait = { headers: { prefer: 'wait=30' } };
  for (const [operation, more] of [
    ['browser.content', { as: 'html' }],
    ['browser.pdf', {}],
  ] as const) {
    const input = { url, ...more, waitUntil: '#never', timeoutMs: 2_000 };
    const { body, text } = await invoke(server, key, operation, input, wait);
    assert.deepEqual([body.status, body.error?.code], ['failed', 'timeout'], text);
  }
  const timeoutResponse = await invoke(
    server,
    key,
    'browser.content',
    { url: `${pages.url}/loop`, timeoutMs: 2_000 },
    wait,
  );
  assert.deepEqual(
    [timeoutResponse.body.status, timeoutResponse.body.error?.code],
    ['failed', 'timeout'],
    timeoutResponse.text,
  );
  const { body } = await invoke(server, key, 'browser.content', { url: `${pages.url}/page` }, wait);
  assert.equal(body.status, 'succeeded', JSON.stringify(body.error));
});

test('the input of an invocation is not readable in the database', async () => {
  const secret = 'a-password-in-an-input-9f31';
  const proxies = [{ type: 'external', server: 'http://127.0.0.1:1', username: 'me', password: secret }];
  const { status } = await invoke(server, key, 'browser.content', { url: `${pages.url}/page`, proxies });
  assert.equal(status, 400);
  const none = [{ type: 'none', domainPattern: secret }];
  await invoke(
    server,
    key,
    'browser.content',
    { url: `${pages.url}/page`, proxies: none },
    { headers: { prefer: 'respond-async' } },
  );
  assert.doesNotMatch(await readDatabaseText(server, ['invocations']), new RegExp(secret));
});

const jwks = await (await fetch(`${server.url}/.well-known/jwks.json`)).text();

/** Verifies a receipt with the `berth` command, without a network. */
function verifyOffline(receipt: string, keys: string, values: Readonly<Record<string, unknown>> = {}) {
  const file = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const args = ['receipts', 'verify', file('receipt.jws', receipt), '--jwks', file('jwks.json', keys)];
  const more = Object.entries(values).flatMap(([name, value]) => [
    `--${name}`,
    file(`${name}.json`, JSON.stringify(value)),
  ]);
  const command = [process.execPath, join(CHECKOUT, 'cli/berth.ts'), ...args, ...more];
  return spawnSync('unshare', ['--map-root-user', '--net', ...command], { encoding: 'utf8' });
}

test('a receipt can be verified without a network, and one changed byte is detected', async () => {
  const input = { url: `${pages.url}/page`, as: 'text' };
  const invocation = (await invoke(server, key, 'browser.content', input)).body;
  const { receipt = '', output } = invocation;
  const verify = (text: string, receiptInput: object = input) =>
    verifyOffline(text, jwks, { input: receiptInput, output });
  assert.match(
    execFileSync('unshare', ['--map-root-user', '--net', 'ip', '-o', 'link'], { encoding: 'utf8' }),
    /^1: lo[^\n]*DOWN[^\n]*\n$/,
  );
  const intactResult = verify(receipt);
  assert.equal(intactResult.status, 0, intactResult.stderr);
  assert.match(intactResult.stdout, /The receipt is valid/);
  for (const at of [5, Math.floor(receipt.length / 2), receipt.length - 3]) {
    const changedReceipt = receipt.slice(0, at) + (receipt[at] === 'A' ? 'B' : 'A') + receipt.slice(at + 1);
    assert.equal(verify(changedReceipt).status, 1);
  }
  assert.match(verify(receipt, { ...input, as: 'html' }).stderr, /the input does not match the receipt/);
  const [, payload = ''] = receipt.split('.');
  const { jti }: { jti: string } = JSON.parse(Buffer.from(payload, 'base64url').toString());
  assert.deepEqual((await server.api('GET', `/v1/receipts/${jti}/status`, { key: null })).body, { status: 'current' });
  assert.deepEqual((await server.api('GET', `/v1/receipts/${invocation.id}/status`, { key: null })).body, {
    status: 'unknown',
  });
  assert.equal((await server.api('GET', agentPath(server, 'operations'), { key: null })).status, 401);
});

test('a NUL in the text of a page, which the database cannot store, is replaced in the output, and the call succeeds', async () => {
  const { body, text } = await invoke(server, key, 'browser.content', { url: `${pages.url}/nul`, as: 'text' });
  assert.equal(body.status, 'succeeded', text);
  assert.match(JSON.stringify(body.output), /a\uFFFDb/);
});

test('a forged receipt is refused, whatever algorithm or key its header names', async () => {
  const { receipt = '' } = (await invoke(server, key, 'browser.content', { url: `${pages.url}/page` })).body;
  const [head = '', payload = ''] = receipt.split('.');
  const header: { kid: string } = JSON.parse(Buffer.from(head, 'base64url').toString());
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const jwk = publicKey.export({ format: 'jwk' });
  const kid = createHash('sha256').update(`{"crv":"Ed25519","kty":"OKP","x":"${jwk.x}"}`).digest('base64url');
  const forgeReceipt = (more: object, signed = true): string => {
    const text = `${Buffer.from(JSON.stringify({ ...header, ...more })).toString('base64url')}.${payload}`;
    return `${text}.${signed ? sign(null, Buffer.from(text), privateKey).toString('base64url') : ''}`;
  };
  const ours: { x: string } = JSON.parse(jwks).keys[0];
  const hmac = `${Buffer.from(JSON.stringify({ ...header, alg: 'HS256' })).toString('base64url')}.${payload}`;
  const cases: ReadonlyArray<readonly [receipt: string, why: RegExp]> = [
    [forgeReceipt({ alg: 'none' }, false), /not a compact JWS/],
    [forgeReceipt({ alg: 'none' }), /algorithm is none/],
    [`${hmac}.${createHmac('sha256', Buffer.from(ours.x, 'base64url')).update(hmac).digest('base64url')}`, /is HS256/],
    [forgeReceipt({ jwk }), /header contains jwk/],
    [forgeReceipt({ jku: 'https://evil.example/jwks.json' }), /header contains jku/],
    [forgeReceipt({ kid }), /a key that is not in the key set/],
    [forgeReceipt({ kid: undefined }), /a key that is not in the key set/],
    [forgeReceipt({}), /signature is not valid/],
  ];
  for (const [text, why] of cases) {
    const { status, stdout, stderr } = verifyOffline(text, jwks);
    assert.deepEqual([status, stdout], [1, ''], stderr);
    assert.match(stderr, why);
  }
});

test('a receipt of another installation is refused, and this installation reports its status as unknown', async () => {
  const upstream = await openUpstream();
  const otherServer = await startServer({ env: { BERTH_SLOTS: '0', ...upstream.settings } });
  await (await Owner.open(otherServer)).publish('orders.cancel', cancelOrderOperation(upstream));
  const { key: otherApplicationKey } = await issueAgentKey(otherServer, { grants: [{ operationId: 'orders.cancel' }] });
  const headers = { 'idempotency-key': 'one' };
  const { receipt = '' } = (
    await invoke(otherServer, otherApplicationKey, 'orders.cancel', { orderId: 'A' }, { headers })
  ).body;
  const otherJwks = await (await fetch(`${otherServer.url}/.well-known/jwks.json`)).text();
  assert.equal(verifyOffline(receipt, otherJwks).status, 0);
  assert.match(verifyOffline(receipt, jwks).stderr, /a key that is not in the key set/);
  // Even if both key sets are trusted, the receipt is bound to its own issuer.
  const bothJwks = JSON.stringify({ keys: [...JSON.parse(jwks).keys, ...JSON.parse(otherJwks).keys] });
  const keys: Parameters<typeof verifyReceipt>[1]['keys'] = JSON.parse(bothJwks);
  assert.throws(() => verifyReceipt(receipt, { keys, issuer: server.url }), /was issued by/);
  assert.throws(
    () => verifyReceipt(receipt, { keys, audience: server.applicationId }),
    /was issued for the application/,
  );
  const { jti } = verifyReceipt(receipt, { keys, issuer: otherServer.url, audience: otherServer.applicationId });
  const statusResponse = await server.api('GET', `/v1/receipts/${jti}/status`, { key: null });
  assert.deepEqual(statusResponse.body, { status: 'unknown' });
});

// This test is last, because the tests above use the key set from before the rotation.
test('after a rotation of the signing key, old receipts can be verified offline, but new receipts cannot be verified with the previous key set', async () => {
  const readContent = async () => (await invoke(server, key, 'browser.content', { url: `${pages.url}/page` })).body;
  const { receipt: oldReceipt = '' } = await readContent();
  const rotateResult = await server.berth('keys', 'rotate-signing');
  assert.equal(rotateResult.code, 0, rotateResult.stderr);
  const bothJwks = await (await fetch(`${server.url}/.well-known/jwks.json`)).text();
  const { receipt: newReceipt = '' } = await readContent();
  for (const receipt of [oldReceipt, newReceipt]) {
    const { status, stderr } = verifyOffline(receipt, bothJwks);
    assert.equal(status, 0, stderr);
  }
  assert.equal(verifyOffline(oldReceipt, jwks).status, 0);
  const unknownKeyResult = verifyOffline(newReceipt, jwks);
  assert.equal(unknownKeyResult.status, 1);
  assert.match(unknownKeyResult.stderr, /a key that is not in the key set/);
});
