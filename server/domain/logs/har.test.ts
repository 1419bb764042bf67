import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { assertHar, type HarFile, type HarRecord } from '../../../tests/harness/har.ts';
import { BrowserEntries, kindOf } from './browser-entries.ts';
import type { LogEntry } from './entry.ts';
import { harOf } from './har.ts';

interface CapturedEvent {
  readonly at: number;
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
}

/** Events of Chromium 156 for a page with a frame, a worker, a socket, redirects, cached and failed requests. */
const CAPTURED_EVENTS: readonly CapturedEvent[] = JSON.parse(
  readFileSync(new URL('captured.json', import.meta.url), 'utf8'),
);

const logEntriesOf = (captured: readonly CapturedEvent[] = CAPTURED_EVENTS): LogEntry[] => {
  const browser = new BrowserEntries();
  return captured.flatMap(({ method, params, at }) => {
    const kind = kindOf(method);
    const entry = kind && browser.of(kind, method, params, at);
    return entry ? [{ ...entry, page: 0 }] : [];
  });
};

async function buildHar(log: readonly LogEntry[]): Promise<{ har: HarFile; text: string }> {
  async function* each() {
    yield* log;
  }
  let text = '';
  for await (const piece of harOf(each(), '0.1.0')) text += piece;
  return { har: assertHar(JSON.parse(text)), text };
}

const pathOf = ({ request }: HarRecord): string => new URL(request.url).pathname;
const outcomeOf = (entry: HarRecord): string => `${pathOf(entry)} ${entry.response.status}`;

test('a HAR file lists every request and redirect with its status', async () => {
  const { har } = await buildHar(logEntriesOf());
  assert.deepEqual(
    har.log.entries.map(outcomeOf).sort(),
    [
      '/ 200',
      '/abort 0',
      '/cached.css 200',
      '/cached.css 200',
      '/favicon.ico 404',
      '/final 200',
      '/frame 200',
      '/frame 200',
      '/from-worker 200',
      '/missing 404',
      '/post 200',
      '/redirect1 302',
      '/redirect2 301',
      '/worker.js 200',
      '/ws 101',
      '/x 0',
      '/ 0',
    ].sort(),
  );
});

test('a HAR file describes cached, failed and redirected requests and WebSockets as DevTools does', async () => {
  const { har } = await buildHar(logEntriesOf());
  const entryAt = (path: string): HarRecord =>
    har.log.entries.find(entry => pathOf(entry) === path) ?? assert.fail(path);
  const cachedEntries = har.log.entries.filter(entry => pathOf(entry) === '/cached.css');
  assert.deepEqual(cachedEntries.map(({ _fromCache }) => _fromCache).sort(), ['disk', undefined]);
  assert.deepEqual(
    cachedEntries.map(({ response }) => response.content.size),
    [15, 15],
  );
  assert.equal(entryAt('/abort').response._error, 'net::ERR_EMPTY_RESPONSE');
  assert.equal(entryAt('/redirect1').response.redirectURL, '/redirect2');
  assert.equal(entryAt('/ws')._resourceType, 'websocket');
  assert.deepEqual(entryAt('/ws')._webSocketMessages, []);
  assert.equal(entryAt('/worker.js')._resourceType, 'script');
  assert.ok(
    entryAt('/').request.headers.some(({ name }) => name === 'Sec-Fetch-Dest'),
    'headers as they were sent',
  );
  assert.ok((entryAt('/').timings.wait ?? 0) > 5, 'the time until the response began');
});

test('a HAR file lists the loads of main frames as pages, with their requests', async () => {
  const { har } = await buildHar(logEntriesOf());
  const paths = har.log.pages.map(({ title }) => new URL(title).pathname);
  assert.deepEqual(paths, ['/', '/frame']);
  const [home, second] = har.log.pages;
  assert.ok(home && second);
  assert.ok(home.pageTimings.onLoad > 0);
  const secondPageEntries = har.log.entries.filter(({ pageref }) => pageref === second.id);
  assert.deepEqual(secondPageEntries.map(pathOf).sort(), ['/frame', '/x']);
  assert.ok(har.log.entries.filter(({ pageref }) => pageref === home.id).length >= 12);
});

test('neither the log entries nor the HAR file contain secrets from the captured events', async () => {
  const { text } = await buildHar(logEntriesOf());
  for (const said of [text, JSON.stringify(logEntriesOf())]) assert.doesNotMatch(said, /SECRET/);
  assert.match(JSON.stringify(CAPTURED_EVENTS), /SECRETCOOKIE.*SECRETBEARER/);
});

test('a HAR file is valid even if it is created from a truncated log with unfinished requests', async () => {
  const log = logEntriesOf();
  for (let end = 0; end < log.length; end += 7) await buildHar(log.slice(0, end));
  for (let begin = 0; begin < log.length; begin += 7) await buildHar(log.slice(begin));
});
