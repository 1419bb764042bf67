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
import { agentPath, invoke, issueAgentKey } from '../harness/operations.ts';
import { queryRows, readDatabaseText } from '../harness/other-person.ts';
import { startOtlpReceiver } from '../harness/otlp-receiver.ts';
import { openPages } from '../harness/pages.ts';
import { Person } from '../harness/person.ts';
import { fetchFilm, listRecordingFiles, requestFiles, waitForPlaylist } from '../harness/recordings.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const SECRET = 'Zq8!plötzlich "laut" & <weit>';
const base64 = (text: string): string => Buffer.from(text).toString('base64');
/** Every form in which the page repeats the typed text, without the ends that depend on the surrounding text. */
const SECRET_FORMS: readonly string[] = [
  ...[SECRET, encodeURIComponent(SECRET), new URLSearchParams({ '': SECRET }).toString().slice(1)],
  ...[JSON.stringify(SECRET).slice(1, -1), JSON.stringify(JSON.stringify(SECRET)).slice(3, -3)],
  SECRET.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;'),
  ...['', 'u', 'us'].map(before => base64(before + SECRET).slice(4, -4)),
  ...[Buffer.from(SECRET).toString('hex'), Buffer.from(SECRET).toString('latin1')],
];
const findForm = (text: string): string | undefined => SECRET_FORMS.find(form => text.includes(form));
/**
 * Removes the parts of page addresses that contain the typed text. An agent may read page addresses
 * (docs/decisions/0063-handoffs.md).
 */
const removeAddresses = (text: string): string => text.replaceAll(/(?:typed|code)=[^"&#\\\s]*|#typed[^"\\\s]*/g, '');

/** The bodies of the forms that were submitted. */
const postedBodies: string[] = [];
/** As soon as text is typed, the page turns magenta and repeats the text in as many places as possible. */
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
    if (request.method === 'POST') void text(request).then(body => postedBodies.push(body));
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
const person = await Person.setUpOwner(server);
const grants = [{ operationId: '*', effect: 'read' }, { operationId: 'browser.steps' }];
const { key } = await issueAgentKey(server, { scopes: [...AGENT_KEY_SCOPES], grants });

const lab = await ConsumerFixture.open(server, person);
await lab.configure({ origins: [] });
const endUserOf = ({ consumer }: ConsumerTokens) => ({ providerId: consumer.providerId, subject: consumer.subject });

function countMagentaPixels(picture: Buffer, format: 'mjpeg' | 'png' | 'mp4'): number {
  const inputOptions = [...{ mjpeg: ['-f', 'mjpeg'], png: ['-f', 'png_pipe'], mp4: [] }[format], '-i', 'pipe:0'];
  const options = [
    '-v',
    'error',
    ...inputOptions,
    '-vf',
    'scale=160:-2',
    '-pix_fmt',
    'rgb24',
    '-f',
    'rawvideo',
    'pipe:1',
  ];
  const { stdout } = spawnSync('ffmpeg', options, { input: picture, maxBuffer: 256 * 1024 ** 2 });
  assert.ok(stdout.length > 0, 'the picture was decoded');
  let pixelCount = 0;
  for (let at = 0; at + 2 < stdout.length; at += 3)
    if ((stdout[at] ?? 0) > 150 && (stdout[at + 1] ?? 255) < 90 && (stdout[at + 2] ?? 0) > 150) pixelCount++;
  return pixelCount;
}

/** The number of magenta pixels per frame, cached because the same frame is checked many times. */
const pixelCounts = new WeakMap<Buffer, number>();

function seesSecret({ newestFrame: newest }: LiveViewer): boolean {
  if (newest === undefined) return false;
  const pixelCount = pixelCounts.get(newest.jpeg) ?? countMagentaPixels(newest.jpeg, 'mjpeg');
  pixelCounts.set(newest.jpeg, pixelCount);
  return pixelCount > 500;
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
const fetchImage = async (resultText: string): Promise<Buffer | undefined> => {
  const [, inline] = /"type":"image","data":"([^"]+)"/.exec(resultText) ?? [];
  if (inline) return Buffer.from(inline, 'base64');
  const [, link] = /"downloadUrl":"([^"]+)"/.exec(resultText) ?? [];
  return link === undefined ? undefined : Buffer.from(await (await fetch(link)).arrayBuffer());
};

const readDebugUrl = async (id: string, query = ''): Promise<string> =>
  (await server.api<DebugUrls>('GET', `/v1/browsers/sessions/${id}/debug${query}`, { key })).body.debuggerUrl;

/** Connects to DevTools on the first page. */
async function connectDevtools(id: string): Promise<CdpClient> {
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
  await eventually('the person to see what they typed', () => seesSecret(viewer));
}

const pressKey = (viewer: LiveViewer, key: string): void => {
  const commonFields = {
    key,
    code: key,
    keyCode: 13,
    text: '\r',
    location: 0,
    repeats: false,
    modifiers: 0,
    mac: false,
  };
  viewer.sendInput({ type: 'key', action: 'down', ...commonFields });
  viewer.sendInput({ type: 'key', action: 'up', ...commonFields });
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

/** Strings that must not contain the typed text, each with its source. */
const searchedTexts: Array<{ readonly where: string; readonly text: string }> = [];
const keep = (where: string, text: string): void => void searchedTexts.push({ where, text });

const assertNoLeaks = (): void => {
  const leaks = searchedTexts.flatMap(({ where, text }) => {
    const form = findForm(text);
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
  const secondClient = await CdpClient.connect(connectUrl);
  secondClient.onMessage(message =>
    keep('a message of the second connection', removeAddresses(JSON.stringify(message))),
  );
  const { targetInfos } = await secondClient.send('Target.getTargets');
  const targets = targetInfos as ReadonlyArray<{ type: string; targetId: string }>;
  const { targetId } = targets.find(({ type }) => type === 'page') ?? assert.fail();
  const sessionId = String((await secondClient.send('Target.attachToTarget', { targetId, flatten: true })).sessionId);
  await secondClient.send('Target.setDiscoverTargets', { discover: true });
  for (const domain of ['Runtime', 'Network', 'DOM', 'Log', 'Page', 'CSS', 'Overlay', 'Accessibility', 'Console'])
    await secondClient.send(`${domain}.enable`, {}, sessionId);
  await secondClient.send('DOM.getDocument', { depth: -1 }, sessionId);
  const devtools = await connectDevtools(id);
  devtools.onMessage(message => keep('a message of DevTools', removeAddresses(JSON.stringify(message))));
  for (const domain of ['Runtime', 'Network', 'DOM', 'Log', 'Page']) await devtools.send(`${domain}.enable`);
  await devtools.send('DOM.getDocument', { depth: -1 });

  assert.match(await callTool(id, 'browser_snapshot'), /Title: Code/, 'the service is connected before the claim');
  const { id: handoff } = await requestHandoff(server, key, id, { leaseSeconds: 900 });
  const claimedHandoff = await claimHandoff(server, person, handoff);
  const viewer = await LiveViewer.open(claimedHandoff.liveViewUrl);
  const otherViewer = await LiveViewer.open(await readDebugUrl(id));
  await typeSecret(viewer);

  const readVersion = () => secondClient.send('Browser.getVersion');
  const pendingReads = [
    page.screenshot(),
    page.content(),
    page.evaluate('code.value'),
    secondClient.send('Runtime.evaluate', { expression: 'code.value' }, sessionId),
    secondClient.send('DOM.getDocument', { depth: -1 }, sessionId),
    secondClient.send('DOMSnapshot.captureSnapshot', { computedStyles: [] }, sessionId),
    secondClient.send('Accessibility.getFullAXTree', {}, sessionId),
    secondClient.send('Page.captureScreenshot', {}, sessionId),
    secondClient.send('Page.addScriptToEvaluateOnNewDocument', { source: 'alert(1)' }, sessionId),
    secondClient.send('Runtime.addBinding', { name: 'steal' }, sessionId),
    secondClient.send('Target.createTarget', { url: 'about:blank' }),
    devtools.send('Runtime.evaluate', { expression: 'code.value' }),
  ];
  const pendingCalls = [
    callTool(id, 'browser_snapshot'),
    callTool(id, 'browser_evaluate', { function: '() => code.value' }),
    callTool(id, 'browser_take_screenshot'),
    runSteps(id, [{ do: 'fill', selector: '#code', value: 'of the agent' }, { do: 'screenshot' }, { do: 'content' }]),
  ];
  for (const [number, read] of [...pendingReads, ...pendingCalls].entries())
    assert.ok(await isHeld(read, readVersion), `read ${number}`);
  keep('the targets', removeAddresses(JSON.stringify(await secondClient.send('Target.getTargets'))));
  const pictureResponse = await fetch(`${server.url}/v1/browsers/sessions/${id}/picture`, {
    headers: { authorization: `Bearer ${key}` },
  });
  assert.equal(pictureResponse.status, 200);
  assert.equal(
    countMagentaPixels(Buffer.from(await pictureResponse.arrayBuffer()), 'mjpeg'),
    0,
    'the picture that lists of sessions show is black',
  );
  assert.ok(otherViewer.frameCount > 0 && !seesSecret(otherViewer), 'another viewer sees black');
  keep('what another viewer is told', removeAddresses(JSON.stringify(otherViewer.messages)));
  const debugResponse = await server.api('GET', `/v1/browsers/sessions/${id}/debug`, { key });
  keep('the addresses of the live view', removeAddresses(debugResponse.text));
  for (const path of ['', '/logs', '/logs?format=har', '/events'])
    keep(`meanwhile ${path}`, (await server.api('GET', `/v1/browsers/sessions/${id}${path}`, { key })).text);
  await keepTables('meanwhile');
  pressKey(viewer, 'Enter');
  await eventually('the form to be sent', () => pages.hits('/done') === 1);
  await eventually('the next page to be shown', () => viewer.newestFrame !== undefined && !seesSecret(viewer));
  await sendWithLease(server, claimedHandoff, 'complete', { outcome: 'completed' });
  await Promise.allSettled(
    pendingReads.map(async read => keep('a read that waited', JSON.stringify(await read) ?? '')),
  );
  await page.waitForSelector('#done');
  for (const [number, result] of (await Promise.all(pendingCalls)).entries()) {
    keep(`call ${number}`, result);
    const image = await fetchImage(result);
    if (image) assert.equal(countMagentaPixels(image, 'png'), 0, `call ${number}`);
  }
  assert.deepEqual(
    postedBodies,
    [new URLSearchParams({ code: SECRET }).toString()],
    'no step of the agent interfered with the input of the person',
  );

  const laterCallResponse = await invoke(server, key, 'browser.content', { sessionId: id });
  assert.equal(
    laterCallResponse.body.status,
    'succeeded',
    `afterwards operations work again: ${laterCallResponse.text}`,
  );
  await otherViewer.takeControl();
  otherViewer.click(300, 300);
  assert.equal(seesSecret(otherViewer), false, 'a viewer who takes control later does not see an earlier picture');
  await eventually(
    'the page to be shown to others again',
    () => otherViewer.newestFrame !== undefined && brightnessOf(otherViewer.newestFrame.jpeg) > 200,
  );
  for (const one of [secondClient, devtools, viewer, otherViewer, browser]) await one.close();
  await server.release(id);
  const film = await fetchFilm(await waitForPlaylist(server, id, '0', text => text.includes('#EXT-X-ENDLIST')));
  assert.equal(countMagentaPixels(film, 'mp4'), 0, 'no frame of the recording shows the typed text');
  await requestFiles(server, id);
  const [file] = await eventually(
    'the MP4 file',
    () => listRecordingFiles(server, id),
    all => all.some(({ downloadUrl }) => downloadUrl !== undefined),
  );
  const mp4 = Buffer.from(await (await fetch(file?.downloadUrl ?? '')).arrayBuffer());
  assert.equal(countMagentaPixels(mp4, 'mp4'), 0, 'no frame of the MP4 file shows the typed text');
  for (const path of ['', '/logs', '/logs?format=har', '/events', '/downloads'])
    keep(`afterwards ${path}`, (await server.api('GET', `/v1/browsers/sessions/${id}${path}`, { key })).text);
  keep('the hand-off', JSON.stringify(await readHandoff(server, key, handoff)));
  const invocationsResponse = await server.api('GET', agentPath(server, 'invocations'), { key });
  keep('the invocations', invocationsResponse.text);
  await receiver.span('cdp.connection');
  keep(
    'the traces',
    JSON.stringify(receiver.spans, (_, it) => (typeof it === 'bigint' ? String(it) : it)),
  );
  keep('the log of the server', server.log().join('\n'));
  await keepTables('afterwards');
  for (const path of filesUnder(server.dataDir))
    if (existsSync(path) && statSync(path).isFile()) keep(path, readFileSync(path).toString('latin1'));
  assertNoLeaks();
  assert.ok(
    searchedTexts.some(({ where, text }) => where === 'afterwards /logs' && text.includes('/beacon')),
    'the search finds a text that the log contains',
  );
});

/** Adds every table of the database to the strings that are searched, with the log chunks in uncompressed form. */
async function keepTables(when: string): Promise<void> {
  const tableQuery =
    "select quote_ident(table_name) as name from information_schema.tables where table_schema = 'public'";
  const names = (await queryRows(server, tableQuery)).map(row => String(Object(row).name));
  for (const name of names) keep(`${when}: table ${name}`, await readDatabaseText(server, [name]));
  const chunks = await queryRows(server, 'select lines from log_chunks');
  for (const chunk of chunks) keep(`${when}: a chunk of a log`, zstdDecompressSync(Object(chunk).lines).toString());
  assert.ok(chunks.length > 0);
}

function brightnessOf(jpeg: Buffer): number {
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

test('request and response bodies of a masked hand-off are not returned to a client that observed the requests', async () => {
  const { id, connectUrl, browser } = await openOtpPage();
  const client = await CdpClient.connect(connectUrl);
  const channel = await client.attachToPage();
  await client.send('Network.enable', {}, channel);
  const claimedHandoff = await claimHandoff(server, person, (await requestHandoff(server, key, id)).id);
  const viewer = await LiveViewer.open(claimedHandoff.liveViewUrl);
  await typeSecret(viewer);
  const countFinishedRequests = () => client.events.filter(({ method }) => method === 'Network.loadingFinished').length;
  await eventually('the requests of the page', () => countFinishedRequests() >= 2);
  await sendWithLease(server, claimedHandoff, 'complete', { outcome: 'completed' });
  const ids = client.events.flatMap(({ method, params }) =>
    method === 'Network.requestWillBeSent' ? [String(params?.requestId)] : [],
  );
  assert.ok(ids.length >= 2);
  const responses: CdpMessage[] = [];
  for (const requestId of ids)
    for (const method of ['Network.getRequestPostData', 'Network.getResponseBody'])
      responses.push(await client.ask(method, { requestId }, channel));
  assert.equal(findForm(JSON.stringify(responses)), undefined);
  for (const { error } of responses) assert.match(error?.message ?? '', /a masked hand-off/);
  await viewer.close();
  await client.close();
  await browser.close();
  await server.release(id);
});

test('if a navigation is refused in a masked hand-off, the log contains its URL without the query', async () => {
  const session = await server.createSession({ browserSettings: { allowedDomains: ['a.test'] }, keepAlive: true }, key);
  const browser = await chromium.connectOverCDP(session.connectUrl);
  const page: Page = browser.contexts()[0]?.pages()[0] ?? assert.fail();
  await page.goto(`${pages.a}/otp`);
  await page.evaluate(`code.oninput = () => { location = '${pages.b}/done?answer=' + encodeURIComponent(code.value) }`);
  const claimedHandoff = await claimHandoff(server, person, (await requestHandoff(server, key, session.id)).id);
  const viewer = await LiveViewer.open(claimedHandoff.liveViewUrl);
  await eventually('control of the person', () => viewer.last('control')?.who === 'you' && viewer.frameCount > 0);
  viewer.click(100, 40);
  viewer.sendInput({ type: 'text', text: SECRET });
  const path = `/v1/browsers/sessions/${session.id}/logs`;
  const readLog = async () => (await server.api('GET', path, { key })).text;
  const log = await eventually('the refusal', readLog, text => text.includes('Page.navigationBlocked'));
  assert.ok(log.includes(`${pages.b}/done`), log);
  assert.equal(findForm(log), undefined);
  await sendWithLease(server, claimedHandoff, 'complete', { outcome: 'completed' });
  await viewer.close();
  await browser.close();
  await server.release(session.id);
});

test('after a restart, messages that a page logged in a masked hand-off are not shown on a new connection, by a tool or in the log', async () => {
  const { id, connectUrl, browser } = await openOtpPage();
  const claimedHandoff = await claimHandoff(server, person, (await requestHandoff(server, key, id)).id);
  const viewer = await LiveViewer.open(claimedHandoff.liveViewUrl);
  await typeSecret(viewer);
  await sendWithLease(server, claimedHandoff, 'complete', { outcome: 'completed' });
  await viewer.close();
  await browser.close();
  await server.restart();
  const client = await CdpClient.connect(connectUrl);
  const channel = await client.attachToPage();
  for (const domain of ['Runtime', 'Log', 'Console']) await client.send(`${domain}.enable`, {}, channel);
  // Earlier messages are delivered before this one.
  await client.evaluate(`console.log('afterwards')`, channel);
  const isLastMessage = ({ params }: CdpMessage): boolean => JSON.stringify(params).includes('afterwards');
  await client.waitForEvent('Runtime.consoleAPICalled', isLastMessage);
  const isLogged = ({ method = '' }: CdpMessage): boolean => /^(Runtime\.(console|exception)|Log|Console)/.test(method);
  const readLog = async () => (await server.api('GET', `/v1/browsers/sessions/${id}/logs`, { key })).text;
  const textsBySource = {
    'a new connection': JSON.stringify(client.events.filter(isLogged)),
    // Omits the end of the result, which contains the page's address and title.
    'a tool': (await callTool(id, 'browser_console_messages')).split('Page: ', 1)[0] ?? '',
    'the log': await eventually('the log', readLog, text => text.includes('afterwards')),
  };
  const leaks = Object.entries(textsBySource).filter(([, text]) => findForm(removeAddresses(text)) !== undefined);
  assert.deepEqual(leaks, []);
  assert.match(textsBySource['a tool'], /afterwards/);
  await client.close();
  await server.release(id);
});

test('in a masked hand-off of a session without recording, other viewers cannot see the typed text, and a client cannot redirect an intercepted request', async () => {
  const { id, browser, page } = await openOtpPage({ browserSettings: { recordSession: false } });
  const bodies: Array<string | null> = [];
  await page.route('**/beacon*', async route => {
    bodies.push(route.request().postData());
    await route.continue({ url: `${pages.url}/stolen` });
  });
  const { id: handoff } = await requestHandoff(server, key, id);
  const claimedHandoff = await claimHandoff(server, person, handoff);
  const viewer = await LiveViewer.open(claimedHandoff.liveViewUrl);
  const otherViewer = await LiveViewer.open(await readDebugUrl(id, '?readOnly=true'));
  await typeSecret(viewer);
  await eventually('pictures for the other viewer', () => otherViewer.frameCount > 0);
  assert.equal(seesSecret(otherViewer), false);
  // The service connects to the session only now, during the hand-off.
  const pendingCalls = [
    callTool(id, 'browser_evaluate', { function: '() => code.value' }),
    runSteps(id, [{ do: 'screenshot' }, { do: 'content', as: 'text' }]),
  ];
  await eventually('the requests of the page to continue', () => pages.hits('/beacon') >= 2);
  assert.equal(pages.hits('/stolen'), 0);
  assert.deepEqual(
    bodies.filter(body => body?.includes(SECRET)),
    [],
  );
  const readVersion = async () => (await fetch(`${server.url}/healthz`)).text();
  for (const [number, call] of pendingCalls.entries()) assert.ok(await isHeld(call, readVersion), `call ${number}`);
  await sendWithLease(server, claimedHandoff, 'complete', { outcome: 'failed' });
  await Promise.all(pendingCalls);
  for (const one of [viewer, otherViewer]) await one.close();
  await browser.close();
  await server.release(id);
});

test('while a person has control, input from CDP connections, tool calls and other live views has no effect', async () => {
  const { id, connectUrl, browser, page } = await openOtpPage();
  const hitsBefore = pages.hits('/done');
  const earlierViewer = await LiveViewer.open(await readDebugUrl(id));
  await earlierViewer.takeControl();
  const staleFence = earlierViewer.fence;
  await earlierViewer.giveControl();
  const secondClient = await CdpClient.connect(connectUrl);
  const channel = await secondClient.attachToPage();
  // This hand-off is not masked, so that the agent can read the effect.
  const { id: handoff } = await requestHandoff(server, key, id, { record: 'keep' });
  const claimedHandoff = await claimHandoff(server, person, handoff);
  const viewer = await LiveViewer.open(claimedHandoff.liveViewUrl);
  await eventually('control of the person', () => viewer.last('control')?.who === 'you' && viewer.frameCount > 0);
  viewer.click(100, 40);
  viewer.sendInput({ type: 'text', text: 'person' });
  const readValue = () => secondClient.evaluate('code.value', channel);
  await eventually('what the person typed', async () => (await readValue()) === 'person');
  const laterViewer = await LiveViewer.open(await readDebugUrl(id));
  await eventually('the page of the viewer', () => laterViewer.page !== '');
  for (const otherViewer of [earlierViewer, laterViewer]) {
    otherViewer.send({ type: 'take' });
    await eventually('the refusal of control', () => otherViewer.last('refused') !== undefined);
    otherViewer.sendInput({ type: 'text', text: 'viewer' });
    otherViewer.sendInput({ type: 'text', text: 'viewer', fence: claimedHandoff.fence });
    otherViewer.sendInput({ type: 'text', text: 'viewer', fence: staleFence });
    otherViewer.sendInput({ type: 'navigate', url: `${pages.url}/done` });
  }
  const pendingInputs = [
    page.keyboard.type('first'),
    secondClient.send('Input.insertText', { text: 'second' }, channel),
    secondClient.send('Page.navigate', { url: `${pages.url}/done` }, channel),
    secondClient.send('Runtime.evaluate', { expression: 'code.value = 1', userGesture: true }, channel),
    callTool(id, 'browser_navigate', { url: `${pages.url}/done` }),
    runSteps(id, [{ do: 'fill', selector: '#code', value: 'steps' }]),
  ];
  viewer.sendInput({ type: 'text', text: ' alone' });
  const waitForTypedText = () =>
    eventually('what the person typed', async () => (await readValue()) === 'person alone');
  for (const [number, input] of pendingInputs.entries())
    assert.ok(await isHeld(input, waitForTypedText), `input ${number}`);
  assert.equal(pages.hits('/done'), hitsBefore, 'nobody but the person opens a page');
  await secondClient.close();
  await browser.close();
  await sendWithLease(server, claimedHandoff, 'complete', { outcome: 'completed' });
  await Promise.allSettled(pendingInputs);
  for (const one of [earlierViewer, laterViewer, viewer]) await one.close();
  await server.release(id);
});

test('a dialog left open in a masked hand-off is shown to the agent and to other viewers only after the hand-off, without its text', async () => {
  const { id, connectUrl, browser, page } = await openOtpPage();
  await page.goto(`${pages.url}/ask`);
  const dialogTexts: string[] = [];
  const client = await CdpClient.connect(connectUrl);
  const channel = await client.attachToPage();
  await client.send('Page.enable', {}, channel);
  const listDialogEvents = () => client.events.filter(({ method }) => method?.startsWith('Page.javascriptDialog'));
  const claimAndOpen = async () => {
    const claimedHandoff = await claimHandoff(server, person, (await requestHandoff(server, key, id)).id);
    const viewer = await LiveViewer.open(claimedHandoff.liveViewUrl);
    // A page with an open dialog sends no frames, so the test waits for the page instead of a frame.
    await eventually('control of the person', () => viewer.last('control')?.who === 'you' && viewer.page !== '');
    return { claimed: claimedHandoff, viewer };
  };
  const waitForDialog = (viewer: LiveViewer) =>
    eventually('the dialog', () => viewer.last('page')?.dialog?.message.includes(SECRET));

  const readOnlyViewer = await LiveViewer.open(await readDebugUrl(id, '?readOnly=true'));
  const otherViewer = await LiveViewer.open(await readDebugUrl(id));
  const assertNotShown = (): void => {
    for (const { page, messages } of [readOnlyViewer, otherViewer]) {
      assert.ok(page !== '');
      assert.equal(findForm(JSON.stringify(messages)), undefined, 'another viewer gets no message about the dialog');
    }
  };

  // A dialog that the person answers is never reported to the agent, and neither is a list that the person opens.
  const firstClaim = await claimAndOpen();
  firstClaim.viewer.click(100, 300);
  await eventually('the list', () => firstClaim.viewer.last('page')?.select?.options[0]?.label === SECRET);
  firstClaim.viewer.sendInput({ type: 'choose', options: [] });
  await eventually('the list to be closed', () => firstClaim.viewer.last('page')?.select === null);
  firstClaim.viewer.click(100, 100);
  await waitForDialog(firstClaim.viewer);
  assertNotShown();
  firstClaim.viewer.sendInput({ type: 'dialog', accept: true, text: SECRET });
  await eventually('the dialog to be closed', () => firstClaim.viewer.last('page')?.dialog === null);
  await sendWithLease(server, firstClaim.claimed, 'complete', { outcome: 'completed' });
  await client.waitForEvent('Berth.handoffComplete');
  await client.send('Page.getFrameTree', {}, channel);
  assert.deepEqual(listDialogEvents(), []);
  await firstClaim.viewer.close();

  // A dialog that the person leaves open is reported when the hand-off is completed. The agent answers the dialog, and
  // the page continues.
  page.on('dialog', dialog => {
    dialogTexts.push(dialog.type(), dialog.message(), dialog.defaultValue());
    void dialog.accept('yes');
  });
  const secondClaim = await claimAndOpen();
  secondClaim.viewer.click(100, 100);
  await waitForDialog(secondClaim.viewer);
  await client.send('Target.getTargets');
  assert.deepEqual(listDialogEvents(), []);
  await sendWithLease(server, secondClaim.claimed, 'complete', { outcome: 'completed' });
  const openEvent = await client.waitForEvent('Page.javascriptDialogOpening');
  assert.equal(openEvent.sessionId, channel);
  const { type, message, defaultPrompt, url } = Object(openEvent.params);
  assert.deepEqual([type, message, defaultPrompt, url], ['prompt', '', '', `${pages.url}/ask`]);
  assert.equal(await page.evaluate('answer'), 'yes');
  assert.deepEqual(dialogTexts, ['prompt', '', '']);
  await secondClaim.viewer.close();

  // A dialog that was open before the hand-off is reported as closed, without the person's answer.
  page.removeAllListeners('dialog');
  page.on('dialog', () => {});
  await eventually('the end of the dialog', () => listDialogEvents().length === 2);
  const countBefore = listDialogEvents().length;
  void page.evaluate("void setTimeout(() => document.querySelector('button').click())");
  await eventually('the dialog', () => listDialogEvents().length > countBefore);
  const thirdClaim = await claimAndOpen();
  thirdClaim.viewer.sendInput({ type: 'dialog', accept: true, text: SECRET });
  await eventually('the end of the dialog', () => listDialogEvents().length > countBefore + 1);
  const closeEvent = listDialogEvents().at(-1);
  assert.deepEqual([closeEvent?.method, closeEvent?.params?.userInput], ['Page.javascriptDialogClosed', '']);
  await sendWithLease(server, thirdClaim.claimed, 'complete', { outcome: 'completed' });
  await thirdClaim.viewer.close();

  // A dialog that the person leaves open is shown to the next viewer who takes control, without its text.
  const fourthClaim = await claimAndOpen();
  fourthClaim.viewer.click(100, 100);
  await waitForDialog(fourthClaim.viewer);
  await sendWithLease(server, fourthClaim.claimed, 'complete', { outcome: 'completed' });
  await otherViewer.takeControl();
  await eventually('the dialog', () => otherViewer.last('page')?.dialog);
  assert.deepEqual(otherViewer.last('page')?.dialog, { kind: 'prompt', message: '', answer: '' });
  otherViewer.sendInput({ type: 'dialog', accept: false, text: '' });
  await eventually('the dialog to be closed', () => otherViewer.last('page')?.dialog === null);
  assertNotShown();
  for (const viewer of [fourthClaim.viewer, readOnlyViewer, otherViewer]) await viewer.close();
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
  const claimedHandoff = await claimHandoff(server, person, handoff);
  const viewer = await LiveViewer.open(claimedHandoff.liveViewUrl);
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
  await sendWithLease(server, claimedHandoff, 'complete', { outcome: 'completed' });
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
  const otherUrl = `${pages.b}/tall`;
  const continueCommand = (requestId: unknown) => ['Fetch.continueRequest', { requestId, url: otherUrl }] as const;
  const redirectCommand = (requestId: unknown) => {
    const responseHeaders = [{ name: 'location', value: otherUrl }];
    return ['Fetch.fulfillRequest', { requestId, responseCode: 302, responseHeaders }] as const;
  };
  let commandFor: typeof continueCommand | typeof redirectCommand = continueCommand;
  const interceptedPaths: string[] = [];
  agent.onMessage(({ method, params, sessionId }) => {
    if (method !== 'Fetch.requestPaused') return;
    const { url } = Object(params?.request);
    const { requestId } = Object(params);
    if (url !== otherUrl) interceptedPaths.push(new URL(url).pathname);
    const [command, commandParams] = (url === otherUrl ? continueCommand : commandFor)(requestId);
    void agent.ask(command, commandParams, sessionId);
  });
  const documentPatterns = { patterns: [{ urlPattern: '*', resourceType: 'Document' }] };
  await agent.send('Fetch.enable', documentPatterns);
  const { id: handoff } = await requestHandoff(server, key, id, { allowedOrigins: [pages.url], record: 'keep' });
  const claimedHandoff = await claimHandoff(server, person, handoff);
  const viewer = await LiveViewer.open(claimedHandoff.liveViewUrl);
  await eventually('control of the person', () => viewer.last('control')?.who === 'you' && viewer.frameCount > 0);
  const assertNavigationFails = async (path: string): Promise<void> => {
    const failure = agent.next('the navigation to fail', ({ method, params }) => {
      const { type, errorText } = Object(params);
      return method === 'Network.loadingFailed' && type === 'Document' && errorText === 'net::ERR_BLOCKED_BY_CLIENT';
    });
    viewer.sendInput({ type: 'navigate', url: pages.url + path });
    await failure;
  };
  const assertNavigationShown = async (path: string): Promise<void> => {
    const hitsBefore = pages.hits(path);
    viewer.sendInput({ type: 'navigate', url: pages.url + path });
    await eventually('a page', () => pages.hits(path) > hitsBefore || pages.hits('/tall') > 0);
    assert.equal(pages.hits('/tall'), 0, 'only the page that the person requested');
  };
  await assertNavigationShown('/done');
  commandFor = redirectCommand;
  await assertNavigationFails('/next');
  // The client enables `Fetch` again, this time later than the guard of the hand-off, so it gets each request after the
  // guard.
  await agent.send('Fetch.disable');
  await agent.send('Fetch.enable', documentPatterns);
  commandFor = continueCommand;
  await assertNavigationShown('/colours');
  commandFor = redirectCommand;
  await assertNavigationFails('/socket');
  await agent.send('Fetch.disable');
  await agent.send('Fetch.enable', documentPatterns, page);
  commandFor = continueCommand;
  await assertNavigationFails('/ask');
  commandFor = redirectCommand;
  await assertNavigationFails('/popups');
  assert.deepEqual(interceptedPaths, ['/done', '/next', '/colours', '/socket', '/ask', '/popups']);
  assert.equal(pages.hits('/tall'), 0);
  await sendWithLease(server, claimedHandoff, 'complete', { outcome: 'completed' });
  await agent.close();
  await viewer.close();
  await browser.close();
  await server.release(id);
});

test('a claim link works only in one browser and not after ten wrong secrets, and the agent can neither claim nor complete the hand-off', async () => {
  const { id, browser } = await openOtpPage();
  const requestLink = async () => {
    const { claimUrl = assert.fail(), ...handoff } = await requestHandoff(server, key, id, { claimableBy: ['link'] });
    const url = new URL(claimUrl);
    assert.equal(url.pathname, `/handoffs/${handoff.id}`);
    return { ...handoff, secret: url.hash.slice(1) };
  };
  const send = (method: string, path: string, bearer: string, cookie?: string) =>
    server.api<ClaimedHandoff & Handoff & ErrorBody>(method, handoffsPath(server, path), {
      ...{ key: bearer, headers: cookie ? { cookie } : {}, ...(method === 'POST' ? { body: {} } : {}) },
    });
  const firstHandoff = await requestLink();
  for (const bearer of [key, `bhl_${firstHandoff.secret.slice(4)}`]) {
    assert.equal((await send('POST', `/${firstHandoff.id}/claim`, bearer)).status, 401, 'the agent cannot claim');
    assert.equal((await send('POST', `/${firstHandoff.id}/renew`, bearer)).status, 401, 'the agent cannot renew');
    const completeRequest = { key: bearer, body: { outcome: 'completed' } };
    const completeRefusal = await server.api(
      'POST',
      handoffsPath(server, `/${firstHandoff.id}/complete`),
      completeRequest,
    );
    assert.equal(completeRefusal.status, 401, 'the agent cannot complete');
  }
  assert.equal(
    (await person.post(handoffsPath(server, `/${firstHandoff.id}/claim`), {})).status,
    403,
    'members cannot claim the hand-off of a consumer',
  );
  const openResponse = await send('GET', `/${firstHandoff.id}`, firstHandoff.secret);
  assert.equal(openResponse.status, 200, openResponse.text);
  assert.equal(openResponse.body.pageOrigin, pages.url, 'the person sees the origin of the page');
  const cookie = openResponse.headers['set-cookie']?.[0]?.split(';', 1)[0] ?? assert.fail();
  assert.match(String(openResponse.headers['set-cookie']), /HttpOnly; SameSite=Strict/);
  const claimRefusal = await send('POST', `/${firstHandoff.id}/claim`, firstHandoff.secret);
  assert.deepEqual([claimRefusal.status, claimRefusal.body.code], [409, 'already_claimed']);
  const claimResponse = await send('POST', `/${firstHandoff.id}/claim`, firstHandoff.secret, cookie);
  assert.equal(claimResponse.status, 200, claimResponse.text);
  const secondClaimRefusal = await send('POST', `/${firstHandoff.id}/claim`, firstHandoff.secret, cookie);
  assert.deepEqual([secondClaimRefusal.status, secondClaimRefusal.body.code], [409, 'handoff_claimed']);
  await sendWithLease(server, claimResponse.body, 'complete', { outcome: 'completed' });
  assert.equal(
    (await send('GET', `/${firstHandoff.id}`, firstHandoff.secret, cookie)).status,
    401,
    'a used link opens nothing',
  );

  const secondHandoff = await requestLink();
  const wrongSecret = firstHandoff.secret;
  for (let tries = 0; tries < 10; tries++)
    assert.equal((await send('GET', `/${secondHandoff.id}`, wrongSecret)).status, 401);
  assert.equal(
    (await send('GET', `/${secondHandoff.id}`, secondHandoff.secret)).status,
    401,
    'a link ends after ten wrong attempts',
  );
  await send('POST', `/${secondHandoff.id}/cancel`, key);

  const { key: foreignKey } = await issueAgentKey(server, { scopes: ['browsers:read', 'handoffs:write'] });
  assert.equal((await send('GET', `/${secondHandoff.id}`, foreignKey)).status, 404, 'another key does not see it');
  assert.equal((await readHandoff(server, key, secondHandoff.id)).status, 'cancelled');
  const { key: readOnly } = await issueAgentKey(server, { scopes: ['browsers:read'] });
  const body = { sessionId: id, instructions: 'x' };
  assert.equal((await server.api('POST', handoffsPath(server), { key: readOnly, body })).status, 403);
  const keepKey = await issueAgentKey(server, {
    scopes: ['browsers:read', 'browsers:write', 'browsers:connect', 'handoffs:write'],
  });
  const unfiledSession = await server.createSession({ keepAlive: true }, keepKey.key);
  const keepRequest = { key: keepKey.key, body: { sessionId: unfiledSession.id, instructions: 'x', record: 'keep' } };
  assert.equal((await server.api('POST', handoffsPath(server), keepRequest)).status, 403, 'keep needs browsers:files');
  const endUserRequest = { key, body: { ...body, claimableBy: { endUser: { providerId: 'hosted', subject: 'u' } } } };
  assert.equal(
    (await server.api('POST', handoffsPath(server), endUserRequest)).status,
    400,
    'consumers do not exist yet',
  );
  await browser.close();
  await server.release(id);
  await server.release(unfiledSession.id);
});

test('a hand-off for a specific consumer can be claimed only by that consumer, and only once', async () => {
  const [kim, lee] = [await lab.signIn('kim@example.com'), await lab.signIn('lee@example.com')];
  const { body: otherApplication } = await person.post<{ id: string }>('/v1/applications', { name: 'Other' });
  const otherLab = await ConsumerFixture.open(server, person, otherApplication.id);
  const foreignKim = await otherLab.signIn('kim@example.com');
  const { id } = await server.createSession({ keepAlive: true }, key);
  for (const endUser of [endUserOf(foreignKim), { providerId: 'hosted', subject: 'nobody' }]) {
    const body = { sessionId: id, instructions: 'x', claimableBy: { endUser } };
    const refusal = await server.api<ErrorBody>('POST', handoffsPath(server), { key, body });
    assert.deepEqual([refusal.status, refusal.body.code], [400, 'invalid_request'], refusal.text);
    assert.match(refusal.text, /claimableBy\.endUser/);
  }
  const handoff = await requestHandoff(server, key, id, { claimableBy: { endUser: endUserOf(kim) } });
  assert.deepEqual([handoff.claimableBy, handoff.consumerId], [['end_user'], kim.consumer.id]);
  assert.equal(handoff.claimUrl, `${server.url}/consumer/${server.applicationId}/handoffs/${handoff.id}`);

  const outcomeOf = ({ status, body }: { status: number; body: unknown }) => [status, Object(body).code];
  for (const name of ['handoffs.get', 'handoffs.claim']) {
    const handoffInput = { id: handoff.id };
    assert.deepEqual(
      outcomeOf(await lab.send(name, handoffInput, lee.accessToken)),
      [404, 'not_found'],
      `${name}, another`,
    );
    assert.deepEqual(
      outcomeOf(await otherLab.send(name, handoffInput, foreignKim.accessToken)),
      [404, 'not_found'],
      `${name}, other`,
    );
    assert.equal(
      (await lab.send(name, handoffInput, foreignKim.accessToken)).status,
      404,
      `${name}, with a token of another application`,
    );
    for (const token of [undefined, key, 'bcs_wrong'])
      assert.equal((await lab.send(name, handoffInput, token)).status, 401, `${name}, ${token}`);
  }
  const listResponse = await lab.send<ConsumerHandoffPage>('handoffs.list', {}, lee.accessToken);
  assert.deepEqual(listResponse.body.data, []);
  const claimPath = handoffsPath(server, `/${handoff.id}/claim`);
  assert.deepEqual(outcomeOf(await person.post(claimPath, {})), [403, 'permission_denied'], 'a member');
  for (const bearer of [key, kim.accessToken, `bhc_${'a'.repeat(43)}`])
    assert.equal((await server.api('POST', claimPath, { key: bearer, body: {} })).status, 401, bearer.slice(0, 4));

  const claimResponses = await Promise.all(
    Array.from({ length: 20 }, () =>
      lab.send<ClaimedHandoff & ErrorBody>('handoffs.claim', { id: handoff.id }, kim.accessToken),
    ),
  );
  const [successfulClaim, ...more] = claimResponses.filter(({ status }) => status === 200);
  assert.ok(successfulClaim && more.length === 0, 'exactly one claim succeeded');
  for (const lost of claimResponses)
    if (lost !== successfulClaim) assert.deepEqual(outcomeOf(lost), [409, 'handoff_claimed']);
  assert.equal((await sendWithLease(server, successfulClaim.body, 'complete', { outcome: 'completed' })).status, 200);
  assert.deepEqual(outcomeOf(await lab.send('handoffs.claim', { id: handoff.id }, kim.accessToken)), [
    409,
    'already_decided',
  ]);
  await server.release(id);
});

test('a consumer loses control of a hand-off if the profile of the consumer is deleted or the consumer session is ended', async () => {
  const [phone, laptop] = [await lab.signIn('sam@example.com'), await lab.signIn('sam@example.com')];
  const { id, browser, page } = await openOtpPage();
  const handoff = await requestHandoff(server, key, id, { claimableBy: { endUser: endUserOf(phone) } });
  const claim = async ({ accessToken }: { accessToken: string }): Promise<ClaimedHandoff> => {
    const response = await lab.send<ClaimedHandoff>('handoffs.claim', { id: handoff.id }, accessToken);
    assert.equal(response.status, 200, response.text);
    return response.body;
  };
  const laptopClaim = await claim(laptop);
  const viewer = await LiveViewer.open(laptopClaim.liveViewUrl);
  await eventually('control of the person', () => viewer.last('control')?.who === 'you' && viewer.frameCount > 0);
  const devicesResponse = await lab.send<ConsumerDevices>('session.list', {}, phone.accessToken);
  const otherDevice = devicesResponse.body.data.find(({ isThis }) => !isThis) ?? assert.fail(devicesResponse.text);
  assert.equal((await lab.send('session.endOne', { id: otherDevice.id }, phone.accessToken)).status, 200);
  const readStatus = async () => (await readHandoff(server, key, handoff.id)).status;
  await eventually('the lease to be taken back', async () => (await readStatus()) === 'requested');
  const renewRefusal = await sendWithLease<ErrorBody>(server, laptopClaim, 'renew');
  assert.deepEqual([renewRefusal.status, renewRefusal.body.code], [409, 'stale_fence']);
  await eventually(
    'the viewer to have no control',
    () => viewer.last('control')?.who !== 'you' || viewer.closeInfo !== undefined,
  );
  if (!viewer.closeInfo) viewer.sendInput({ type: 'text', text: SECRET });
  assert.equal((await lab.send('handoffs.claim', { id: handoff.id }, laptop.accessToken)).status, 401);
  await assert.rejects(LiveViewer.open(laptopClaim.liveViewUrl));

  const phoneClaim = await claim(phone);
  assert.ok(phoneClaim.fence > laptopClaim.fence);
  assert.equal((await lab.send('profile.delete', {}, phone.accessToken)).status, 202);
  await eventually('the hand-off to be cancelled', async () => (await readStatus()) === 'cancelled');
  assert.equal((await sendWithLease(server, phoneClaim, 'renew')).status, 409);
  assert.equal(await page.inputValue('#code'), '', 'the agent has control again, and nothing was typed after the end');
  const newSignIn = await lab.signIn('sam@example.com');
  const listResponse = await lab.send<ConsumerHandoffPage>('handoffs.list', {}, newSignIn.accessToken);
  assert.deepEqual(listResponse.body.data, []);
  assert.equal((await lab.send('handoffs.get', { id: handoff.id }, newSignIn.accessToken)).status, 404);
  await viewer.close();
  await browser.close();
  await server.release(id);
});
