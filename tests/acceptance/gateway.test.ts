// The messages that the CDP gateway forwards, changes and refuses, tested with a raw client and with pages.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { after, test } from 'node:test';
import { chromium } from 'playwright-core';
import { CdpClient, type CdpMessage, expectUpgradeRefusal } from '../harness/cdp.ts';
import { FILE_NAME, FILE_TEXT, openPages } from '../harness/pages.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';
import { listCompleteDownloads } from '../harness/whole-downloads.ts';

const pages = await openPages({
  '/files':
    '<!doctype html><title>Files</title><input type=file id=input><div id=drop style="width:300px;height:300px"></div><script>document.getElementById("drop").ondragover = e => e.preventDefault(); document.getElementById("drop").ondrop = async e => { e.preventDefault(); globalThis.dropped = await Promise.all([...e.dataTransfer.files].map(file => file.text())); };</script>',
});
const server = await startServer({ pages });

const session = await server.createSession({ keepAlive: true });
const client = await CdpClient.connect(session.connectUrl);
const page = await client.attachToPage();
await client.send('Page.enable', {}, page);

async function visit(url: string): Promise<void> {
  const loadEvent = client.next(
    `${url} to load`,
    ({ method, sessionId }) => method === 'Page.loadEventFired' && sessionId === page,
  );
  await client.send('Page.navigate', { url }, page);
  await loadEvent;
}

/** Asserts that the gateway refuses the command with its own error, whose message names the command. */
async function assertRefused(method: string, params: object = {}, sessionId?: string): Promise<void> {
  const { error, result } = await client.ask(method, params, sessionId);
  assert.ok(error, `${method} ${JSON.stringify(params)} answered ${JSON.stringify(result)}`);
  assert.match(error.message, /refused/, `${method} ${JSON.stringify(params)}`);
}

/** Asserts that the session is still running and that the client is still connected. */
async function assertUnharmed(): Promise<void> {
  assert.match(String((await client.send('Browser.getVersion')).product), /^(Headless)?Chrome\//);
  assert.equal((await server.read(session.id)).status, 'RUNNING');
}

// ---- format of messages -----------------------------------------------------------------------------------------------

test("an unknown method returns the browser's own error", async () => {
  const { error } = await client.ask('Nothing.nowhere');
  assert.deepEqual(error, { code: -32601, message: "'Nothing.nowhere' wasn't found" });
});

test('a method name with escape sequences is treated like the plain name', async () => {
  const { result } = await client.askRaw(id => `{"id":${id},"method":"\\u0042rowser.getVersion"}`);
  assert.match(String(result?.product), /^(Headless)?Chrome\//);
  for (const method of ['\\u0042rowser.crash', 'Browser\\u002ecrash', '\\u0042\\u0072\\u006f\\u0077ser.crash']) {
    const { error } = await client.askRaw(id => `{"id":${id},"method":"${method}","params":{}}`);
    assert.match(error?.message ?? '', /refused/);
  }
  const { error } = await client.askRaw(
    id =>
      `{"id":${id},"method":"Page.navigate","params":{"\\u0075rl":"\\u0066ile:///etc/passwd"},"sessionId":"${page}"}`,
  );
  assert.match(error?.message ?? '', /refused/);
  await assertUnharmed();
});

for (const [what, raw] of [
  ['a duplicate member', '{"id":9001,"method":"Browser.getVersion","method":"Browser.crash"}'],
  ['a duplicate member with escapes', '{"id":9001,"method":"Browser.getVersion","\\u006dethod":"Browser.crash"}'],
  ['a duplicate sessionId', '{"id":9001,"method":"Browser.getVersion","sessionId":"A","sessionId":"B"}'],
  ['a comment', '{"id":9001,/* "x":" */"method":"Browser.crash"}'],
  ['a line comment', '{"id":9001,// x\n"method":"Browser.crash"}'],
  ['a NUL', '{"id":9001,"method":"Browser.getVersion"}\0{"id":9002,"method":"Browser.crash"}'],
  ['a NUL in a string', '{"id":9001,"method":"Browser.getVersion\0"}'],
  ['two JSON objects', '{"id":9001,"method":"Browser.getVersion"}{"id":9002,"method":"Browser.crash"}'],
  ['an array of commands', '[{"id":9001,"method":"Browser.crash"}]'],
  ['single quotes', "{'id':9001,'method':'Browser.crash'}"],
  ['a trailing comma', '{"id":9001,"method":"Browser.crash",}'],
  ['no id', '{"method":"Browser.crash"}'],
  ['no method', '{"id":9001,"params":{}}'],
  ['a string as its id', '{"id":"9001","method":"Browser.crash"}'],
  ['mismatched brackets', '{"id":9001,"method":"Browser.getVersion","params":{"a":[}]}'],
  ['a method name instead of JSON', 'Browser.crash'],
] as const)
  test(`a message with ${what} returns an error and has no effect`, async () => {
    const response = client.next(what, ({ error, id }) => error !== undefined && (id === undefined || id === 9001));
    client.sendRaw(raw);
    assert.ok((await response).error?.message);
    await assertUnharmed();
  });

for (const [what, raw, expected] of [
  ['invalid JSON', 'hello', { code: -32700 }],
  ['invalid JSON in its parameters', '{"id":9001,"method":"Browser.getVersion","params":{"a":}}', { code: -32700 }],
  ['an invalid number', '{"id":9001,"method":"Browser.getVersion","params":{"a":01}}', { code: -32700 }],
  ['a broken escape', '{"id":9001,"method":"Browser.getVersion","params":{"a":"\\q"}}', { code: -32700 }],
  ['an array instead of an object', '[]', { code: -32600 }],
  ['an id of more than 32 bits', '{"id":3000000000,"method":"Browser.getVersion"}', { code: -32600 }],
  ['only an id', '{"id":9001}', { code: -32600, id: 9001 }],
] as const)
  test(`a message with ${what} returns the error ${expected.code}, as in Chromium`, async () => {
    const response = client.next(what, ({ error, result }) => error !== undefined || result !== undefined);
    client.sendRaw(raw);
    const { error, id } = await response;
    assert.deepEqual({ code: error?.code, id }, { id: undefined, ...expected });
  });

test('a page opened with a javascript: URL is empty, and the URL is not executed, as in Chromium', async () => {
  const { targetId } = await client.send('Target.createTarget', { url: "javascript:document.title = 'ran'" });
  const { sessionId } = await client.send('Target.attachToTarget', { targetId, flatten: true });
  const shown = await client.evaluate('[location.href, document.title]', String(sessionId));
  assert.deepEqual(shown, ['about:blank', '']);
  await client.send('Target.closeTarget', { targetId });
});

test('a message that is nested too deeply returns an error', async () => {
  const nestedParams = `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`;
  const response = client.next('the error', ({ error }) => error !== undefined);
  client.sendRaw(`{"id":9001,"method":"Browser.getVersion","params":${nestedParams}}`);
  assert.ok((await response).error);
  await assertUnharmed();
});

test('a binary message closes only the connection of its client, with code 1003', async () => {
  const binaryClient = await CdpClient.connect(session.connectUrl);
  binaryClient.sendRaw(Buffer.from('{"id":1,"method":"Browser.getVersion"}'));
  assert.equal((await binaryClient.waitForClose()).code, 1003);
  await assertUnharmed();
});

test("a client can neither use nor detach another client's channel", async () => {
  const otherClient = await CdpClient.connect(session.connectUrl);
  const { error } = await otherClient.ask('Runtime.evaluate', { expression: '1' }, page);
  assert.match(error?.message ?? '', /Session with given id not found/);
  assert.ok((await otherClient.ask('Target.detachFromTarget', { sessionId: page })).error);
  assert.equal(await client.evaluate('40 + 2', page), 42);
  await otherClient.close();
});

test('the events of a client are not sent to other clients', async () => {
  const otherClient = await CdpClient.connect(session.connectUrl);
  await client.send('Runtime.enable', {}, page);
  await client.evaluate('console.log("only for me")', page);
  await client.waitForEvent('Runtime.consoleAPICalled');
  await client.send('Runtime.disable', {}, page);
  await otherClient.send('Browser.getVersion');
  assert.deepEqual(otherClient.events, []);
  await otherClient.close();
});

// ---- refused commands ---------------------------------------------------------------------------------------------------

for (const [method, params] of [
  ['Browser.crash', {}],
  ['Browser.crashGpuProcess', {}],
  ['Browser.getBrowserCommandLine', {}],
  ['Browser.executeBrowserCommand', { commandId: 'openTabSearch' }],
  ['SystemInfo.getInfo', {}],
  ['SystemInfo.getProcessInfo', {}],
  ['SystemInfo.getFeatureState', { featureState: 'x' }],
  ['Target.sendMessageToTarget', { message: '{"id":1,"method":"Browser.crash"}', targetId: 'x' }],
  ['Target.exposeDevToolsProtocol', { targetId: 'x' }],
  ['Target.setRemoteLocations', { locations: [{ host: '127.0.0.1', port: 9222 }] }],
  ['Target.openDevTools', { targetId: 'x' }],
  ['Target.setAutoAttach', { autoAttach: true, waitForDebuggerOnStart: false }],
  ['Target.createBrowserContext', { proxyServer: 'direct://' }],
  ['Tethering.bind', { port: 9222 }],
  ['Tethering.unbind', { port: 9222 }],
  ['Extensions.loadUnpacked', { path: '/etc' }],
  ['PWA.launchFilesInApp', { manifestId: 'x', files: ['/etc/passwd'] }],
] as const)
  test(`the gateway refuses ${method} on the browser`, async () => {
    await assertRefused(method, params);
    await assertUnharmed();
  });

test('the gateway refuses Target.attachToTarget without flatten', async () => {
  const { targetInfos } = await client.send('Target.getTargets');
  const targetId: string = Object(targetInfos)[0].targetId;
  await assertRefused('Target.attachToTarget', { targetId });
  await assertRefused('Target.attachToTarget', { targetId, flatten: false });
  await assertRefused('Target.attachToTarget', { targetId, autoAttach: false });
  await assertRefused('Target.attachToTarget', { targetId }, page);
});

const NON_WEB_URLS = [
  'file:///etc/passwd',
  'FILE:///etc/passwd',
  '\tfi\nle:///etc/passwd',
  'file:///session/profile/Local%20State',
  'file:///session/downloads/../profile/Local%20State',
  'file:///session/downloads/%2e%2e/profile/Local%20State',
  'chrome://version',
  'chrome:version',
  'ChRoMe://settings',
  'chrome-untrusted://terminal',
  'devtools://devtools/bundled/inspector.html',
  'view-source:http://a.test/',
  'view-source:file:///etc/passwd',
];

for (const url of NON_WEB_URLS)
  test(`the gateway refuses to open ${JSON.stringify(url)}`, async () => {
    await assertRefused('Page.navigate', { url }, page);
    await assertRefused('Target.createTarget', { url });
  });

test('Target.getTargets lists only targets of the type page', async () => {
  const { targetInfos } = await client.send('Target.getTargets');
  const types = new Set(Object(targetInfos).map((info: { type: string }) => info.type));
  assert.deepEqual([...types], ['page']);
});

// ---- files ------------------------------------------------------------------------------------------------------------

const DOWNLOADS_FOLDER = join(server.dataDir, 'sessions', session.id, 'box', 'downloads');

async function assertDownloaded(): Promise<string> {
  const [file, ...others] = await eventually(
    'the download',
    () => listCompleteDownloads(DOWNLOADS_FOLDER),
    ({ length }) => length > 0,
  );
  assert.deepEqual(others, []);
  const path = join(DOWNLOADS_FOLDER, String(file));
  assert.equal(readFileSync(path, 'utf8'), FILE_TEXT);
  return path;
}

async function clickDownload(): Promise<CdpMessage> {
  await visit(`${pages.a}/download-page`);
  const done = client.next(
    'the download to end',
    ({ method, params }) => method === 'Browser.downloadProgress' && params?.state === 'completed',
  );
  await client.evaluate('document.getElementById("get").click()', page);
  return done;
}

test('if a client denies downloads, a download is cancelled and no file is saved', async () => {
  await client.send('Browser.setDownloadBehavior', { behavior: 'deny', eventsEnabled: true });
  await visit(`${pages.a}/download-page`);
  const cancelEvent = client.next(
    'the download to be cancelled',
    ({ method, params }) => method === 'Browser.downloadProgress' && params?.state === 'canceled',
  );
  await client.evaluate('document.getElementById("get").click()', page);
  await cancelEvent;
  assert.deepEqual(existsSync(DOWNLOADS_FOLDER) ? readdirSync(DOWNLOADS_FOLDER) : [], []);
  await client.send('Browser.setDownloadBehavior', { behavior: 'default', eventsEnabled: true });
});

const otherFolder = join(tmpdir(), `berth-elsewhere-${process.pid}`);
mkdirSync(otherFolder);
after(() => rmSync(otherFolder, { recursive: true }));

for (const [what, behavior] of [
  ['specifies a folder on its own machine', { behavior: 'allow', downloadPath: otherFolder, eventsEnabled: true }],
  [
    'specifies a folder and requests GUIDs',
    { behavior: 'allowAndName', downloadPath: '/nowhere/at/all', eventsEnabled: true },
  ],
  ['requests the default', { behavior: 'default', eventsEnabled: true }],
] as const)
  test(`a download is saved in the session's folder for a client that ${what}`, async () => {
    await client.send('Browser.setDownloadBehavior', behavior);
    const { params } = await clickDownload();
    const path = await assertDownloaded();
    assert.equal(basename(path), params?.guid);
    const beginEvent = await client.waitForEvent(
      'Browser.downloadWillBegin',
      event => event.params?.guid === params?.guid,
    );
    assert.equal(beginEvent.params?.suggestedFilename, FILE_NAME);
    assert.deepEqual(readdirSync(otherFolder), []);
    rmSync(path);
  });

test('a download is saved for a client without download settings after a client with download settings has disconnected', async () => {
  const otherClient = await CdpClient.connect(session.connectUrl);
  await otherClient.send('Browser.setDownloadBehavior', {
    behavior: 'allow',
    downloadPath: otherFolder,
    eventsEnabled: true,
  });
  await otherClient.close();
  await visit(`${pages.a}/download-page`);
  await client.evaluate('document.getElementById("get").click()', page);
  rmSync(await assertDownloaded());
});

test('a download in Playwright has the suggested name and all its bytes', async () => {
  const browser = await chromium.connectOverCDP(session.connectUrl);
  const own = await (await browser.newContext()).newPage();
  await own.goto(`${pages.a}/download-page`);
  const [download] = await Promise.all([own.waitForEvent('download'), own.click('#get')]);
  assert.equal(download.suggestedFilename(), FILE_NAME);
  const path = await assertDownloaded();
  const checksum = (bytes: string | Buffer): string => createHash('sha256').update(bytes).digest('hex');
  assert.equal(checksum(readFileSync(path)), checksum(FILE_TEXT));
  await browser.close();
  rmSync(path);
});

test('only files of the session can be attached to a file input or dropped on a page', async () => {
  await client.send('Browser.setDownloadBehavior', { behavior: 'default', eventsEnabled: true });
  await clickDownload();
  const ownPath = `/session/downloads/${basename(await assertDownloaded())}`;
  await visit(`${pages.a}/files`);
  const { root } = await client.send('DOM.getDocument', {}, page);
  const { nodeId } = await client.send('DOM.querySelector', { nodeId: Object(root).nodeId, selector: '#input' }, page);
  for (const foreignPath of [
    '/etc/ssl/certs/ca-certificates.crt',
    '/session/profile/Local State',
    `/session/downloads/../profile/Local State`,
    'Local State',
    '/proc/self/environ',
  ]) {
    await assertRefused('DOM.setFileInputFiles', { files: [ownPath, foreignPath], nodeId }, page);
    const data = { items: [], files: [foreignPath], dragOperationsMask: 1 };
    await assertRefused('Input.dispatchDragEvent', { type: 'drop', x: 100, y: 100, data }, page);
  }
  assert.equal(await client.evaluate('document.getElementById("input").files.length', page), 0);
  await client.send('DOM.setFileInputFiles', { files: [ownPath], nodeId }, page);
  assert.equal(await client.evaluate('document.getElementById("input").files[0].text()', page), FILE_TEXT);
  const data = { items: [], files: [ownPath], dragOperationsMask: 1 };
  for (const type of ['dragEnter', 'dragOver', 'drop'])
    await client.send('Input.dispatchDragEvent', { type, x: 100, y: 100, data }, page);
  const dropped = await eventually('the dropped file', () => client.evaluate('globalThis.dropped', page));
  assert.deepEqual(dropped, [FILE_TEXT]);
});

// ---- connecting ----------------------------------------------------------------------------------------------------------

test('/json/version of a session responds like a browser, with and without a trailing slash', async () => {
  for (const path of ['/json/version', '/json/version/']) {
    const { pathname, search } = new URL(session.connectUrl);
    const { status, body } = await server.api<Record<string, string>>('GET', `${pathname}${path}${search}`, {
      key: null,
    });
    assert.equal(status, 200);
    assert.match(String(body.Browser), /^(Headless)?Chrome\//);
    assert.equal(body['Protocol-Version'], '1.3');
    assert.equal(body.webSocketDebuggerUrl, session.connectUrl);
  }
});

for (const [what, change, status, code] of [
  ['without a key', (url: string) => url.replace(/\?.*/, ''), 401, 'missing_credentials'],
  [
    'with a changed key',
    (url: string) => `${url.slice(0, -1)}${url.endsWith('A') ? 'B' : 'A'}`,
    401,
    'invalid_credentials',
  ],
  ['with an empty key', (url: string) => url.replace(/=.*/, '='), 401, 'invalid_credentials'],
  ['with an invalid session id', (url: string) => url.replace(/sessions\/[^/]+/, 'sessions/me'), 404, 'not_found'],
  ['with an unknown path', (url: string) => url.replace('/connect', '/disconnect'), 404, 'route_not_found'],
] as const)
  test(`a connection to an address ${what} is refused before the WebSocket upgrade, with an error body`, async () => {
    const refusal = await expectUpgradeRefusal(change(session.connectUrl));
    assert.equal(refusal.status, status);
    assert.equal(refusal.body.code, code);
    assert.equal(refusal.body.statusCode, status);
    assert.ok(refusal.body.requestId, 'with a request id');
    assert.ok(refusal.body.message.length > 20);
  });

// ---- several clients ------------------------------------------------------------------------------------------------

test('the overrides of a client are restored when another client that set different values disconnects', async () => {
  const metricsForWidth = (width: number) => ({ width, height: 400, deviceScaleFactor: 1, mobile: false });
  const read = (): Promise<unknown> => client.evaluate("`${innerWidth} ${matchMedia('print').matches}`", page);
  await client.send('Emulation.setDeviceMetricsOverride', metricsForWidth(640), page);
  await client.send('Emulation.setEmulatedMedia', { media: 'print' }, page);
  await eventually('the overrides of the first client', read, found => found === '640 true');
  const otherClient = await CdpClient.connect(session.connectUrl);
  const otherPage = await otherClient.attachToPage();
  await otherClient.send('Emulation.setDeviceMetricsOverride', metricsForWidth(300), otherPage);
  await otherClient.send('Emulation.setEmulatedMedia', { media: 'screen' }, otherPage);
  await eventually('the overrides of the second client', read, found => found === '300 false');
  await otherClient.close();
  await eventually('the overrides of the first client', read, found => found === '640 true');
  await client.send('Emulation.clearDeviceMetricsOverride', {}, page);
  await client.send('Emulation.setEmulatedMedia', { media: '' }, page);
});

test('ended sessions leave no process, file or unfinished database row behind', async () => {
  await client.close();
  await server.release(session.id);
  await server.waitUntilSettled();
});
