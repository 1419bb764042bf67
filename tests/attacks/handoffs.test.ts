// What a person does in a masked hand-off stays hidden: from the agent on every connection, from other viewers, and
// from the recording, the log and the HAR file. Also tests who can use a hand-off: only one browser can use its link,
// and only one person can have its lease.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { zstdDecompressSync } from 'node:zlib';
import { chromium, type Page } from 'playwright-core';
import { AGENT_KEY_SCOPES } from '../../contract/agent-keys.ts';
import type { ErrorBody } from '../../contract/common.ts';
import type { ConsumerDevices } from '../../contract/consumer-data.ts';
import type { ConsumerHandoffPage } from '../../contract/consumer-handoffs.ts';
import type { ConsumerTokens } from '../../contract/consumers.ts';
import type { ClaimedHandoff, Handoff } from '../../contract/handoffs.ts';
import type { DebugUrls } from '../../contract/live.ts';
import { CdpClient, type CdpMessage } from '../harness/cdp.ts';
import { ConsumerFixture } from '../harness/consumers.ts';
import { filesUnder } from '../harness/files-under.ts';
import { claimHandoff, handoffsPath, readHandoff, requestHandoff, sendWithLease } from '../harness/handoffs.ts';
import { liftLimits } from '../harness/limits.ts';
import { LiveViewer } from '../harness/live-viewer.ts';
import { agentPath, invoke, keyWith } from '../harness/operations.ts';
import { databaseText, queryRows } from '../harness/other-person.ts';
import { startOtlpReceiver } from '../harness/otlp-receiver.ts';
import { openPages } from '../harness/pages.ts';
import { Person } from '../harness/person.ts';
import { fetchFilm, filesOf, requestFiles, waitForPlaylist } from '../harness/recordings.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const SECRET = 'Zq8!plötzlich "laut" & <weit>';
const base64 = (text: string): string => Buffer.from(text).toString('base64');
/** Every form in which the page repeats the typed text, without the ends that depend on the surrounding text. */
const FORMS: readonly string[] = [
  ...[SECRET, encodeURIComponent(SECRET), new URLSearchParams({ '': SECRET }).toString().slice(1)],
  ...[JSON.stringify(SECRET).slice(1, -1), JSON.stringify(JSON.stringify(SECRET)).slice(3, -3)],
  SECRET.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;'),
  ...['', 'u', 'us'].map(before => base64(before + SECRET).slice(4, -4)),
  ...[Buffer.from(SECRET).toString('hex'), Buffer.from(SECRET).toString('latin1')],
];
const formIn = (text: string): string | undefined => FORMS.find(form => text.includes(form));
/** Removes addresses of pages. An agent may read these addresses (docs/decisions/0063-handoffs.md). */
const withoutAddresses = (text: string): string => text.replaceAll(/(?:typed|code)=[^"&#\\\s]*|#typed[^"\\\s]*/g, '');

/** The bodies of the forms that were submitted. */
const posted: string[] = [];
/** As soon as a text is typed, the page turns magenta and repeats the text in as many places as possible. */
const pages = await openPages({
  '/otp': `<!doctype html><meta charset="utf-8"><title>Code</title><style>body{margin:0}input{position:absolute;left:20px;top:20px;width:300px;height:40px}</style>
    <form method="post" action="/done"><input id="code" name="code" autocomplete="off"></form><p id="shown" style="margin-top:100px"></p>
    <script>
      const b64 = text => btoa(String.fromCharCode(...new TextEncoder().encode(text)));
      code.oninput = () => {
        const said = code.value, encoded = encodeURIComponent(said);
        document.body.style.background = '#f0f';
        shown.textContent = 'you typed ' + said;
        document.title = said;
        console.log('typed ' + said, { said }, b64(said)); console.error(said);
        setTimeout(() => { throw new Error(said) });
        globalThis.told?.(said);
        history.pushState({ said }, '', '/otp?typed=' + encoded + '#typed' + encoded);
        document.cookie = 'said=' + encoded;
        fetch('/beacon?typed=' + encoded);
        fetch('/beacon', { method: 'POST', headers: { authorization: 'Basic ' + b64('us' + said), 'x-said': b64(said) }, body: JSON.stringify({ said }) });
        new WebSocket('ws://' + location.host + '/ws?typed=' + encoded).onerror = () => {};
      };
    </script>`,
  '/done': (request, response) => {
    if (request.method === 'POST') void text(request).then(body => posted.push(body));
    response.setHeader('content-type', 'text/html; charset=utf-8');
    response.end('<!doctype html><title>Done</title><style>body{background:#fff}</style><p id="done">Thank you</p>');
  },
  '/ask': `<!doctype html><meta charset="utf-8"><title>Ask</title><style>body{margin:0}button,select{position:absolute;left:0;top:0;width:300px;height:200px}select{top:220px}</style>
    <button onclick="globalThis.answer = prompt('Is ' + typed + ' right?', typed)">ask</button>
    <select><option id="option"></select>
    <script>option.textContent = globalThis.typed = decodeURIComponent('${encodeURIComponent(SECRET)}')</script>`,
  '/beacon': (request, response) =>
    void response.writeHead(200, { 'x-echo': String(request.headers['x-said'] ?? '') }).end('ok'),
});
const receiver = await startOtlpReceiver();
const server = await startServer({
  pages,
  env: { BERTH_LOG_LEVEL: 'debug', OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url },
});
await liftLimits(server);
const person = await Person.owner(server);
const grants = [{ operationId: '*', effect: 'read' }, { operationId: 'browser.steps' }];
const { key } = await keyWith(server, { scopes: [...AGENT_KEY_SCOPES], grants });

const lab = await ConsumerFixture.of(server, person);
await lab.configure({ origins: [] });
const nameOf = ({ consumer }: ConsumerTokens) => ({ providerId: consumer.providerId, subject: consumer.subject });

function countMagentaPixels(picture: Buffer, format: 'mjpeg' | 'png' | 'mp4'): number {
  const input = [...{ mjpeg: ['-f', 'mjpeg'], png: ['-f', 'png_pipe'], mp4: [] }[format], '-i', 'pipe:0'];
  const options = ['-v', 'error', ...input, '-vf', 'scale=160:-2', '-pix_fmt', 'rgb24', '-f', 'rawvideo', 'pipe:1'];
  const { stdout } = spawnSync('ffmpeg', options, { input: picture, maxBuffer: 256 * 1024 ** 2 });
  assert.ok(stdout.length > 0, 'the picture was decoded');
  let pixels = 0;
  for (let at = 0; at + 2 < stdout.length; at += 3)
    if ((stdout[at] ?? 0) > 150 && (stdout[at + 1] ?? 255) < 90 && (stdout[at + 2] ?? 0) > 150) pixels++;
  return pixels;
}

/** The number of magenta pixels per frame, cached because the same frame is checked many times. */
const counted = new WeakMap<Buffer, number>();

function sees({ newestFrame: newest }: LiveViewer): boolean {
  if (newest === undefined) return false;
  const pixels = counted.get(newest.jpeg) ?? countMagentaPixels(newest.jpeg, 'mjpeg');
  counted.set(newest.jpeg, pixels);
  return pixels > 500;
}

async function openOtpPage(settings: object = {}) {
  const { id, connectUrl } = await server.createSession({ keepAlive: true, ...settings }, key);
  const browser = await chromium.connectOverCDP(connectUrl);
  const page: Page = browser.contexts()[0]?.pages()[0] ?? assert.fail();
  await page.goto(`${pages.url}/otp`);
  return { id, connectUrl, browser, page };
}

/**
 * Access to a session by the service itself: through an operation, and through tools over MCP. Each function returns
 * the response.
 */
const runSteps = async (sessionId: string, steps: readonly object[]): Promise<string> => {
  const headers = { 'idempotency-key': crypto.randomUUID(), prefer: 'wait=55' };
  const input = { sessionId, steps, timeoutMs: 8_000 };
  return (await invoke(server, key, 'browser.steps', input, { headers })).text;
};
const callTool = async (sessionId: string, name: string, more: object = {}): Promise<string> => {
  const params = { name, arguments: { sessionId, ...more } };
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
  const headers = { accept: 'application/json, text/event-stream' };
  return (await server.api('POST', agentPath(server, 'mcp'), { key, body, headers })).text;
};
const pictureIn = async (resultText: string): Promise<Buffer | undefined> => {
  const [, inline] = /"type":"image","data":"([^"]+)"/.exec(resultText) ?? [];
  if (inline) return Buffer.from(inline, 'base64');
  const [, link] = /"downloadUrl":"([^"]+)"/.exec(resultText) ?? [];
  return link === undefined ? undefined : Buffer.from(await (await fetch(link)).arrayBuffer());
};

const debugUrl = async (id: string, query = ''): Promise<string> =>
  (await server.api<DebugUrls>('GET', `/v1/browsers/sessions/${id}/debug${query}`, { key })).body.debuggerUrl;

/** Connects to DevTools on the first page. */
async function devtoolsOf(id: string): Promise<CdpClient> {
  const { pages: [page] = [] } = (await server.api<DebugUrls>('GET', `/v1/browsers/sessions/${id}/debug`, { key }))
    .body;
  const url = new URL(page?.devtoolsUrl ?? assert.fail('the page has no DevTools address'));
  url.protocol = 'ws:';
  url.pathname += '/socket';
  return CdpClient.connect(url.href);
}

async function typeSecret(viewer: LiveViewer): Promise<void> {
  await eventually('control of the person', () => viewer.last('control')?.who === 'you' && viewer.frameCount > 0);
  viewer.click(100, 40);
  viewer.sendInput({ type: 'text', text: SECRET });
  await eventually('the person to see what they typed', () => sees(viewer));
}

const press = (viewer: LiveViewer, key: string): void => {
  const common = { key, code: key, keyCode: 13, text: '\r', location: 0, repeats: false, modifiers: 0, mac: false };
  viewer.sendInput({ type: 'key', action: 'down', ...common });
  viewer.sendInput({ type: 'key', action: 'up', ...common });
};

/** Whether a promise is still pending after an unrelated command was answered. */
async function isHeld(work: Promise<unknown>, other: () => Promise<unknown>): Promise<boolean> {
  let isSettled = false;
  const settle = (): void => {
    isSettled = true;
  };
  work.then(settle, settle);
  await other();
  return !isSettled;
}

/** Texts that must not contain the typed text, each with its source. */
const found: Array<{ readonly where: string; readonly text: string }> = [];
const keep = (where: string, text: string): void => void found.push({ where, text });

const assertNowhere = (): void => {
  const leaks = found.flatMap(({ where, text }) => {
    const form = formIn(text);
    return form === undefined ? [] : [`${where}: ${text.slice(Math.max(0, text.indexOf(form) - 200)).slice(0, 400)}`];
  });
  assert.deepEqual(leaks, []);
};

test('text typed in a masked hand-off does not appear in any response, event, picture or file', async () => {
  const { id, connectUrl, browser, page } = await openOtpPage();
  await page.exposeFunction('told', (text: string) => keep('a binding', text));
  await page.reload();
  page.on('console', message => keep('the console', message.text()));
  page.on('pageerror', error => keep('an error of the page', error.message));
  page.on('request', request => keep('a body', `${request.postData()} ${JSON.stringify(request.headers())}`));
  const second = await CdpClient.connect(connectUrl);
  second.onMessage(message => keep('a message of the second connection', withoutAddresses(JSON.stringify(message))));
  const { targetInfos } = await second.send('Target.getTargets');
  const targets = targetInfos as ReadonlyArray<{ type: string; targetId: string }>;
  const { targetId } = targets.find(({ type }) => type === 'page') ?? assert.fail();
  const sessionId = String((await second.send('Target.attachToTarget', { targetId, flatten: true })).sessionId);
  await second.send('Target.setDiscoverTargets', { discover: true });
  for (const domain of ['Runtime', 'Network', 'DOM', 'Log', 'Page', 'CSS', 'Overlay', 'Accessibility', 'Console'])
    await second.send(`${domain}.enable`, {}, sessionId);
  await second.send('DOM.getDocument', { depth: -1 }, sessionId);
  const devtools = await devtoolsOf(id);
  devtools.onMessage(message => keep('a message of DevTools', withoutAddresses(JSON.stringify(message))));
  for (const domain of ['Runtime', 'Network', 'DOM', 'Log', 'Page']) await devtools.send(`${domain}.enable`);
  await devtools.send('DOM.getDocument', { depth: -1 });

  assert.match(await callTool(id, 'browser_snapshot'), /Title: Code/, 'the service is connected before the claim');
  const { id: handoff } = await requestHandoff(server, key, id, { leaseSeconds: 900 });
  const claimed = await claimHandoff(server, person, handoff);
  const viewer = await LiveViewer.open(claimed.liveViewUrl);
  const other = await LiveViewer.open(await debugUrl(id));
  await typeSecret(viewer);

  const version = () => second.send('Browser.getVersion');
  const reads = [
    page.screenshot(),
    page.content(),
    page.evaluate('code.value'),
    second.send('Runtime.evaluate', { expression: 'code.value' }, sessionId),
    second.send('DOM.getDocument', { depth: -1 }, sessionId),
    second.send('DOMSnapshot.captureSnapshot', { computedStyles: [] }, sessionId),
    second.send('Accessibility.getFullAXTree', {}, sessionId),
    second.send('Page.captureScreenshot', {}, sessionId),
    second.send('Page.addScriptToEvaluateOnNewDocument', { source: 'alert(1)' }, sessionId),
    second.send('Runtime.addBinding', { name: 'steal' }, sessionId),
    second.send('Target.createTarget', { url: 'about:blank' }),
    devtools.send('Runtime.evaluate', { expression: 'code.value' }),
  ];
  const calls = [
    callTool(id, 'browser_snapshot'),
    callTool(id, 'browser_evaluate', { function: '() => code.value' }),
    callTool(id, 'browser_take_screenshot'),
    runSteps(id, [{ do: 'fill', selector: '#code', value: 'of the agent' }, { do: 'screenshot' }, { do: 'content' }]),
  ];
  for (const [number, read] of [...reads, ...calls].entries()) assert.ok(await isHeld(read, version), `read ${number}`);
  keep('the targets', withoutAddresses(JSON.stringify(await second.send('Target.getTargets'))));
  const picture = await fetch(`${server.url}/v1/browsers/sessions/${id}/picture`, {
    headers: { authorization: `Bearer ${key}` },
  });
  assert.equal(picture.status, 200);
  assert.equal(
    countMagentaPixels(Buffer.from(await picture.arrayBuffer()), 'mjpeg'),
    0,
    'the picture that lists of sessions show is black',
  );
  assert.ok(other.frameCount > 0 && !sees(other), 'another viewer sees black');
  keep('what another viewer is told', withoutAddresses(JSON.stringify(other.messages)));
  const debug = await server.api('GET', `/v1/browsers/sessions/${id}/debug`, { key });
  keep('the addresses of the live view', withoutAddresses(debug.text));
  for (const path of ['', '/logs', '/logs?format=har', '/events'])
    keep(`meanwhile ${path}`, (await server.api('GET', `/v1/browsers/sessions/${id}${path}`, { key })).text);
  await keepTables('meanwhile');
  press(viewer, 'Enter');
  await eventually('the form to be sent', () => pages.hits('/done') === 1);
  await eventually('the next page to be shown', () => viewer.newestFrame !== undefined && !sees(viewer));
  await sendWithLease(server, claimed, 'complete', { outcome: 'completed' });
  await Promise.allSettled(reads.map(async read => keep('a read that waited', JSON.stringify(await read) ?? '')));
  await page.waitForSelector('#done');
  for (const [number, result] of (await Promise.all(calls)).entries()) {
    keep(`call ${number}`, result);
    const picture = await pictureIn(result);
    if (picture) assert.equal(countMagentaPixels(picture, 'png'), 0, `call ${number}`);
  }
  assert.deepEqual(
    posted,
    [new URLSearchParams({ code: SECRET }).toString()],
    'no step of the agent interfered with the input of the person',
  );

  const again = await invoke(server, key, 'browser.content', { sessionId: id });
  assert.equal(again.body.status, 'succeeded', `afterwards operations work again: ${again.text}`);
  await other.takeControl();
  other.click(300, 300);
  assert.equal(sees(other), false, 'a viewer who takes control later does not see an earlier picture');
  await eventually(
    'the page to be shown to others again',
    () => other.newestFrame !== undefined && brightness(other.newestFrame.jpeg) > 200,
  );
  for (const one of [second, devtools, viewer, other, browser]) await one.close();
  await server.release(id);
  const film = await fetchFilm(await waitForPlaylist(server, id, '0', text => text.includes('#EXT-X-ENDLIST')));
  assert.equal(countMagentaPixels(film, 'mp4'), 0, 'no frame of the recording shows the typed text');
  await requestFiles(server, id);
  const [file] = await eventually(
    'the MP4 file',
    () => filesOf(server, id),
    all => all.some(({ downloadUrl }) => downloadUrl !== undefined),
  );
  const mp4 = Buffer.from(await (await fetch(file?.downloadUrl ?? '')).arrayBuffer());
  assert.equal(countMagentaPixels(mp4, 'mp4'), 0, 'no frame of the MP4 file shows the typed text');
  for (const path of ['', '/logs', '/logs?format=har', '/events', '/downloads'])
    keep(`afterwards ${path}`, (await server.api('GET', `/v1/browsers/sessions/${id}${path}`, { key })).text);
  keep('the hand-off', JSON.stringify(await readHandoff(server, key, handoff)));
  const invocations = await server.api('GET', agentPath(server, 'invocations'), { key });
  keep('the invocations', invocations.text);
  await receiver.span('cdp.connection');
  keep(
    'the traces',
    JSON.stringify(receiver.spans, (_, it) => (typeof it === 'bigint' ? String(it) : it)),
  );
  keep('the log of the server', server.log().join('\n'));
  await keepTables('afterwards');
  for (const path of filesUnder(server.dataDir))
    if (existsSync(path) && statSync(path).isFile()) keep(path, readFileSync(path).toString('latin1'));
  assertNowhere();
  assert.ok(
    found.some(({ where, text }) => where === 'afterwards /logs' && text.includes('/beacon')),
    'the search finds a text that the log contains',
  );
});

/** Adds every table of the database to the texts that are searched, with the log chunks in uncompressed form. */
async function keepTables(when: string): Promise<void> {
  const named = "select quote_ident(table_name) as name from information_schema.tables where table_schema = 'public'";
  const names = (await queryRows(server, named)).map(row => String(Object(row).name));
  for (const name of names) keep(`${when}: table ${name}`, await databaseText(server, [name]));
  const chunks = await queryRows(server, 'select lines from log_chunks');
  for (const chunk of chunks) keep(`${when}: a chunk of a log`, zstdDecompressSync(Object(chunk).lines).toString());
  assert.ok(chunks.length > 0);
}

function brightness(jpeg: Buffer): number {
  const options = [
    '-v',
    'error',
    '-f',
    'mjpeg',
    '-i',
    'pipe:0',
    '-vf',
    'scale=1:1',
    '-pix_fmt',
    'gray',
    '-f',
    'rawvideo',
    'pipe:1',
  ];
  return spawnSync('ffmpeg', options, { input: jpeg }).stdout[0] ?? 0;
}

test('request bodies of a masked hand-off are not returned to a client that observed the requests', async () => {
  const { id, connectUrl, browser } = await openOtpPage();
  const client = await CdpClient.connect(connectUrl);
  const channel = await client.attachToPage();
  await client.send('Network.enable', {}, channel);
  const claimed = await claimHandoff(server, person, (await requestHandoff(server, key, id)).id);
  const viewer = await LiveViewer.open(claimed.liveViewUrl);
  await typeSecret(viewer);
  const finished = () => client.events.filter(({ method }) => method === 'Network.loadingFinished').length;
  await eventually('the requests of the page', () => finished() >= 2);
  await sendWithLease(server, claimed, 'complete', { outcome: 'completed' });
  const ids = client.events.flatMap(({ method, params }) =>
    method === 'Network.requestWillBeSent' ? [String(params?.requestId)] : [],
  );
  assert.ok(ids.length >= 2);
  const responses: CdpMessage[] = [];
  for (const requestId of ids)
    for (const method of ['Network.getRequestPostData', 'Network.getResponseBody'])
      responses.push(await client.ask(method, { requestId }, channel));
  assert.equal(formIn(JSON.stringify(responses)), undefined);
  for (const { error } of responses) assert.match(error?.message ?? '', /a masked hand-off/);
  await viewer.close();
  await client.close();
  await browser.close();
  await server.release(id);
});

test('the log omits the query of the URL of a navigation that was refused in a masked hand-off', async () => {
  const created = await server.createSession({ browserSettings: { allowedDomains: ['a.test'] }, keepAlive: true }, key);
  const browser = await chromium.connectOverCDP(created.connectUrl);
  const page: Page = browser.contexts()[0]?.pages()[0] ?? assert.fail();
  await page.goto(`${pages.a}/otp`);
  await page.evaluate(`code.oninput = () => { location = '${pages.b}/done?answer=' + encodeURIComponent(code.value) }`);
  const claimed = await claimHandoff(server, person, (await requestHandoff(server, key, created.id)).id);
  const viewer = await LiveViewer.open(claimed.liveViewUrl);
  await eventually('control of the person', () => viewer.last('control')?.who === 'you' && viewer.frameCount > 0);
  viewer.click(100, 40);
  viewer.sendInput({ type: 'text', text: SECRET });
  const path = `/v1/browsers/sessions/${created.id}/logs`;
  const readLog = async () => (await server.api('GET', path, { key })).text;
  const log = await eventually('the refusal', readLog, text => text.includes('Page.navigationBlocked'));
  assert.ok(log.includes(`${pages.b}/done`), log);
  assert.equal(formIn(log), undefined);
  await sendWithLease(server, claimed, 'complete', { outcome: 'completed' });
  await viewer.close();
  await browser.close();
  await server.release(created.id);
});

test('messages that a page logged in a masked hand-off are not shown after the hand-off, on a new connection, by a tool or in the log after a restart', async () => {
  const { id, connectUrl, browser } = await openOtpPage();
  const claimed = await claimHandoff(server, person, (await requestHandoff(server, key, id)).id);
  const viewer = await LiveViewer.open(claimed.liveViewUrl);
  await typeSecret(viewer);
  await sendWithLease(server, claimed, 'complete', { outcome: 'completed' });
  await viewer.close();
  await browser.close();
  await server.restart();
  const client = await CdpClient.connect(connectUrl);
  const channel = await client.attachToPage();
  for (const domain of ['Runtime', 'Log', 'Console']) await client.send(`${domain}.enable`, {}, channel);
  // Earlier messages are delivered before this one.
  await client.evaluate(`console.log('afterwards')`, channel);
  const isAfterwards = ({ params }: CdpMessage): boolean => JSON.stringify(params).includes('afterwards');
  await client.event('Runtime.consoleAPICalled', isAfterwards);
  const isLogged = ({ method = '' }: CdpMessage): boolean => /^(Runtime\.(console|exception)|Log|Console)/.test(method);
  const readLog = async () => (await server.api('GET', `/v1/browsers/sessions/${id}/logs`, { key })).text;
  const told = {
    'a new connection': JSON.stringify(client.events.filter(isLogged)),
    // Omits the end of the result, which contains the page's address and title.
    'a tool': (await callTool(id, 'browser_console_messages')).split('Page: ', 1)[0] ?? '',
    'the log': await eventually('the log', readLog, text => text.includes('afterwards')),
  };
  const leaks = Object.entries(told).filter(([, text]) => formIn(withoutAddresses(text)) !== undefined);
  assert.deepEqual(leaks, []);
  assert.match(told['a tool'], /afterwards/);
  await client.close();
  await server.release(id);
});

test('in a session without recording, other viewers cannot see the text that the person types, and an intercepted request cannot be redirected', async () => {
  const { id, browser, page } = await openOtpPage({ browserSettings: { recordSession: false } });
  const bodies: Array<string | null> = [];
  await page.route('**/beacon*', async route => {
    bodies.push(route.request().postData());
    await route.continue({ url: `${pages.url}/stolen` });
  });
  const { id: handoff } = await requestHandoff(server, key, id);
  const claimed = await claimHandoff(server, person, handoff);
  const viewer = await LiveViewer.open(claimed.liveViewUrl);
  const other = await LiveViewer.open(await debugUrl(id, '?readOnly=true'));
  await typeSecret(viewer);
  await eventually('pictures for the other viewer', () => other.frameCount > 0);
  assert.equal(sees(other), false);
  // The service connects only now, during the hand-off.
  const calls = [
    callTool(id, 'browser_evaluate', { function: '() => code.value' }),
    runSteps(id, [{ do: 'screenshot' }, { do: 'content', as: 'text' }]),
  ];
  await eventually('the requests of the page to continue', () => pages.hits('/beacon') >= 2);
  assert.equal(pages.hits('/stolen'), 0);
  assert.deepEqual(
    bodies.filter(body => body?.includes(SECRET)),
    [],
  );
  const version = async () => (await fetch(`${server.url}/healthz`)).text();
  for (const [number, call] of calls.entries()) assert.ok(await isHeld(call, version), `call ${number}`);
  await sendWithLease(server, claimed, 'complete', { outcome: 'failed' });
  await Promise.all(calls);
  for (const one of [viewer, other]) await one.close();
  await browser.close();
  await server.release(id);
});

test('while a person has control, input of the agent has no effect, through any connection, call or earlier live view', async () => {
  const { id, connectUrl, browser, page } = await openOtpPage();
  const hits = pages.hits('/done');
  const earlier = await LiveViewer.open(await debugUrl(id));
  await earlier.takeControl();
  const staleFence = earlier.fence;
  await earlier.giveControl();
  const second = await CdpClient.connect(connectUrl);
  const channel = await second.attachToPage();
  // This hand-off is not masked, so that the agent can read the effect.
  const { id: handoff } = await requestHandoff(server, key, id, { record: 'keep' });
  const claimed = await claimHandoff(server, person, handoff);
  const viewer = await LiveViewer.open(claimed.liveViewUrl);
  await eventually('control of the person', () => viewer.last('control')?.who === 'you' && viewer.frameCount > 0);
  viewer.click(100, 40);
  viewer.sendInput({ type: 'text', text: 'person' });
  const value = () => second.evaluate('code.value', channel);
  await eventually('what the person typed', async () => (await value()) === 'person');
  const later = await LiveViewer.open(await debugUrl(id));
  await eventually('the page of the viewer', () => later.page !== '');
  for (const other of [earlier, later]) {
    other.say({ type: 'take' });
    await eventually('the refusal of control', () => other.last('refused') !== undefined);
    other.sendInput({ type: 'text', text: 'viewer' });
    other.sendInput({ type: 'text', text: 'viewer', fence: claimed.fence });
    other.sendInput({ type: 'text', text: 'viewer', fence: staleFence });
    other.sendInput({ type: 'navigate', url: `${pages.url}/done` });
  }
  const inputs = [
    page.keyboard.type('first'),
    second.send('Input.insertText', { text: 'second' }, channel),
    second.send('Page.navigate', { url: `${pages.url}/done` }, channel),
    second.send('Runtime.evaluate', { expression: 'code.value = 1', userGesture: true }, channel),
    callTool(id, 'browser_navigate', { url: `${pages.url}/done` }),
    runSteps(id, [{ do: 'fill', selector: '#code', value: 'steps' }]),
  ];
  viewer.sendInput({ type: 'text', text: ' alone' });
  const typed = () => eventually('what the person typed', async () => (await value()) === 'person alone');
  for (const [number, input] of inputs.entries()) assert.ok(await isHeld(input, typed), `input ${number}`);
  assert.equal(pages.hits('/done'), hits, 'nobody but the person opens a page');
  await second.close();
  await browser.close();
  await sendWithLease(server, claimed, 'complete', { outcome: 'completed' });
  await Promise.allSettled(inputs);
  for (const one of [earlier, later, viewer]) await one.close();
  await server.release(id);
});

test('a dialog left open in a masked hand-off is shown to the agent and others only afterwards, without its text', async () => {
  const { id, connectUrl, browser, page } = await openOtpPage();
  await page.goto(`${pages.url}/ask`);
  const asked: string[] = [];
  const client = await CdpClient.connect(connectUrl);
  const channel = await client.attachToPage();
  await client.send('Page.enable', {}, channel);
  const dialogs = () => client.events.filter(({ method }) => method?.startsWith('Page.javascriptDialog'));
  const claims = async () => {
    const claimed = await claimHandoff(server, person, (await requestHandoff(server, key, id)).id);
    const viewer = await LiveViewer.open(claimed.liveViewUrl);
    // A page with an open dialog sends no frames, so the test waits for the page instead of a frame.
    await eventually('control of the person', () => viewer.last('control')?.who === 'you' && viewer.page !== '');
    return { claimed, viewer };
  };
  const waitForDialog = (viewer: LiveViewer) =>
    eventually('the dialog', () => viewer.last('page')?.dialog?.message.includes(SECRET));

  const readOnlyViewer = await LiveViewer.open(await debugUrl(id, '?readOnly=true'));
  const other = await LiveViewer.open(await debugUrl(id));
  const assertNotShown = (): void => {
    for (const { page, messages } of [readOnlyViewer, other]) {
      assert.ok(page !== '');
      assert.equal(formIn(JSON.stringify(messages)), undefined, 'another viewer gets no message about the dialog');
    }
  };

  // A dialog that the person answers is never reported to the agent, and neither is a list that the person opens.
  const first = await claims();
  first.viewer.click(100, 300);
  await eventually('the list', () => first.viewer.last('page')?.select?.options[0]?.label === SECRET);
  first.viewer.sendInput({ type: 'choose', options: [] });
  await eventually('the list to be closed', () => first.viewer.last('page')?.select === null);
  first.viewer.click(100, 100);
  await waitForDialog(first.viewer);
  assertNotShown();
  first.viewer.sendInput({ type: 'dialog', accept: true, text: SECRET });
  await eventually('the dialog to be closed', () => first.viewer.last('page')?.dialog === null);
  await sendWithLease(server, first.claimed, 'complete', { outcome: 'completed' });
  await client.event('Berth.handoffComplete');
  await client.send('Page.getFrameTree', {}, channel);
  assert.deepEqual(dialogs(), []);
  await first.viewer.close();

  // A dialog that the person leaves open is reported when the hand-off is completed. The agent answers it, and its page
  // continues.
  page.on('dialog', dialog => {
    asked.push(dialog.type(), dialog.message(), dialog.defaultValue());
    void dialog.accept('yes');
  });
  const second = await claims();
  second.viewer.click(100, 100);
  await waitForDialog(second.viewer);
  await client.send('Target.getTargets');
  assert.deepEqual(dialogs(), []);
  await sendWithLease(server, second.claimed, 'complete', { outcome: 'completed' });
  const told = await client.event('Page.javascriptDialogOpening');
  assert.equal(told.sessionId, channel);
  const { type, message, defaultPrompt, url } = Object(told.params);
  assert.deepEqual([type, message, defaultPrompt, url], ['prompt', '', '', `${pages.url}/ask`]);
  assert.equal(await page.evaluate('answer'), 'yes');
  assert.deepEqual(asked, ['prompt', '', '']);
  await second.viewer.close();

  // A dialog that was open before the hand-off is reported as closed, without the person's answer.
  page.removeAllListeners('dialog');
  page.on('dialog', () => {});
  await eventually('the end of the dialog', () => dialogs().length === 2);
  const before = dialogs().length;
  void page.evaluate("void setTimeout(() => document.querySelector('button').click())");
  await eventually('the dialog', () => dialogs().length > before);
  const third = await claims();
  third.viewer.sendInput({ type: 'dialog', accept: true, text: SECRET });
  await eventually('the end of the dialog', () => dialogs().length > before + 1);
  const closed = dialogs().at(-1);
  assert.deepEqual([closed?.method, closed?.params?.userInput], ['Page.javascriptDialogClosed', '']);
  await sendWithLease(server, third.claimed, 'complete', { outcome: 'completed' });
  await third.viewer.close();

  // A dialog that the person leaves open is shown to the next viewer who takes control, without its text.
  const fourth = await claims();
  fourth.viewer.click(100, 100);
  await waitForDialog(fourth.viewer);
  await sendWithLease(server, fourth.claimed, 'complete', { outcome: 'completed' });
  await other.takeControl();
  await eventually('the dialog', () => other.last('page')?.dialog);
  assert.deepEqual(other.last('page')?.dialog, { kind: 'prompt', message: '', answer: '' });
  other.sendInput({ type: 'dialog', accept: false, text: '' });
  await eventually('the dialog to be closed', () => other.last('page')?.dialog === null);
  assertNotShown();
  for (const viewer of [fourth.viewer, readOnlyViewer, other]) await viewer.close();
  await client.close();
  await browser.close();
  await server.release(id);
});

test('in a hand-off, the person cannot leave the allowed origins by entering an address or following a link', async () => {
  const { id, browser, page } = await openOtpPage();
  await page.setContent(
    `<a href="${pages.b}/next" style="position:absolute;left:0;top:0;width:300px;height:200px;background:#cda">out</a>`,
  );
  const { id: handoff } = await requestHandoff(server, key, id, { allowedOrigins: [pages.url], record: 'keep' });
  const claimed = await claimHandoff(server, person, handoff);
  const viewer = await LiveViewer.open(claimed.liveViewUrl);
  await eventually('control of the person', () => viewer.last('control')?.who === 'you' && viewer.frameCount > 0);
  viewer.sendInput({ type: 'navigate', url: `${pages.b}/next` });
  await eventually('the refusal', () => viewer.last('refused')?.why.includes('Only these sites'));
  viewer.click(100, 100);
  await eventually('the navigation to have failed', () =>
    viewer.tabs.some(({ url }) => url.includes('b.test') || url.startsWith('chrome-error')),
  );
  assert.equal(pages.hits('/next'), 0);
  viewer.sendInput({ type: 'navigate', url: `${pages.url}/done` });
  await eventually('an allowed page', () => viewer.tabs.some(({ url }) => url.endsWith('/done')));
  await sendWithLease(server, claimed, 'complete', { outcome: 'completed' });
  await page.goto(`${pages.b}/next`);
  assert.equal(pages.hits('/next'), 1, 'afterwards the agent can open any address');
  await viewer.close();
  await browser.close();
  await server.release(id);
});

test('an agent that intercepts requests cannot redirect the person who has control to another origin', async () => {
  const { id, connectUrl, browser } = await openOtpPage();
  const agent = await CdpClient.connect(connectUrl);
  const page = await agent.attachToPage();
  await agent.send('Network.enable', {}, page);
  const elsewhere = `${pages.b}/tall`;
  const change = (requestId: unknown) => ['Fetch.continueRequest', { requestId, url: elsewhere }] as const;
  const redirect = (requestId: unknown) => {
    const responseHeaders = [{ name: 'location', value: elsewhere }];
    return ['Fetch.fulfillRequest', { requestId, responseCode: 302, responseHeaders }] as const;
  };
  let act: typeof change | typeof redirect = change;
  const intercepted: string[] = [];
  agent.onMessage(({ method, params, sessionId }) => {
    if (method !== 'Fetch.requestPaused') return;
    const { url } = Object(params?.request);
    const { requestId } = Object(params);
    if (url !== elsewhere) intercepted.push(new URL(url).pathname);
    const [command, given] = (url === elsewhere ? change : act)(requestId);
    void agent.ask(command, given, sessionId);
  });
  const documents = { patterns: [{ urlPattern: '*', resourceType: 'Document' }] };
  await agent.send('Fetch.enable', documents);
  const { id: handoff } = await requestHandoff(server, key, id, { allowedOrigins: [pages.url], record: 'keep' });
  const claimed = await claimHandoff(server, person, handoff);
  const viewer = await LiveViewer.open(claimed.liveViewUrl);
  await eventually('control of the person', () => viewer.last('control')?.who === 'you' && viewer.frameCount > 0);
  const assertNavigationFails = async (path: string): Promise<void> => {
    const failed = agent.next('the navigation to fail', ({ method, params }) => {
      const { type, errorText } = Object(params);
      return method === 'Network.loadingFailed' && type === 'Document' && errorText === 'net::ERR_BLOCKED_BY_CLIENT';
    });
    viewer.sendInput({ type: 'navigate', url: pages.url + path });
    await failed;
  };
  const assertNavigationShown = async (path: string): Promise<void> => {
    const before = pages.hits(path);
    viewer.sendInput({ type: 'navigate', url: pages.url + path });
    await eventually('a page', () => pages.hits(path) > before || pages.hits('/tall') > 0);
    assert.equal(pages.hits('/tall'), 0, 'only the page that the person requested');
  };
  await assertNavigationShown('/done');
  act = redirect;
  await assertNavigationFails('/next');
  // The client enables `Fetch` again, this time later than the guard of the hand-off, so it gets each request after the
  // guard.
  await agent.send('Fetch.disable');
  await agent.send('Fetch.enable', documents);
  act = change;
  await assertNavigationShown('/colours');
  act = redirect;
  await assertNavigationFails('/socket');
  await agent.send('Fetch.disable');
  await agent.send('Fetch.enable', documents, page);
  act = change;
  await assertNavigationFails('/ask');
  act = redirect;
  await assertNavigationFails('/popups');
  assert.deepEqual(intercepted, ['/done', '/next', '/colours', '/socket', '/ask', '/popups']);
  assert.equal(pages.hits('/tall'), 0);
  await sendWithLease(server, claimed, 'complete', { outcome: 'completed' });
  await agent.close();
  await viewer.close();
  await browser.close();
  await server.release(id);
});

test('a claim link works in one browser and stops working after wrong secrets, and the agent can neither claim nor complete the hand-off', async () => {
  const { id, browser } = await openOtpPage();
  const ask = async () => {
    const { claimUrl = assert.fail(), ...handoff } = await requestHandoff(server, key, id, { claimableBy: ['link'] });
    const url = new URL(claimUrl);
    assert.equal(url.pathname, `/handoffs/${handoff.id}`);
    return { ...handoff, secret: url.hash.slice(1) };
  };
  const send = (method: string, path: string, bearer: string, cookie?: string) =>
    server.api<ClaimedHandoff & Handoff & ErrorBody>(method, handoffsPath(server, path), {
      ...{ key: bearer, headers: cookie ? { cookie } : {}, ...(method === 'POST' ? { body: {} } : {}) },
    });
  const first = await ask();
  for (const bearer of [key, `bhl_${first.secret.slice(4)}`]) {
    assert.equal((await send('POST', `/${first.id}/claim`, bearer)).status, 401, 'the agent cannot claim');
    assert.equal((await send('POST', `/${first.id}/renew`, bearer)).status, 401, 'the agent cannot renew');
    const complete = { key: bearer, body: { outcome: 'completed' } };
    const done = await server.api('POST', handoffsPath(server, `/${first.id}/complete`), complete);
    assert.equal(done.status, 401, 'the agent cannot complete');
  }
  assert.equal(
    (await person.post(handoffsPath(server, `/${first.id}/claim`), {})).status,
    403,
    'members cannot claim the hand-off of a consumer',
  );
  const opened = await send('GET', `/${first.id}`, first.secret);
  assert.equal(opened.status, 200, opened.text);
  assert.equal(opened.body.pageOrigin, pages.url, 'the person sees the origin of the page');
  const cookie = opened.headers['set-cookie']?.[0]?.split(';', 1)[0] ?? assert.fail();
  assert.match(String(opened.headers['set-cookie']), /HttpOnly; SameSite=Strict/);
  const elsewhere = await send('POST', `/${first.id}/claim`, first.secret);
  assert.deepEqual([elsewhere.status, elsewhere.body.code], [409, 'already_claimed']);
  const claimed = await send('POST', `/${first.id}/claim`, first.secret, cookie);
  assert.equal(claimed.status, 200, claimed.text);
  const again = await send('POST', `/${first.id}/claim`, first.secret, cookie);
  assert.deepEqual([again.status, again.body.code], [409, 'handoff_claimed']);
  await sendWithLease(server, claimed.body, 'complete', { outcome: 'completed' });
  assert.equal((await send('GET', `/${first.id}`, first.secret, cookie)).status, 401, 'a used link opens nothing');

  const second = await ask();
  const wrong = first.secret;
  for (let tries = 0; tries < 10; tries++) assert.equal((await send('GET', `/${second.id}`, wrong)).status, 401);
  assert.equal((await send('GET', `/${second.id}`, second.secret)).status, 401, 'a link ends after ten wrong attempts');
  await send('POST', `/${second.id}/cancel`, key);

  const { key: foreign } = await keyWith(server, { scopes: ['browsers:read', 'handoffs:write'] });
  assert.equal((await send('GET', `/${second.id}`, foreign)).status, 404, 'another key does not see it');
  assert.equal((await readHandoff(server, key, second.id)).status, 'cancelled');
  const { key: readOnly } = await keyWith(server, { scopes: ['browsers:read'] });
  const body = { sessionId: id, instructions: 'x' };
  assert.equal((await server.api('POST', handoffsPath(server), { key: readOnly, body })).status, 403);
  const keep = await keyWith(server, {
    scopes: ['browsers:read', 'browsers:write', 'browsers:connect', 'handoffs:write'],
  });
  const unfiled = await server.createSession({ keepAlive: true }, keep.key);
  const kept = { key: keep.key, body: { sessionId: unfiled.id, instructions: 'x', record: 'keep' } };
  assert.equal((await server.api('POST', handoffsPath(server), kept)).status, 403, 'keep needs browsers:files');
  const endUser = { key, body: { ...body, claimableBy: { endUser: { providerId: 'hosted', subject: 'u' } } } };
  assert.equal((await server.api('POST', handoffsPath(server), endUser)).status, 400, 'consumers do not exist yet');
  await browser.close();
  await server.release(id);
  await server.release(unfiled.id);
});

test('a hand-off for a specific consumer can be claimed only by that consumer, and only once', async () => {
  const [kim, lee] = [await lab.signIn('kim@example.com'), await lab.signIn('lee@example.com')];
  const { body: elsewhere } = await person.post<{ id: string }>('/v1/applications', { name: 'Other' });
  const otherLab = await ConsumerFixture.of(server, person, elsewhere.id);
  const far = await otherLab.signIn('kim@example.com');
  const { id } = await server.createSession({ keepAlive: true }, key);
  for (const endUser of [nameOf(far), { providerId: 'hosted', subject: 'nobody' }]) {
    const body = { sessionId: id, instructions: 'x', claimableBy: { endUser } };
    const refused = await server.api<ErrorBody>('POST', handoffsPath(server), { key, body });
    assert.deepEqual([refused.status, refused.body.code], [400, 'invalid_request'], refused.text);
    assert.match(refused.text, /claimableBy\.endUser/);
  }
  const handoff = await requestHandoff(server, key, id, { claimableBy: { endUser: nameOf(kim) } });
  assert.deepEqual([handoff.claimableBy, handoff.consumerId], [['end_user'], kim.consumer.id]);
  assert.equal(handoff.claimUrl, `${server.url}/consumer/${server.applicationId}/handoffs/${handoff.id}`);

  const statusOf = ({ status, body }: { status: number; body: unknown }) => [status, Object(body).code];
  for (const name of ['handoffs.get', 'handoffs.claim']) {
    const asked = { id: handoff.id };
    assert.deepEqual(statusOf(await lab.send(name, asked, lee.accessToken)), [404, 'not_found'], `${name}, another`);
    assert.deepEqual(statusOf(await otherLab.send(name, asked, far.accessToken)), [404, 'not_found'], `${name}, other`);
    assert.equal(
      (await lab.send(name, asked, far.accessToken)).status,
      404,
      `${name}, with a token of another application`,
    );
    for (const token of [undefined, key, 'bcs_wrong'])
      assert.equal((await lab.send(name, asked, token)).status, 401, `${name}, ${token}`);
  }
  const listed = await lab.send<ConsumerHandoffPage>('handoffs.list', {}, lee.accessToken);
  assert.deepEqual(listed.body.data, []);
  const claimPath = handoffsPath(server, `/${handoff.id}/claim`);
  assert.deepEqual(statusOf(await person.post(claimPath, {})), [403, 'permission_denied'], 'a member');
  for (const bearer of [key, kim.accessToken, `bhc_${'a'.repeat(43)}`])
    assert.equal((await server.api('POST', claimPath, { key: bearer, body: {} })).status, 401, bearer.slice(0, 4));

  const claims = await Promise.all(
    Array.from({ length: 20 }, () =>
      lab.send<ClaimedHandoff & ErrorBody>('handoffs.claim', { id: handoff.id }, kim.accessToken),
    ),
  );
  const [won, ...more] = claims.filter(({ status }) => status === 200);
  assert.ok(won && more.length === 0, 'exactly one claim succeeded');
  for (const lost of claims) if (lost !== won) assert.deepEqual(statusOf(lost), [409, 'handoff_claimed']);
  assert.equal((await sendWithLease(server, won.body, 'complete', { outcome: 'completed' })).status, 200);
  assert.deepEqual(statusOf(await lab.send('handoffs.claim', { id: handoff.id }, kim.accessToken)), [
    409,
    'already_decided',
  ]);
  await server.release(id);
});

test('a consumer who is deleted or whose consumer session is ended loses control', async () => {
  const [phone, laptop] = [await lab.signIn('sam@example.com'), await lab.signIn('sam@example.com')];
  const { id, browser, page } = await openOtpPage();
  const handoff = await requestHandoff(server, key, id, { claimableBy: { endUser: nameOf(phone) } });
  const claim = async ({ accessToken }: { accessToken: string }): Promise<ClaimedHandoff> => {
    const result = await lab.send<ClaimedHandoff>('handoffs.claim', { id: handoff.id }, accessToken);
    assert.equal(result.status, 200, result.text);
    return result.body;
  };
  const stolen = await claim(laptop);
  const viewer = await LiveViewer.open(stolen.liveViewUrl);
  await eventually('control of the person', () => viewer.last('control')?.who === 'you' && viewer.frameCount > 0);
  const devices = await lab.send<ConsumerDevices>('session.list', {}, phone.accessToken);
  const ended = devices.body.data.find(({ isThis }) => !isThis) ?? assert.fail(devices.text);
  assert.equal((await lab.send('session.endOne', { id: ended.id }, phone.accessToken)).status, 200);
  const status = async () => (await readHandoff(server, key, handoff.id)).status;
  await eventually('the lease to be taken back', async () => (await status()) === 'requested');
  const renewed = await sendWithLease<ErrorBody>(server, stolen, 'renew');
  assert.deepEqual([renewed.status, renewed.body.code], [409, 'stale_fence']);
  await eventually(
    'the viewer to have no control',
    () => viewer.last('control')?.who !== 'you' || viewer.closeInfo !== undefined,
  );
  if (!viewer.closeInfo) viewer.sendInput({ type: 'text', text: SECRET });
  assert.equal((await lab.send('handoffs.claim', { id: handoff.id }, laptop.accessToken)).status, 401);
  await assert.rejects(LiveViewer.open(stolen.liveViewUrl));

  const again = await claim(phone);
  assert.ok(again.fence > stolen.fence);
  assert.equal((await lab.send('profile.delete', {}, phone.accessToken)).status, 202);
  await eventually('the hand-off to be cancelled', async () => (await status()) === 'cancelled');
  assert.equal((await sendWithLease(server, again, 'renew')).status, 409);
  assert.equal(await page.inputValue('#code'), '', 'the agent has control again, and nothing was typed after the end');
  const anew = await lab.signIn('sam@example.com');
  const listed = await lab.send<ConsumerHandoffPage>('handoffs.list', {}, anew.accessToken);
  assert.deepEqual(listed.body.data, []);
  assert.equal((await lab.send('handoffs.get', { id: handoff.id }, anew.accessToken)).status, 404);
  await viewer.close();
  await browser.close();
  await server.release(id);
});
