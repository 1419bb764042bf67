// Pages that produce malformed values: URLs that are not strings, are deeply nested, or are as long as Chromium allows.
// The server and other sessions keep running.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SessionEventPage } from '../../contract/events.ts';
import type { SessionLog } from '../../contract/logs.ts';
import { CdpClient } from '../harness/cdp.ts';
import { openPages } from '../harness/pages.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

/** Expressions that make a page produce an entry of the session's log. */
const LOG_SCRIPTS: Readonly<Record<string, string>> = {
  'a console message whose address has a lone surrogate': String.raw`console.log('http://a/?u=/\ud800?token=x')`,
  'a console message with lone surrogates alone': String.raw`console.log('\udfff\ud800 token=\ud800', { '\ud800': '\udc00' })`,
  'a console message with a nested address': `console.log('http://a/' + '?u=/'.repeat(4000))`,
  'an error with a nested address': `setTimeout(() => { throw new Error('http://a/' + '?u=/'.repeat(4000)) })`,
  'a complaint of the browser about a nested address': `document.body.append(Object.assign(new Image(), { src: 'http://a.test:1/' + '?u=/'.repeat(4000) }))`,
  'an address of its own that is nested': `history.pushState(null, '', '/' + '?u=/'.repeat(4000))`,
  'an address of its own with a lone surrogate in it': String.raw`history.pushState(null, '', '/?u=/%ED%A0%80\ud800?token=x')`,
  'a fragment that is nested': `void (location.hash = '?u=/'.repeat(4000))`,
  'a title that is no text': String.raw`void (document.title = '\ud800'.repeat(5000))`,
  'a request for a nested address': `void fetch('/api?' + 'u=/?'.repeat(100_000)).catch(() => {})`,
  'a request for an address of escapes': `void fetch('/api?u=' + encodeURIComponent('/' + '?u=/'.repeat(2000))).catch(() => {})`,
  'a request whose header is nested': `void fetch('/api', { headers: { 'x-link': 'http://a/' + '?u=/'.repeat(2000) } }).catch(() => {})`,
  'a redirect to a nested address': `void fetch('/nested').catch(() => {})`,
  'credentials in words that repeat without end': `console.log('-eyJaaaaaa'.repeat(100_000)), console.log('token '.repeat(100_000))`,
};

const PAGES_MAX = 200;
/** The server resumes a page with an opener before it closes the page. */
const WINDOW_FEATURES = ['', 'popup', 'noopener', 'noopener,popup'];
const PAGES_BEYOND = 2 * WINDOW_FEATURES.length;

const pages = await openPages({
  '/hostile': '<!doctype html><title>Hostile</title><body></body>',
  '/api': (_, response) => void response.end('{}'),
  '/nested': (_, response) => {
    response.writeHead(302, { location: `/api?${'u=/?'.repeat(3000)}`, link: `<${'?u=/'.repeat(2000)}>` }).end();
  },
});
const server = await startServer({ pages, env: { BERTH_SLOTS: '4' } });

test('the server process and another session keep running when a page produces malformed values', async () => {
  const neighbourSession = await server.createSession({ keepAlive: true });
  const neighbourClient = await CdpClient.connect(neighbourSession.connectUrl);
  const neighbourChannel = await neighbourClient.attachToPage();
  await neighbourClient.evaluate('void (globalThis.kept = 42)', neighbourChannel);
  const { id, connectUrl } = await server.createSession({ keepAlive: true });
  const client = await CdpClient.connect(connectUrl);
  const page = await client.attachToPage();
  await client.visit(`${pages.url}/hostile`, page);
  const { pid } = server;

  for (const [what, script] of Object.entries(LOG_SCRIPTS)) {
    await client.evaluate(script, page);
    await client.evaluate(`console.log(${JSON.stringify(`said: ${what}`)})`, page);
    assert.equal(await neighbourClient.evaluate('kept', neighbourChannel), 42, what);
  }
  for (const what of Object.keys(LOG_SCRIPTS))
    await eventually(`the entry after ${what} in the log`, () => isLogged(id, `said: ${what}`));
  assert.equal((await server.api('GET', '/healthz')).status, 200);
  assert.equal(server.pid, pid);
  const harResponse = await server.api('GET', `/v1/browsers/sessions/${id}/logs?format=har`);
  assert.equal(harResponse.status, 200);
  assert.ok(JSON.parse(harResponse.text).log.entries.length > 0);

  // After a restart the browsers send their console messages again.
  await server.restart();
  assert.equal(await readKept(neighbourSession.connectUrl), 42);
  assert.equal((await server.read(id)).status, 'RUNNING');
  assert.ok(!server.log().some(line => line.includes('unhandled_rejection')), 'an unhandled rejection');
  await server.release(id);
  await server.release(neighbourSession.id);
});

async function isLogged(id: string, words: string): Promise<boolean> {
  const { status, text } = await server.api<SessionLog[]>('GET', `/v1/browsers/sessions/${id}/logs?type=console`);
  assert.equal(status, 200, text);
  return text.includes(words);
}

async function readKept(connectUrl: string): Promise<unknown> {
  const client = await CdpClient.connect(connectUrl);
  const value = await client.evaluate('kept', await client.attachToPage());
  await client.close();
  return value;
}

test('a session has at most 200 pages even if a page opens a window at each click, and the session can still be released', async () => {
  const { id, connectUrl } = await server.createSession({ keepAlive: true });
  const client = await CdpClient.connect(connectUrl);
  const page = await client.attachToPage();
  await client.visit(`${pages.url}/hostile`, page);
  for (let n = 1; n < PAGES_MAX; n++) await openWindow(client, page);
  // From now on new pages, or their tabs, wait until the client resumes them, which it never does.
  for (const filter of [[{ type: 'page' }], [{ type: 'page', exclude: true }, {}]]) {
    const holdParams = { autoAttach: true, waitForDebuggerOnStart: true, flatten: true, filter };
    await client.send('Target.setAutoAttach', holdParams);
    for (const features of WINDOW_FEATURES) await openWindow(client, page, features);
  }
  const path = `/v1/browsers/sessions/${id}/events?type=page.refused`;
  const lastDetail = async () => (await server.api<SessionEventPage>('GET', path)).body.data.at(-1)?.detail;
  await eventually('the refused pages to be reported', lastDetail, last => last?.total === PAGES_BEYOND);
  await eventually('the refused pages to close', async () => (await pageIdsOf(client)).length === PAGES_MAX);
  await assert.rejects(client.send('Target.createTarget', { url: 'about:blank' }), /already has 200 pages/);
  await server.kill();
  await server.start();
  const secondClient = await CdpClient.connect(connectUrl);
  assert.equal((await pageIdsOf(secondClient)).length, PAGES_MAX, 'the next server keeps all pages');
  const [anyPageId] = await pageIdsOf(secondClient);
  await secondClient.send('Target.closeTarget', { targetId: anyPageId });
  await eventually('a page to be created', async () => {
    const { error } = await secondClient.ask('Target.createTarget', { url: 'about:blank' });
    return error === undefined;
  });
  const release = await server.api('POST', `/v1/browsers/sessions/${id}`, { body: { status: 'REQUEST_RELEASE' } });
  assert.equal(release.status, 200, release.text);
});

/** Chromium permits one window for each user gesture. */
async function openWindow(client: CdpClient, channel: string, features = ''): Promise<void> {
  const expression = `void open('about:blank', '', '${features}')`;
  await client.send('Runtime.evaluate', { expression, userGesture: true }, channel);
}

async function pageIdsOf(client: CdpClient): Promise<readonly unknown[]> {
  const { targetInfos } = await client.send('Target.getTargets');
  const targets = Array.isArray(targetInfos) ? targetInfos : [];
  return targets.flatMap(target => (target.type === 'page' ? [target.targetId] : []));
}
