// The log of a session, as a list, a stream and a HAR file. The log records the events of pages regardless of the
// domains that clients enable.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ErrorBody } from '../../contract/common.ts';
import type { SessionLog } from '../../contract/logs.ts';
import { CdpClient } from '../harness/cdp.ts';
import { EventStream } from '../harness/event-stream.ts';
import { assertHar, type HarRecord } from '../harness/har.ts';
import { openPages, type Page } from '../harness/pages.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const WORLD_PAGE = `<!doctype html><title>World</title><link rel="stylesheet" href="/cached.css"><script>
  console.log('first words', 1, { a: 1 });
  console.error('bad');
  setTimeout(() => { throw new Error('boom') }, 0);
  Promise.reject(new TypeError('rejected'));
  const worker = new Worker('/worker.js');
  const socket = new WebSocket('ws://' + location.host + '/ws');
  socket.onopen = () => socket.send('hello');
  socket.onmessage = () => socket.close();
  (async () => {
    await fetch('/redirect-1');
    await fetch('/cached.css');
    await fetch('/missing');
    await fetch('/post', { method: 'POST', body: 'a=b' });
    const given = new AbortController();
    setTimeout(() => given.abort(), 50);
    await fetch('/slow', { signal: given.signal }).catch(() => {});
    console.log('all done');
  })();
</script><iframe src="/frame"></iframe>`;

const pages = await openPages({
  '/world': WORLD_PAGE,
  '/frame': '<!doctype html><title>Frame</title><script>console.log("in the frame")</script>',
  '/popup': '<!doctype html><title>Popup</title><script>console.log("first words of the popup")</script>',
  '/cached.css': (_, response) => {
    response.writeHead(200, { 'content-type': 'text/css', 'cache-control': 'max-age=600' });
    response.end('body{color:red}');
  },
  '/worker.js': (_, response) => {
    response.writeHead(200, { 'content-type': 'text/javascript' });
    response.end("console.log('first words of the worker'); fetch('/from-worker')");
  },
  '/from-worker': 'ok',
  '/post': 'ok',
  '/redirect-1': (_, response) => response.writeHead(302, { location: '/redirect-2' }).end(),
  '/redirect-2': (_, response) => response.writeHead(301, { location: '/final' }).end(),
  '/final': 'final',
  '/slow': () => {},
  '/elsewhere': '<!doctype html><script>console.log("first words of another site"); fetch("/from-elsewhere")</script>',
  '/from-elsewhere': 'ok',
  '/shared.js': scriptOf('first words of the shared worker', '/from-shared'),
  '/from-shared': 'ok',
  '/service.js': scriptOf('first words of the service worker', '/from-service'),
  '/from-service': 'ok',
});
// A frame from another site has its own process. The shared and the service worker belong to no page.
pages.set('/apart', (_, response) => {
  response.writeHead(200, { 'content-type': 'text/html' });
  response.end(`<!doctype html><title>Apart</title><iframe src="${pages.b}/elsewhere"></iframe><script>
    const shared = new SharedWorker('/shared.js');
    navigator.serviceWorker.register('/service.js');
  </script>`);
});

/** Returns a script that logs a message and sends a request. */
function scriptOf(words: string, path: string): Page {
  return (_, response) => {
    response.writeHead(200, { 'content-type': 'text/javascript' });
    response.end(`console.log('${words}'); fetch('${path}')`);
  };
}

const server = await startServer({ clock: 'test', pages, env: { BERTH_SLOTS: '6', BERTH_DISCONNECT_GRACE: '5' } });

const DAY_MS = 24 * 3_600_000;
const pathOf = (id: string, query = ''): string => `/v1/browsers/sessions/${id}/logs${query}`;
const requestLog = (id: string, query = '') => server.api<SessionLog[]>('GET', pathOf(id, query));

async function listEntries(id: string, query = ''): Promise<SessionLog[]> {
  const { status, body, text } = await requestLog(id, query);
  assert.equal(status, 200, text);
  return body;
}

/** Waits until the log has an entry of this kind. All earlier entries are stored by then. */
const waitForEntry = (id: string, what: string, isWanted: (entry: SessionLog) => boolean): Promise<SessionLog[]> =>
  eventually(
    what,
    () => listEntries(id),
    log => log.some(isWanted),
    60_000,
  );

const TIME = '2026-11-26T00:00:00.000Z';
const paramsOf = (entry: SessionLog): Record<string, unknown> => Object(entry.request?.params);
const textOf = (entry: SessionLog): string => JSON.stringify(paramsOf(entry));
const urlOf = (entry: SessionLog): string => String(Object(paramsOf(entry).request).url ?? '');
const findMessage = (entries: readonly SessionLog[], words: string): SessionLog | undefined =>
  entries.find(entry => entry.method === 'Runtime.consoleAPICalled' && textOf(entry).includes(words));
const findRequest = (entries: readonly SessionLog[], path: string): SessionLog | undefined =>
  entries.find(entry => entry.method === 'Network.requestWillBeSent' && urlOf(entry).endsWith(path));
const methodsOf = (log: readonly SessionLog[]): Set<string> => new Set(log.map(({ method }) => method));

async function visitInSession(path: string) {
  const session = await server.createSession();
  const client = await CdpClient.connect(session.connectUrl);
  const page = await client.attachToPage();
  await client.send('Page.navigate', { url: pages.url + path }, page);
  return { session, client, page };
}

const worldVisit = await visitInSession('/world');
await waitForEntry(worldVisit.session.id, 'the page to be done', entry => textOf(entry).includes('all done'));
await worldVisit.client.send(
  'Runtime.evaluate',
  { expression: 'window.open("/popup")', userGesture: true },
  worldVisit.page,
);
const isPopup = (entry: SessionLog): boolean =>
  entry.method === 'Page.lifecycleEvent' && entry.pageId === 1 && entry.request?.params.name === 'load';
await waitForEntry(worldVisit.session.id, 'the popup to be loaded', isPopup);
// The entries of the worker, the frame and the socket may be logged later than other entries.
const isWhole = (entries: readonly SessionLog[]): boolean =>
  ['first words of the worker', 'first words of the popup', 'in the frame'].every(words =>
    findMessage(entries, words),
  ) &&
  findRequest(entries, '/from-worker') !== undefined &&
  methodsOf(entries).has('Network.webSocketClosed');
const log = await eventually('the worker, the frame and the socket', () => listEntries(worldVisit.session.id), isWhole);

test('the log contains console messages of the page, its workers, frames and popups from the start', () => {
  const consoleEntries = log.filter(({ method }) => method === 'Runtime.consoleAPICalled');
  for (const words of ['first words', 'bad', 'in the frame'])
    assert.ok(
      consoleEntries.some(entry => entry.pageId === 0 && textOf(entry).includes(words)),
      words,
    );
  assert.ok(consoleEntries.some(entry => entry.pageId === 0 && textOf(entry).includes('first words of the worker')));
  assert.ok(consoleEntries.some(entry => entry.pageId === 1 && textOf(entry).includes('first words of the popup')));
  const thrown = log.filter(({ method }) => method === 'Runtime.exceptionThrown').map(textOf);
  assert.ok(thrown.some(text => text.includes('boom')) && thrown.some(text => text.includes('rejected')));
  assert.ok(log.some(entry => entry.method === 'Log.entryAdded' && textOf(entry).includes('404')));
});

test('the log contains redirects, cached and failed requests, WebSockets and requests of a worker', () => {
  const requestedUrls = log.filter(({ method }) => method === 'Network.requestWillBeSent').map(urlOf);
  for (const path of [
    '/world',
    '/frame',
    '/redirect-1',
    '/redirect-2',
    '/final',
    '/missing',
    '/post',
    '/slow',
    '/from-worker',
    '/popup',
  ])
    assert.ok(requestedUrls.includes(pages.url + path), path);
  assert.equal(requestedUrls.filter(url => url.endsWith('/cached.css')).length, 2);
  const failed = log.filter(({ method }) => method === 'Network.loadingFailed').map(entry => paramsOf(entry).errorText);
  assert.ok(failed.includes('net::ERR_ABORTED'), failed.join(', '));
  for (const method of [
    'Network.webSocketCreated',
    'Network.webSocketHandshakeResponseReceived',
    'Network.webSocketClosed',
  ])
    assert.ok(methodsOf(log).has(method), method);
  const logText = JSON.stringify(log);
  assert.ok(!logText.includes('"hello"') && !logText.includes('a=b'), 'bodies and messages are not logged');
});

test('the log contains messages and requests of cross-site frames, shared workers and service workers from the start', async () => {
  const { session, client } = await visitInSession('/apart');
  const hasAll = (entries: readonly SessionLog[]): boolean =>
    APART_ENTRIES.every(({ words, path }) => findMessage(entries, words) && findRequest(entries, path));
  const entries = await eventually('the messages and requests of all targets', () => listEntries(session.id), hasAll);
  for (const { words, path, pageId } of APART_ENTRIES)
    assert.deepEqual(
      [findMessage(entries, words)?.pageId, findRequest(entries, path)?.pageId],
      [pageId, pageId],
      words,
    );
  await client.close();
});

const APART_ENTRIES = [
  { words: 'first words of another site', path: '/from-elsewhere', pageId: 0 },
  { words: 'first words of the shared worker', path: '/from-shared', pageId: -1 },
  { words: 'first words of the service worker', path: '/from-service', pageId: -1 },
];

test('log entries have the documented format and a time within the session', () => {
  for (const entry of log) {
    assert.equal(entry.sessionId, worldVisit.session.id);
    assert.ok(Number.isInteger(entry.pageId));
    assert.equal(entry.request?.rawBody, JSON.stringify(entry.request?.params));
    assert.equal(entry.request?.timestamp, entry.timestamp);
  }
  const navigated = log.find(entry => entry.method === 'Page.frameNavigated' && textOf(entry).includes('/world'));
  assert.ok(navigated?.frameId && navigated.loaderId);
  const createdMs = Date.parse(worldVisit.session.createdAt);
  assert.ok(log.every(({ timestamp = 0 }) => timestamp >= createdMs && timestamp <= Date.now()));
});

test('the log can be filtered by kind, and is paginated', async () => {
  const { id } = worldVisit.session;
  const consoleEntries = await listEntries(id, '?type=console');
  assert.deepEqual([...methodsOf(consoleEntries)].sort(), [
    'Log.entryAdded',
    'Runtime.consoleAPICalled',
    'Runtime.exceptionThrown',
  ]);
  const both = await listEntries(id, '?type=console,page');
  assert.ok(both.length > consoleEntries.length && !methodsOf(both).has('Network.requestWillBeSent'));
  const pagedEntries: SessionLog[] = [];
  let cursor = '0';
  for (let more = true; more; ) {
    const reply = await requestLog(id, `?after=${cursor}&limit=7`);
    pagedEntries.push(...reply.body);
    cursor = String(reply.headers['x-next-after']);
    more = reply.body.length > 0;
  }
  assert.deepEqual(pagedEntries.slice(0, log.length), log);
  assert.deepEqual((await requestLog(id, `?after=${cursor}`)).body, []);
});

test('the log can be filtered by page and by time', async () => {
  const { id } = worldVisit.session;
  const all = await listEntries(id);
  const popupEntries = await listEntries(id, '?pageId=1');
  assert.ok(popupEntries.length > 0 && popupEntries.length < all.length);
  assert.deepEqual(
    popupEntries,
    all.filter(({ pageId }) => pageId === 1),
  );
  assert.deepEqual(
    await listEntries(id, '?pageId=-1'),
    all.filter(({ pageId }) => pageId === -1),
  );
  const loadedMs = Math.floor(all.find(isPopup)?.timestamp ?? 0);
  const [from, to] = [new Date(loadedMs), new Date(loadedMs + 1)].map(time => time.toISOString());
  const isAtLoad = ({ timestamp = 0 }: SessionLog): boolean => timestamp >= loadedMs && timestamp < loadedMs + 1;
  assert.deepEqual(await listEntries(id, `?from=${from}&to=${to}`), all.filter(isAtLoad));
  assert.ok((await listEntries(id, `?from=${from}&to=${to}&type=page&pageId=1`)).some(isPopup));
  assert.deepEqual(await listEntries(id, `?to=${worldVisit.session.createdAt}`), []);
});

test('a command that is not answered before the session ends is in the log, without a response', async () => {
  const { session, client, page } = await visitInSession('/next');
  const url = `${pages.url}/slow`;
  void client.ask('Page.navigate', { url }, page).catch(() => {});
  await waitForEntry(session.id, 'the request', entry => Object(paramsOf(entry).request).url === url);
  await server.release(session.id);
  const commands = await listEntries(session.id, '?type=command&pageId=0');
  const navigations = commands.filter(entry => entry.method === 'Page.navigate' && paramsOf(entry).url === url);
  assert.deepEqual(
    navigations.map(({ response }) => response),
    [undefined],
  );
});

test('the log contains commands of clients and their results, without typed text', async () => {
  const { session, client, page } = await visitInSession('/next');
  const typedText = 'correct-horse-7';
  await client.evaluate('6 * 7', page);
  await client.ask('Page.navigate', { url: 'file:///etc/passwd' }, page);
  await client.send('Input.insertText', { text: typedText }, page);
  for (const key of ['q', 'Enter']) await client.send('Input.dispatchKeyEvent', { type: 'rawKeyDown', key }, page);
  await client.evaluate(`console.log("you typed", ["correct", "horse", "7"].join("-"))`, page);
  const isEcho = (entry: SessionLog): boolean => textOf(entry).includes('you typed');
  const entries = await waitForEntry(session.id, 'the page to have said it', isEcho);
  const commands = (await listEntries(session.id, '?type=command')).filter(({ response }) => response);
  const commandsOf = (method: string): SessionLog[] => commands.filter(entry => entry.method === method);
  const [navigated, refused] = commandsOf('Page.navigate');
  assert.deepEqual(paramsOf(navigated ?? assert.fail()).url, `${pages.url}/next`);
  assert.ok(navigated?.response?.result.loaderId && navigated.pageId === 0);
  assert.match(JSON.stringify(refused?.response?.result.error), /refused/);
  assert.deepEqual(commandsOf('Runtime.evaluate')[0]?.response?.result.result, {
    type: 'number',
    value: 42,
    description: '42',
  });
  assert.deepEqual(commandsOf('Input.insertText').map(paramsOf), [{ text: '[redacted]' }]);
  assert.deepEqual(
    commandsOf('Input.dispatchKeyEvent').map(entry => paramsOf(entry).key),
    ['[redacted]', 'Enter'],
  );
  assert.ok(!JSON.stringify(entries).includes(typedText) && isEcho(entries.find(isEcho) ?? assert.fail()));
  await server.release(session.id);
});

test("the log contains a navigation that the session's rules refused", async () => {
  const session = await server.createSession({ browserSettings: { allowedDomains: ['a.test'] } });
  const client = await CdpClient.connect(session.connectUrl);
  const page = await client.attachToPage();
  await client.send('Page.navigate', { url: `${pages.b}/next?token=not-this` }, page);
  const isBlocked = ({ method }: SessionLog): boolean => method === 'Page.navigationBlocked';
  const entries = await waitForEntry(session.id, 'the refusal to be logged', isBlocked);
  const blockedEntry = entries.find(isBlocked) ?? assert.fail();
  assert.deepEqual(paramsOf(blockedEntry), { url: `${pages.b}/next?token=[redacted]`, reason: 'allowed_domains' });
  assert.equal(blockedEntry.pageId, 0);
  await server.release(session.id);
});

test('the HAR file of a running session is valid, and contains redirects, failed requests, responses from the cache and WebSockets', async () => {
  const { id } = worldVisit.session;
  const harResponse = await server.api<unknown>('GET', pathOf(id), { headers: { accept: 'application/har+json' } });
  assert.match(String(harResponse.headers['content-type']), /^application\/har\+json/);
  const { log: har } = assertHar(JSON.parse(harResponse.text));
  const at = (path: string): HarRecord =>
    har.entries.find(({ request }) => request.url === pages.url + path) ?? assert.fail(path);
  assert.equal(at('/redirect-1').response.redirectURL, '/redirect-2');
  assert.equal(at('/missing').response.status, 404);
  assert.equal(at('/slow').response._error, 'net::ERR_ABORTED');
  assert.equal(at('/final').response.content.size, 'final'.length);
  assert.equal(at('/worker.js')._resourceType, 'script');
  assert.ok(
    har.entries.some(({ _resourceType, response }) => _resourceType === 'websocket' && response.status === 101),
  );
  assert.ok(
    har.entries.some(({ _fromCache }) => _fromCache !== undefined),
    'the HAR file contains a response from the cache',
  );
  assert.deepEqual(
    har.pages.map(({ title }) => title),
    [`${pages.url}/world`, `${pages.url}/popup`],
  );
  const queryHarResponse = await server.api<unknown>('GET', pathOf(id, '?format=har'));
  assertHar(JSON.parse(queryHarResponse.text));
});

test('the log can be streamed until the session ends, and a stream can continue after a given entry', async () => {
  const { session, client, page } = await visitInSession('/next');
  const headers = { authorization: `Bearer ${server.key}` };
  const stream = await EventStream.open(server.url + pathOf(session.id), headers);
  await stream.waitForEvent('Page.frameNavigated');
  await client.evaluate('console.log("while it runs")', page);
  const consoleEvent = await stream.waitForEvent('Runtime.consoleAPICalled', ({ data }) =>
    JSON.stringify(data).includes('while it runs'),
  );
  await client.evaluate('console.log("the last words")', page);
  await server.release(session.id);
  assert.equal(await stream.waitForEnd(), 'ended');
  const entries = await listEntries(session.id);
  assert.ok(
    textOf(entries.findLast(({ method }) => method === 'Runtime.consoleAPICalled') ?? assert.fail()).includes(
      'the last words',
    ),
  );
  assert.deepEqual(
    stream.events.map(({ data }) => data),
    entries,
  );
  const secondStream = await EventStream.open(server.url + pathOf(session.id), {
    ...headers,
    'last-event-id': consoleEvent.id,
  });
  assert.equal(await secondStream.waitForEnd(), 'ended');
  assert.deepEqual(
    secondStream.events.map(({ data }) => data),
    entries.slice(Number(consoleEvent.id)),
  );
  const endedStreamResponse = await server.api('GET', pathOf(session.id), {
    headers: { accept: 'text/event-stream', 'last-event-id': String(entries.length) },
  });
  assert.equal(endedStreamResponse.status, 204);
});

test('the log can also be read at the path of the compatibility mount, /v1/sessions/{id}/logs', async () => {
  const reply = await server.api<SessionLog[]>('GET', `/v1/sessions/${worldVisit.session.id}/logs`);
  assert.equal(reply.status, 200);
  assert.ok(reply.body.length >= log.length);
});

test('a session with logging disabled has no entries, and the response states that logging is disabled', async () => {
  const session = await server.createSession({ browserSettings: { logSession: false } });
  const client = await CdpClient.connect(session.connectUrl);
  const page = await client.attachToPage();
  await client.evaluate('console.log("nobody hears this")', page);
  for (const look of ['running', 'ended']) {
    const reply = await requestLog(session.id);
    assert.ok(!reply.headers['x-next-after'], 'nothing is stored');
    assert.deepEqual([reply.body, reply.headers['x-logging'], reply.status], [[], 'disabled', 200], look);
    if (look === 'running') await server.release(session.id);
  }
});

test('a request for the log with an invalid query, for an unknown session or without a key is refused', async () => {
  const readRefusal = async (path: string, options = {}): Promise<[number, string]> => {
    const { status, body } = await server.api<ErrorBody>('GET', path, options);
    return [status, body.code];
  };
  const { id } = worldVisit.session;
  assert.deepEqual(await readRefusal(pathOf(id, '?type=console,nonsense')), [400, 'invalid_request']);
  assert.deepEqual(await readRefusal(pathOf(id, '?after=x')), [400, 'invalid_request']);
  assert.deepEqual(await readRefusal(pathOf(id, '?from=yesterday')), [400, 'invalid_request']);
  assert.deepEqual(await readRefusal(pathOf(id, `?from=${TIME}&to=${TIME}`)), [400, 'invalid_request']);
  assert.deepEqual(await readRefusal(pathOf(id, '?pageId=-2')), [400, 'invalid_request']);
  assert.deepEqual(await readRefusal(pathOf(id, '?limit=10001')), [400, 'invalid_request']);
  assert.deepEqual(await readRefusal(pathOf('01a1fa50-5319-7450-a6b3-c787ada50631')), [404, 'not_found']);
  assert.deepEqual(await readRefusal(pathOf(id), { key: null }), [401, 'missing_credentials']);
  assert.deepEqual(await readRefusal(pathOf('01a1fa50-5319-7450-a6b3-c787ada50631', '?format=har')), [
    404,
    'not_found',
  ]);
});

test('the log is deleted a month after the session ends, and is then read as an empty log that is marked as expired', async () => {
  const { session, client } = await visitInSession('/next');
  await waitForEntry(session.id, 'the log to begin', ({ method }) => method === 'Page.frameNavigated');
  for (const { id } of [session, worldVisit.session]) await server.release(id);
  assert.ok((await listEntries(session.id)).length > 0);
  await server.advance(30 * DAY_MS);
  assert.ok((await listEntries(session.id)).length > 0, 'the log still exists after 30 days');
  await server.advance(2 * DAY_MS);
  const reply = await server.eventuallyHourly(
    'the log to be deleted',
    () => requestLog(session.id),
    ({ body }) => body.length === 0,
  );
  assert.deepEqual([reply.status, reply.headers['x-logging']], [200, 'expired']);
  await client.waitForClose();
});
