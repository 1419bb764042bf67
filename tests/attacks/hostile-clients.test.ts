// Clients that send malformed parameters: objects in place of strings, and deeply nested URLs. Each client gets a
// response or loses its own connection. Other sessions are not affected.
import assert from 'node:assert/strict';
import { release } from 'node:os';
import { test } from 'node:test';
import { chromium } from 'playwright-core';
import type { DebugUrls } from '../../contract/live.ts';
import { CdpClient, expectUpgradeRefusal } from '../harness/cdp.ts';
import { openPages } from '../harness/pages.ts';
import { type CreatedSession, startServer } from '../harness/server.ts';

const pages = await openPages();
const server = await startServer({ pages, env: { BERTH_SLOTS: '4' } });
const neighbourSession = await server.createSession({ keepAlive: true });
const neighbourClient = await CdpClient.connect(neighbourSession.connectUrl);
const neighbourChannel = await neighbourClient.attachToPage();
const { pid } = server;

/** Asserts that the same server process answers and that another session is not affected. */
async function assertUnharmed(what: string): Promise<void> {
  assert.equal((await server.api('GET', '/healthz')).status, 200, what);
  assert.equal(server.pid, pid);
  assert.equal(await neighbourClient.evaluate('6 * 7', neighbourChannel), 42, what);
}

async function open(): Promise<{ session: CreatedSession; client: CdpClient; page: string }> {
  const session = await server.createSession({ keepAlive: true });
  const client = await CdpClient.connect(session.connectUrl);
  return { session, client, page: await client.attachToPage() };
}

/** An object that cannot be converted to a string, a URL or a number. */
const UNCONVERTIBLE = { toString: 1, valueOf: 1 };
const MALFORMED_VALUES: ReadonlyArray<readonly [what: string, value: unknown]> = [
  ['an object that no text can be made of', UNCONVERTIBLE],
  ['a list of such objects', [UNCONVERTIBLE, [UNCONVERTIBLE]]],
  ['a lone surrogate', '\ud800'],
  ['a number', -1e308],
  ['nothing', null],
];
/** The parameters that the gateway or the log reads, by command. */
const INSPECTED_PARAMS: Readonly<Record<string, readonly string[]>> = {
  'DOM.setFileInputFiles': ['files', 'nodeId'],
  'Input.dispatchDragEvent': ['type', 'data', 'x'],
  'Input.dispatchKeyEvent': ['type', 'text', 'key'],
  'Input.dispatchTouchEvent': ['type', 'touchPoints'],
  'Input.insertText': ['text'],
  'Page.navigate': ['url', 'referrer'],
  'Page.handleJavaScriptDialog': ['accept', 'promptText'],
  'Page.setDownloadBehavior': ['behavior', 'downloadPath'],
  'Runtime.evaluate': ['expression'],
  'Runtime.callFunctionOn': ['functionDeclaration', 'arguments', 'objectId'],
  'Network.loadNetworkResource': ['url', 'frameId', 'options'],
  'Emulation.setDeviceMetricsOverride': ['width', 'screenOrientation'],
  'Extensions.loadUnpacked': ['path'],
  'Extensions.uninstall': ['id'],
  'Target.attachToTarget': ['targetId', 'flatten'],
  'Target.createTarget': ['url', 'width', 'browserContextId'],
  'Target.setAutoAttach': ['autoAttach', 'filter', 'flatten'],
};

test('a command that reuses the id of an unanswered command is refused, and the first command still gets its response', async () => {
  const { session, client, page } = await open();
  const evaluateCommand = { id: 900, method: 'Runtime.evaluate', sessionId: page };
  const pendingParams = { expression: 'new Promise(done => { globalThis.finish = done })', awaitPromise: true };
  const refusal = client.next('the refusal', ({ id, error }) => id === 900 && error !== undefined);
  client.sendRaw(JSON.stringify({ ...evaluateCommand, params: pendingParams }));
  client.sendRaw(JSON.stringify({ ...evaluateCommand, params: { expression: '1' } }));
  assert.match((await refusal).error?.message ?? '', /has not been answered yet/);
  const firstResponse = client.next('the first response', ({ id, result }) => id === 900 && result !== undefined);
  await client.evaluate("finish('first')", page);
  assert.match(JSON.stringify(await firstResponse), /"first"/);
  await assertUnharmed('after a repeated id');
  await client.close();
  await server.release(session.id);
});

test('a client gets a response to every command that the gateway inspects, even if its parameters are malformed', async () => {
  const { session, client, page } = await open();
  for (const [method, names] of Object.entries(INSPECTED_PARAMS))
    for (const name of names)
      for (const [what, value] of MALFORMED_VALUES) {
        const { id } = await client.ask(method, { [name]: value }, page);
        assert.ok(id !== undefined, `${method} with ${what} for ${name} is answered`);
        await assertUnharmed(`${method} with ${what} for ${name}`);
      }
  await client.ask('DOM.setFileInputFiles', { files: [UNCONVERTIBLE, UNCONVERTIBLE] }, page);
  await client.ask('DOM.setFileInputFiles', { data: { files: [UNCONVERTIBLE] }, files: UNCONVERTIBLE }, page);
  await client.ask('Input.dispatchDragEvent', { data: { files: [UNCONVERTIBLE] } }, page);
  assert.equal(await client.evaluate('6 * 7', page), 42);
  await client.close();
  await server.release(session.id);
});

test('a client gets a response to each command with malformed parameters that it sends through a DevTools link', async () => {
  const { session, client } = await open();
  const { body } = await server.api<DebugUrls>('GET', `/v1/browsers/sessions/${session.id}/debug`);
  const link = new URL(String(body.pages[0]?.devtoolsUrl).replace(/^http/, 'ws'));
  link.pathname += '/socket';
  const devtools = await CdpClient.connect(link.href);
  for (const [method, names] of Object.entries(INSPECTED_PARAMS))
    for (const name of names)
      for (const [what, value] of MALFORMED_VALUES) {
        const { id } = await devtools.ask(method, { [name]: value });
        assert.ok(id !== undefined, `${method} with ${what} for ${name} is answered`);
        await assertUnharmed(`${method} with ${what} for ${name}, through DevTools`);
      }
  await devtools.close();
  await client.close();
  await server.release(session.id);
});

for (const [what, url] of [
  ['in blob:', `${'blob:'.repeat(800_000)}x`],
  ['in filesystem: and blob:', `${'filesystem:blob:'.repeat(250_000)}x`],
  ['in view-source:', `${'view-source:'.repeat(300_000)}x`],
  ['in blob: and whitespace', `${'blob: \t'.repeat(500_000)}x`],
] as const)
  test(`a URL of several megabytes, nested ${what}, is refused without blocking other sessions`, async () => {
    const { session, client, page } = await open();
    for (const method of ['Page.navigate', 'Network.loadNetworkResource'])
      assert.ok((await client.ask(method, { url }, page)).error, `${method} is refused`);
    assert.ok((await client.ask('Target.createTarget', { url })).error);
    await assertUnharmed(what);
    await client.close();
    await server.release(session.id);
  });

test('an upgrade request with an invalid URL gets the response 404', async () => {
  const socketUrl = server.url.replace('http', 'ws');
  for (const path of ['//', '///', '//[', '/\\', '//v1/browsers/sessions'])
    assert.equal((await expectUpgradeRefusal(socketUrl + path)).status, 404, path);
  await assertUnharmed('upgrade requests with invalid URLs');
});

test('a client gets the events of a trace, but no information about the host', async () => {
  const { session, client } = await open();
  const traceEnd = client.next('the end of the trace', ({ method }) => method === 'Tracing.tracingComplete');
  await client.send('Tracing.start', { transferMode: 'ReturnAsStream' });
  await client.send('Tracing.end');
  const handle = (await traceEnd).params?.stream;
  assert.match((await client.ask('IO.read', { handle, offset: 0 })).error?.message ?? '', /without an offset/);
  const pieces: Buffer[] = [];
  for (let isOver = false; !isOver; ) {
    const { data, base64Encoded, eof } = await client.send('IO.read', { handle, size: 100_000 });
    pieces.push(Buffer.from(String(data), base64Encoded === true ? 'base64' : 'utf8'));
    isOver = eof === true;
  }
  await client.send('IO.close', { handle });
  const trace = Buffer.concat(pieces).toString();
  assert.ok(JSON.parse(trace).traceEvents.length > 0);
  for (const word of ['command_line', 'physical-memory', '--user-data-dir', 'os-kernel-version', release()])
    assert.ok(!trace.includes(word), word);
  for (const more of [{ streamFormat: 'proto' }, { streamCompression: 'gzip' }, { perfettoConfig: 'CgA=' }]) {
    const { error } = await client.ask('Tracing.start', { transferMode: 'ReturnAsStream', ...more });
    assert.match(error?.message ?? '', /refused/, Object.keys(more).join());
  }
  await client.close();

  const browser = await chromium.connectOverCDP(session.connectUrl);
  const page = browser.contexts()[0]?.pages()[0];
  assert.ok(page);
  await browser.startTracing(page);
  await page.goto(`${pages.url}/next`);
  const { traceEvents, ...rest } = JSON.parse(String(await browser.stopTracing()));
  assert.ok(traceEvents.length > 0);
  assert.deepEqual(rest, {});
  await browser.close();
  await server.release(session.id);
});

test('a command to ignore input events, which would lock out a viewer with control, is refused', async () => {
  const { session, client, page } = await open();
  const { error } = await client.ask('Input.setIgnoreInputEvents', { ignore: true }, page);
  assert.match(error?.message ?? '', /refused/);
  await client.send('Input.setIgnoreInputEvents', { ignore: false }, page);
  await client.close();
  await server.release(session.id);
});
