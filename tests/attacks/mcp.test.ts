// Attacks on the MCP endpoint: access to sessions of others, pages that block or flood the driver, and text of pages in
// responses.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { LIGHT_ENGINE } from '../harness/engine.ts';
import { createOwnerToken } from '../harness/limits.ts';
import { createOtherApplicationKey } from '../harness/other-application.ts';
import { openPages } from '../harness/pages.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const pages = await openPages({
  '/held': () => {},
  '/busy': '<!doctype html><title>Busy</title><button onclick="for (;;);">Hang</button>',
  '/alerts':
    '<!doctype html><title>Alerts</title><button onclick="for (let i = 0; i < 1000; i++) alert(i)">Alert</button>',
  '/wide': `<!doctype html><title>Wide</title><body><script>
    for (let i = 0; i < 5000; i++) document.body.appendChild(document.createElement('button')).textContent = 'x'.repeat(100);</script>`,
  '/names': `<!doctype html><title>${'T'.repeat(5000)}\u202e</title><button aria-label="\ud800 odd">Odd</button>`,
});
const server = await startServer({ pages, env: { BERTH_ENGINE: LIGHT_ENGINE, BERTH_SLOTS: '4' } });
const endpoint = (application = server.applicationId) => `${server.url}/v1/agent/applications/${application}/mcp`;

async function connectAgent(key = server.key) {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
  const requestInit = { headers: { authorization: `Bearer ${key}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL(endpoint()), { requestInit }));
  const call = async (name: string, input: Record<string, unknown> = {}) => {
    const { content, isError, _meta } = await client.callTool({ name, arguments: input }, { timeout: 180_000 });
    const text = content.flatMap(block => (block.type === 'text' ? [block.text] : [])).join('\n');
    return { text, isError: isError === true, sessionId: String(_meta?.['berth/sessionId']) };
  };
  return { call, close: () => client.close() };
}

const message = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} };
const post = (path: string, key: string | null, body: unknown = message) => {
  const headers = { accept: 'application/json, text/event-stream' };
  return server.api('POST', path, { body, key, headers });
};
const ownPath = `/v1/agent/applications/${server.applicationId}/mcp`;

/** Returns an agent key of the application with these scopes. */
async function keyWith(scopes: readonly string[]): Promise<{ id: string; key: string }> {
  const path = `/v1/applications/${server.applicationId}/agent-keys`;
  const issueKeyResponse = await server.api<{ id: string; key: string }>('POST', path, {
    key: await createOwnerToken(server),
    body: { name: scopes.join(' '), scopes },
  });
  assert.equal(issueKeyResponse.status, 201, issueKeyResponse.text);
  return issueKeyResponse.body;
}

test('a key can use only the endpoint of its own application, and other kinds of credentials are refused', async () => {
  const otherApplicationKey = await createOtherApplicationKey(server);
  assert.equal((await post(ownPath, otherApplicationKey)).status, 404);
  assert.equal((await post(ownPath, null)).status, 401);
  assert.equal((await post(ownPath, await createOwnerToken(server))).status, 401);
  assert.equal((await post(ownPath, (await keyWith(['browsers:read'])).key)).status, 403);
});

test('a request from a page of another origin is refused, even with a key, and even if the host name of the origin resolves to this server', async () => {
  const from = (origin: string, host?: string) =>
    server.api('POST', ownPath, {
      body: message,
      headers: { accept: 'application/json, text/event-stream', origin, ...(host === undefined ? {} : { host }) },
    });
  for (const origin of ['https://evil.example', 'null', `${server.url}.evil.example`, 'http://localhost:1']) {
    const { status, body } = await from(origin);
    assert.deepEqual([status, body.code], [403, 'origin_not_allowed'], origin);
  }
  assert.equal((await from('http://rebound.example', 'rebound.example')).status, 403);
  for (const origin of [server.url, server.url.replace('127.0.0.1', 'localhost')])
    assert.equal((await from(origin)).status, 200, origin);
});

test('a key cannot access a session of another application, even with the session id', async () => {
  const { call, close } = await connectAgent();
  const otherApplicationKey = await createOtherApplicationKey(server);
  const foreignSession = await server.createSession({ keepAlive: true }, otherApplicationKey);
  const instructions = 'Sign in';
  for (const [name, more] of [
    ['browser_snapshot', {}],
    ['browser_close', {}],
    ['browser_hand_over', { instructions }],
    ['browser_hand_over_wait', {}],
    ['browser_hand_over_cancel', {}],
  ] as const) {
    const { text, isError } = await call(name, { sessionId: foreignSession.id, ...more });
    assert.ok(isError, name);
    assert.match(text, /does not exist, or you do not have access to it/);
  }
  await close();
  await server.api('POST', `/v1/browsers/sessions/${foreignSession.id}`, {
    key: otherApplicationKey,
    body: { status: 'REQUEST_RELEASE' },
  });
});

test('a script result that is too long is cut or refused, even if the page replaces JSON.stringify, and a long console message is not returned', async () => {
  const { call, close } = await connectAgent();
  const { sessionId } = await call('browser_open');
  await call('browser_navigate', { sessionId, url: `${pages.url}/names` });
  const evaluate = (script: string) => call('browser_evaluate', { sessionId, function: script });
  const longScript = "() => '\\u4e00'.repeat(10_000_000)";
  assert.match((await evaluate(longScript)).text, /The value has 10000002 characters as JSON/);
  assert.match((await evaluate("() => 'x'.repeat(200_000)")).text, /x\n\(The first 100000 of 200002 characters\.\)/);
  await evaluate("() => { JSON.stringify = () => ''; }");
  const { isError, text } = await evaluate(longScript);
  assert.ok(isError, text.slice(0, 500));
  const logResponse = await evaluate("() => { console.log('\\u4e00'.repeat(10_000_000)); return 'logged'; }");
  assert.ok(!logResponse.isError, logResponse.text.slice(0, 500));
  const messagesResponse = await call('browser_console_messages', { sessionId });
  assert.doesNotMatch(messagesResponse.text, /\u4e00/);
  await call('browser_close', { sessionId });
  await close();
});

test('a tool call can use a session of another key only if the call contains the id of the session', async () => {
  const [first, second] = [
    await connectAgent(),
    await connectAgent((await keyWith(['browsers:read', 'browsers:write', 'browsers:connect'])).key),
  ];
  const { sessionId } = await first.call('browser_open');
  const { isError, text } = await second.call('browser_navigate', { url: `${pages.url}/` });
  assert.ok(isError);
  assert.match(text, /No browser is open/);
  const namedSessionResponse = await second.call('browser_navigate', { sessionId, url: `${pages.url}/` });
  assert.ok(!namedSessionResponse.isError, namedSessionResponse.text);
  await first.call('browser_close', { sessionId });
  await Promise.all([first.close(), second.close()]);
});

test('a key with only browsers:connect can control sessions, but cannot open, close or list sessions', async () => {
  const { call, close } = await connectAgent((await keyWith(['browsers:connect'])).key);
  const { id } = await server.createSession({ keepAlive: true });
  assert.match((await call('browser_navigate', { sessionId: id, url: `${pages.url}/` })).text, /Title: Home/);
  for (const name of ['browser_open', 'browser_close', 'browser_sessions'])
    assert.match((await call(name, name === 'browser_close' ? { sessionId: id } : {})).text, /lacks the scope/);
  await close();
  await server.release(id);
});

test('a key that is revoked between two calls is refused at the second call', async () => {
  const revokedKey = await keyWith(['browsers:read', 'browsers:write', 'browsers:connect']);
  const { call, close } = await connectAgent(revokedKey.key);
  const { sessionId } = await call('browser_open');
  const path = `/v1/applications/${server.applicationId}/agent-keys/${revokedKey.id}`;
  const { headers } = await server.api('GET', path, { key: await createOwnerToken(server) });
  const revokeResponse = await server.api('DELETE', path, {
    key: await createOwnerToken(server),
    headers: { 'if-match': String(headers.etag) },
  });
  assert.equal(revokeResponse.status, 204, revokeResponse.text);
  await assert.rejects(call('browser_snapshot', { sessionId }), /401|invalid/i);
  await close();
  await server.api('POST', `/v1/browsers/sessions/${sessionId}`, { body: { status: 'REQUEST_RELEASE' } });
});

test('a running call ends when its key is revoked, and another key can continue the session', async () => {
  const scopes = ['browsers:read', 'browsers:write', 'browsers:connect'];
  const revokedKey = await keyWith(scopes);
  const [revokedAgent, otherAgent] = [
    await connectAgent(revokedKey.key),
    await connectAgent((await keyWith(scopes)).key),
  ];
  const { sessionId } = await revokedAgent.call('browser_open', { url: `${pages.url}/` });
  const pendingCall = revokedAgent.call('browser_evaluate', {
    sessionId,
    function: '() => fetch("/held").then(() => "held")',
  });
  const callOutcome = pendingCall.then(({ isError, text }) => (isError ? 'refused' : text), String);
  await eventually('the request of the page', () => pages.hits('/held') === 1);
  const path = `/v1/applications/${server.applicationId}/agent-keys/${revokedKey.id}`;
  const revokeRequest = { key: await createOwnerToken(server), headers: { 'if-match': '*' } };
  assert.equal((await server.api('DELETE', path, revokeRequest)).status, 204);
  await assert.rejects(revokedAgent.call('browser_snapshot', { sessionId }), /401|invalid/i);
  assert.equal(await callOutcome, 'refused');
  assert.match((await otherAgent.call('browser_snapshot', { sessionId })).text, /Title: Home/);
  await otherAgent.call('browser_close', { sessionId });
  await Promise.all([revokedAgent.close(), otherAgent.close()]);
});

test('the endpoint offers no stream that could stay open after a key is revoked', async () => {
  for (const headers of [{ accept: 'text/event-stream' }, { accept: 'text/event-stream', 'last-event-id': '1' }]) {
    const { status, text } = await server.api('GET', ownPath, { headers });
    assert.equal(status, 405, text);
  }
  const listenMessage = { jsonrpc: '2.0', id: 1, method: 'subscriptions/listen', params: { notifications: {} } };
  // The request gets a complete response instead of a stream, although the client accepts a stream.
  assert.match((await post(ownPath, server.key, listenMessage)).text, /-32601/);
});

test('URLs of files, internal browser pages and this machine are refused by the tools', async () => {
  const secretPages = await openPages({ '/': 'secret' }); // On loopback, which sessions may not reach.
  const { call, close } = await connectAgent();
  const { sessionId } = await call('browser_open');
  const [internalPattern, forbiddenPattern] = [/Opening \S+: pages is refused/, /Berth refused this request: rule \w+/];
  for (const [url, refusal] of [
    ['file:///etc/passwd', internalPattern],
    ['chrome://version', internalPattern],
    ['view-source:about:blank', internalPattern],
    [`http://[::1]:${secretPages.port}`, forbiddenPattern],
    [secretPages.url, forbiddenPattern],
    [`${server.url}/healthz`, forbiddenPattern],
  ] as const) {
    assert.match((await call('browser_navigate', { sessionId, url })).text, refusal, url);
    const tab = await call('browser_tabs', { sessionId, action: 'new', url });
    assert.match((tab.isError ? tab : await call('browser_snapshot', { sessionId })).text, refusal, url);
  }
  assert.equal(secretPages.hits('/'), 0);
  await call('browser_close', { sessionId });
  await close();
});

test('a page that hangs delays only its own session', async () => {
  const { call, close } = await connectAgent();
  const busyPageResponse = await call('browser_open', { url: `${pages.url}/busy` });
  const calmPageResponse = await call('browser_open', { url: `${pages.url}/` });
  const [, ref = ''] = /"Hang" \[ref=(\w+)\]/.exec(busyPageResponse.text) ?? [];
  const pendingClick = call('browser_click', { sessionId: busyPageResponse.sessionId, ref });
  assert.match((await call('browser_snapshot', { sessionId: calmPageResponse.sessionId })).text, /Title: Home/);
  assert.ok((await pendingClick).isError);
  assert.match((await call('browser_snapshot', { sessionId: calmPageResponse.sessionId })).text, /Title: Home/);
  await Promise.all([busyPageResponse, calmPageResponse].map(({ sessionId }) => call('browser_close', { sessionId })));
  await close();
});

test('tool calls on a page with a thousand dialogs and on a page with five thousand elements get bounded responses', async () => {
  const { call, close } = await connectAgent();
  const { sessionId, text } = await call('browser_open', { url: `${pages.url}/alerts` });
  const [, ref = ''] = /"Alert" \[ref=(\w+)\]/.exec(text) ?? [];
  assert.match((await call('browser_click', { sessionId, ref })).text, /A dialog is open \(alert\): "0"/);
  assert.match(
    (await call('browser_handle_dialog', { sessionId, accept: true })).text,
    /A dialog is open \(alert\): "1"/,
  );
  await call('browser_close', { sessionId });
  const widePageResponse = await call('browser_open', { url: `${pages.url}/wide` });
  assert.ok(widePageResponse.text.length < 210_000, `${widePageResponse.text.length}`);
  assert.match(widePageResponse.text, /The snapshot does not show the whole page/);
  const namesResponse = await call('browser_navigate', {
    sessionId: widePageResponse.sessionId,
    url: `${pages.url}/names`,
  });
  assert.ok(namesResponse.text.isWellFormed() && namesResponse.text.length < 5000);
  await call('browser_close', { sessionId: widePageResponse.sessionId });
  await close();
});

test('messages that are not JSON-RPC, batches and unknown methods are refused, and the next request succeeds', async () => {
  for (const body of [
    {},
    [],
    [message, message],
    { jsonrpc: '2.0' },
    { jsonrpc: '2.0', id: 1, method: 'x'.repeat(10_000) },
    'text',
    null,
  ])
    assert.equal((await post(ownPath, server.key, body)).status, 400, JSON.stringify(body).slice(0, 50));
  const unknownMethodResponse = await post(ownPath, server.key, { jsonrpc: '2.0', id: 1, method: 'admin/shutdown' });
  assert.match(unknownMethodResponse.text, /-32601|not found/i);
  assert.match((await post(ownPath, server.key)).text, /browser_open/);
});

test('ended sessions leave no process, file or unfinished database row behind', () => server.waitUntilSettled());
