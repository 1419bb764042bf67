// A browser, or one of its processes, is killed from outside. Chromium replaces some of the processes itself. When the
// whole browser has ended, the session ends, its clients are disconnected, and its slot becomes free.
import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { CdpClient } from '../harness/cdp.ts';
import { killIfRunning } from '../harness/kill-if-there.ts';
import { openPages } from '../harness/pages.ts';
import { type CreatedSession, startServer } from '../harness/server.ts';
import { eventually, withTimeLimit } from '../harness/until.ts';
import { assertEnded, releaseAll } from './aftermath.ts';
import { connectPlaywright, contextOf, firstPage, isResponsive } from './clients.ts';
import { type BoxProcesses, boxOf, kill, waitUntilGone } from './victims.ts';

const SERVER_ERROR = -32000;

const pages = await openPages();
const server = await startServer({ pages, env: { BERTH_SLOTS: '1' } });
afterEach(() => releaseAll(server));

const FATAL: ReadonlyArray<readonly [string, boolean, (box: BoxProcesses) => number]> = [
  ["the browser's main process", true, box => box.browser],
  ["the browser's main process", false, box => box.browser],
  ["the jail's first process", false, box => box.init],
  ['bubblewrap', true, box => box.bwrap],
  ['timeout', false, box => box.leader],
];

/** Kills the renderers of the session. A renderer that the browser is closing may already have ended. */
function killRenderers({ id }: CreatedSession): void {
  const killed = boxOf(server, id).renderers.filter(pid => killIfRunning(pid));
  assert.ok(killed.length > 0, 'there is a renderer');
}

for (const [name, keepAlive, victim] of FATAL)
  test(`killing ${name} (keepAlive ${keepAlive}) ends the session as ERROR / crashed, closes its clients with 4002, and frees the only slot`, async () => {
    const session = await server.createSession({ keepAlive });
    const client = await CdpClient.connect(session.connectUrl);
    const page = await client.attachToPage();
    const pending = client.ask('Runtime.evaluate', { expression: 'new Promise(() => {})', awaitPromise: true }, page);
    kill(victim(boxOf(server, session.id)));
    const { code, reason } = await client.closed();
    assert.deepEqual({ code, reason }, { code: 4002, reason: 'session ended: crashed' });
    assert.ok((await withTimeLimit('the pending command to be answered', pending)).error);
    await assertEnded(server, session.id, 'ERROR', 'crashed');
    const next = await server.createSession();
    assert.ok(await isResponsive(next));
    await server.waitUntilSettled([next.id]);
  });

test('every pending command of many clients gets an error when their browser is killed', async () => {
  const session = await server.createSession({ keepAlive: true });
  const clients = await Promise.all(Array.from({ length: 5 }, () => CdpClient.connect(session.connectUrl)));
  const asked = await Promise.all(
    clients.map(async client => {
      const page = await client.attachToPage();
      return Array.from({ length: 20 }, () =>
        client.ask('Runtime.evaluate', { expression: 'new Promise(() => {})', awaitPromise: true }, page),
      );
    }),
  );
  kill(boxOf(server, session.id).browser);
  for (const client of clients) assert.equal((await client.closed()).code, 4002);
  for (const { error } of await Promise.all(asked.flat())) assert.ok(error);
  await assertEnded(server, session.id, 'ERROR', 'crashed');
  await server.waitUntilSettled();
});

test('the pending command of a killed renderer gets an error, and the session continues', async () => {
  const session = await server.createSession({ keepAlive: true });
  const browser = await connectPlaywright(session);
  const page = firstPage(browser);
  await page.goto(`${pages.url}/`);
  const client = await CdpClient.connect(session.connectUrl);
  const channel = await client.attachToPage();
  await client.send('Inspector.enable', {}, channel);
  await client.send('Target.setDiscoverTargets', { discover: true });
  const endlessEvaluation = { expression: 'new Promise(() => {})', awaitPromise: true };
  const pending = client.ask('Runtime.evaluate', endlessEvaluation, channel);
  await client.evaluate('1', channel); // once this returns, the renderer has received the pending command
  const crashed = new Promise<void>(resolve => void page.once('crash', () => resolve()));

  killRenderers(session);
  await client.event('Inspector.targetCrashed', event => event.sessionId === channel);
  await withTimeLimit('Playwright to report the crash', crashed);
  const { error } = await withTimeLimit('the pending command to be answered', pending);
  assert.equal(error?.code, SERVER_ERROR);

  const fresh = await contextOf(browser).newPage();
  await fresh.goto(`${pages.url}/next`);
  assert.equal(await fresh.title(), 'Next');
  const other = await withTimeLimit('another client to connect', connectPlaywright(session));
  await other.close();
  await browser.close();
  client.cut();
  assert.equal((await server.read(session.id)).status, 'RUNNING');
});

test('a crashed page works again after a navigation', async () => {
  const session = await server.createSession({ keepAlive: true });
  const client = await CdpClient.connect(session.connectUrl);
  const channel = await client.attachToPage();
  await client.send('Target.setDiscoverTargets', { discover: true });
  killRenderers(session);
  await client.event('Target.targetCrashed');
  await client.send('Page.navigate', { url: `${pages.url}/next` }, channel);
  await eventually(
    'the page to be there',
    () => client.evaluate('document.title', channel).catch(String),
    title => title === 'Next',
  );
  client.cut();
});

test('a client that connects after the only page has crashed finds a working page', async () => {
  const session = await server.createSession({ keepAlive: true });
  const witness = await CdpClient.connect(session.connectUrl);
  await witness.send('Target.setDiscoverTargets', { discover: true });
  killRenderers(session);
  // Until the browser has detected the crash, the crashed page seems to work for a new client.
  await witness.event('Target.targetCrashed');
  await witness.close();
  const browser = await connectPlaywright(session);
  const page = firstPage(browser);
  await page.goto(`${pages.url}/next`);
  assert.equal(await page.title(), 'Next');
  await browser.close();
  // Chromium may restore the crashed page, so there may be two pages: the restored one and its replacement. Each of
  // them responds.
  for (let times = 0; times < 2; times++) {
    const again = await connectPlaywright(session);
    const shown = contextOf(again).pages();
    assert.ok(shown.length === 1 || shown.length === 2, `${shown.length} pages`);
    for (const each of shown) assert.equal(await withTimeLimit('the page to answer', each.evaluate('6 * 7')), 42);
    await again.close();
  }
});

for (const part of ['gpu', 'network'] as const)
  test(`a session continues when its ${part} process is killed`, async () => {
    const session = await server.createSession({ keepAlive: true });
    const browser = await connectPlaywright(session);
    const page = firstPage(browser);
    await page.goto(`${pages.url}/`);
    // Chromium starts this process on demand and restarts it when it has ended.
    const victim = await eventually(
      `a ${part} process to be killed`,
      () => boxOf(server, session.id)[part],
      pid => killIfRunning(pid),
    );
    await waitUntilGone(Number(victim));
    await eventually(
      'pages to load again',
      () => page.goto(`${pages.url}/next`).then(() => page.title(), String),
      title => title === 'Next',
    );
    assert.ok((await page.screenshot()).length > 0);
    await browser.close();
    assert.equal((await server.read(session.id)).status, 'RUNNING');
  });

test('an adopted session ends as ERROR / crashed when its browser is killed', async () => {
  const session = await server.createSession({ keepAlive: true });
  await server.restart();
  const client = await CdpClient.connect(session.connectUrl);
  kill(boxOf(server, session.id).browser);
  assert.equal((await client.closed()).code, 4002);
  await assertEnded(server, session.id, 'ERROR', 'crashed');
  assert.ok(await isResponsive(await server.createSession()));
});
