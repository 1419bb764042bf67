// Expensive requests do not delay other callers. This is measured with the server's own log of long turns of the event
// loop, in CPU time, so that a busy machine does not matter.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { test } from 'node:test';
import { setTimeout as timer } from 'node:timers/promises';
import type { Context, StorageState } from '../../contract/contexts.ts';
import { CdpClient } from '../harness/cdp.ts';
import { createContext, persistentBody, waitForVersion } from '../harness/contexts.ts';
import { runOnPage } from '../harness/logged-in.ts';
import { createOtherApplicationKey } from '../harness/other-application.ts';
import { openPages } from '../harness/pages.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';
import { uploadRequest } from '../harness/upload.ts';

/** The number of characters in localStorage, close to the maximum that a site may store. Each takes six bytes in JSON. */
const STORED_CHARS = 4_500_000;
const CERTIFICATE_FILE_BYTES = 900_000;
/** Parsing this many values takes a third of a second. */
const MESSAGE_VALUES = 12_000_000;
/** The number of characters that a page logs. Each takes six bytes in JSON. */
const LOGGED_CHARS = 8_000_000;
/** The longest acceptable turn, which is as long as a garbage collection can take. */
const TURN_CPU_MS_MAX = 200;
/** How long a log line of the server may take to arrive. */
const LOG_DELAY_MS = 500;

const CONTEXTS = '/v1/browsers/contexts';
/** The maximum number of concurrent exports per application. */
const CONCURRENT_EXPORTS_MAX = 2;

const pages = await openPages();
const server = await startServer({ pages });
const neighbourSession = await server.createSession({ keepAlive: true });
const client = await CdpClient.connect(neighbourSession.connectUrl);
const page = await client.attachToPage();

const statePath = (context: string): string => `${CONTEXTS}/${context}/storage-state`;

/** Starts a request, and returns the response without reading its body. */
async function requestUnread(path: string): Promise<IncomingMessage> {
  const outgoingRequest = get(`${server.url}${path}`, {
    agent: false,
    headers: { authorization: `Bearer ${server.key}` },
  });
  const [reply]: IncomingMessage[] = await once(outgoingRequest, 'response');
  assert.equal(reply?.statusCode, 200);
  reply.on('error', () => {}); // The test destroys the response.
  return reply;
}

interface Observation<T> {
  readonly result: T;
  /** The number of responses that another session got while the work was running. */
  readonly responseCount: number;
  readonly longestCpuMs: number;
}

/** Runs the work while another session sends one command after another. */
async function runBesideOtherSession<T>(work: () => Promise<T>): Promise<Observation<T>> {
  const linesBefore = server.log().length;
  let isOver = false;
  const resultPromise = work().finally(() => {
    isOver = true;
  });
  resultPromise.catch(() => {});
  let responseCount = 0;
  for (; !isOver; responseCount++) {
    await client.evaluate('1 + 1', page);
    await timer(5);
  }
  const result = await resultPromise;
  await timer(LOG_DELAY_MS);
  const turnLines = server
    .log()
    .slice(linesBefore)
    .filter(line => line.includes('"loop.long_turn"'));
  const cpuMs = turnLines.map(line => Number(/"cpuMs":(\d+)/.exec(line)?.[1]));
  return { result, responseCount, longestCpuMs: Math.max(0, ...cpuMs) };
}

const { id: largeContext } = await createContext(server);

test('the storage of a large context is exported without delaying other sessions', async () => {
  const session = await server.createSession(persistentBody(largeContext));
  const sites = [pages.url, pages.a, pages.b];
  await runOnPage(session.connectUrl, async tab => {
    for (const site of sites) {
      await tab.goto(`${site}/`);
      await tab.evaluate(`localStorage.setItem('stored', '\\x01'.repeat(${STORED_CHARS}))`);
    }
  });
  await waitForVersion(server, largeContext, 1);
  const { result, responseCount, longestCpuMs } = await runBesideOtherSession(() =>
    server.api<StorageState>('GET', statePath(largeContext)),
  );
  assert.equal(result.status, 200, result.text.slice(0, 500));
  const storedLengths = result.body.origins.map(({ origin, localStorage }) => [origin, localStorage[0]?.value.length]);
  assert.deepEqual(storedLengths.sort(), sites.map(site => [site, STORED_CHARS]).sort());
  assert.equal(result.headers['content-length'], String(Buffer.byteLength(result.text)));
  assert.ok(longestCpuMs < TURN_CPU_MS_MAX, `a turn of ${longestCpuMs} ms`);
  assert.ok(responseCount > 5, `another session got only ${responseCount} responses meanwhile`);
});

test('exports whose responses are not read count towards the limit of concurrent exports of an application, and other applications are still served', async () => {
  const unreadResponses = await Promise.all(
    Array.from({ length: CONCURRENT_EXPORTS_MAX }, () => requestUnread(statePath(largeContext))),
  );
  const refusal = await server.api('GET', statePath(largeContext));
  assert.equal(refusal.status, 429, refusal.text.slice(0, 500));
  assert.equal(refusal.body.code, 'rate_limited');
  const key = await createOtherApplicationKey(server);
  const contextResponse = await server.api<Context>('POST', CONTEXTS, { key, body: {} });
  const stateResponse = await server.api('GET', statePath(contextResponse.body.id), { key });
  assert.deepEqual(stateResponse.body, { cookies: [], origins: [] });
  for (const reply of unreadResponses) reply.destroy();
  await eventually(
    'the concurrent exports to end',
    () => server.api('HEAD', statePath(largeContext)),
    ({ status }) => status === 200,
  );
});

test('a large file of incomplete certificates is refused without delaying other sessions', async () => {
  const beginLine = '-----BEGIN CERTIFICATE-----\n';
  const body = await uploadRequest('ca.pem', beginLine.repeat(CERTIFICATE_FILE_BYTES / beginLine.length));
  const { result, longestCpuMs } = await runBesideOtherSession(() =>
    server.api('POST', '/v1/browsers/certificates', body),
  );
  assert.equal(result.status, 400);
  assert.equal(result.body.code, 'invalid_file');
  assert.ok(longestCpuMs < TURN_CPU_MS_MAX, `a turn of ${longestCpuMs} ms`);
});

test('messages with millions of values are handled without delaying other sessions, and later messages get responses', async () => {
  const otherSession = await server.createSession({}, await createOtherApplicationKey(server));
  const sender = await CdpClient.connect(otherSession.connectUrl);
  const values = '1, '.repeat(MESSAGE_VALUES);
  const longMessage = `{"id":900001,"method":"Browser.getVersion","params":{"values":[${values}1]}}`;
  const brokenMessage = `{"id":900002,"method":"Browser.getVersion","params":{"values":[${values}1}}`;
  const watchedMessage = `{"id":900003,"method":"Page.navigate","params":{"url":"about:blank","values":[${values}1]}}`;
  const responses: unknown[] = [];
  sender.onMessage(({ id, error, result }) => responses.push([id, error?.code ?? typeof result]));
  const { longestCpuMs } = await runBesideOtherSession(async () => {
    for (const message of [longMessage, brokenMessage, watchedMessage]) sender.sendRaw(message);
    sender.sendRaw('{"id":900004,"method":"Browser.getVersion"}');
    await sender.next('the last answer', ({ id }) => id === 900_004);
  });
  assert.deepEqual(
    responses.toSorted(),
    [
      [900_001, 'object'],
      [undefined, -32700],
      [900_003, -32000],
      [900_004, 'object'],
    ].toSorted(),
  );
  assert.ok(longestCpuMs < TURN_CPU_MS_MAX, `a turn of ${longestCpuMs} ms`);
  await sender.close();
});

test('console messages and icons of tens of megabytes are dropped without delaying other sessions, and the size of a dropped message is logged', async () => {
  const key = await createOtherApplicationKey(server);
  const { id, connectUrl } = await server.createSession({ keepAlive: true }, key);
  const hostileClient = await CdpClient.connect(connectUrl);
  const hostilePage = await hostileClient.attachToPage();
  const longExpression = `'\\x01'.repeat(${LOGGED_CHARS})`;
  const read = <Body>(path: string) => server.api<Body>('GET', `/v1/browsers/sessions/${id}/${path}`, { key });
  const { result, longestCpuMs } = await runBesideOtherSession(async () => {
    await hostileClient.evaluate(`console.log(${longExpression}); console.log('after it'); 1`, hostilePage);
    await hostileClient.evaluate(`document.querySelectorAll = () => [{ href: ${longExpression} }]; 1`, hostilePage);
    return read<{ pages: Array<{ faviconUrl: string }> }>('debug');
  });
  assert.equal(result.body.pages[0]?.faviconUrl ?? '', '', result.text.slice(0, 500));
  const { text } = await eventually(
    'the message after it to be logged',
    () => read('logs?type=console'),
    reply => reply.text.includes('after it'),
  );
  assert.match(text, /\[\d{8} bytes were logged at once, which is too long for the log\]/);
  assert.ok(longestCpuMs < TURN_CPU_MS_MAX, `a turn of ${longestCpuMs} ms`);
  await hostileClient.close();
});

test('the metrics contain the delay of the event loop', async () => {
  const { text } = await server.fetchFromOperator('/metrics');
  assert.match(text, /^berth_event_loop_delay_seconds_count [1-9]\d*$/m);
});

const BODIES = {
  'a list above its maximum length': `{"proxies":[${'{},'.repeat(300_000)}{}]}`,
  'many unknown fields': `{${Array.from({ length: 80_000 }, (_, at) => `"a${at}":1,`).join('')}"proxies":1}`,
} as const;

for (const [name, body] of Object.entries(BODIES))
  test(`a body with ${name} is refused without delaying other sessions`, async () => {
    const { result, longestCpuMs } = await runBesideOtherSession(() =>
      server.api('POST', '/v1/browsers/sessions', { body }),
    );
    assert.equal(result.status, 400, result.text.slice(0, 500));
    assert.ok(longestCpuMs < TURN_CPU_MS_MAX, `a turn of ${longestCpuMs} ms`);
  });

test('thousands of localStorage entries are imported without delaying other sessions', async () => {
  const { id } = await createContext(server);
  const localStorage = Array.from({ length: 9_900 }, (_, at) => ({ name: `n${at}`, value: 'v' }));
  const origins = ['a', 'b', 'c'].map(site => ({ origin: `https://${site}.example`, localStorage }));
  const body = { cookies: [], origins };
  const { result, longestCpuMs } = await runBesideOtherSession(() =>
    server.api('POST', `/v1/browsers/contexts/${id}/storage-state`, { body }),
  );
  assert.equal(result.status, 200, result.text.slice(0, 500));
  assert.ok(longestCpuMs < TURN_CPU_MS_MAX, `a turn of ${longestCpuMs} ms`);
});
