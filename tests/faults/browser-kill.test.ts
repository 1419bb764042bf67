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
import { type BoxProcesses, boxProcessesOf, kill, waitUntilGone } from './victims.ts';

const SERVER_ERROR = -32000;

const pages = await openPages();
const server = await startServer({ pages, env: { BERTH_SLOTS: '1' } });
afterEach(() => releaseAll(server));

const FATAL_KILLS: ReadonlyArray<readonly [string, boolean, (box: BoxProcesses) => number]> = [
  ["the browser's main process", true, box => box.browser],
  ["the browser's main process", false, box => box.browser],
  ["the jail's first process", false, box => box.init],
  ['the bubblewrap process', true, box => box.bwrap],
  ['the timeout process', false, box => box.leader],
];

/** Kills the renderers of the session. A renderer that the browser is closing may already have ended. */
function killRenderers({ id }: CreatedSession): void {
  const killedPids = boxProcessesOf(server, id).renderers.filter(pid => killIfRunning(pid));
  assert.ok(killedPids.length > 0, 'there is a renderer');
}

for (const [name, keepAlive, victim] of FATAL_KILLS)
  test(`killing ${name} (keepAlive ${keepAlive}) ends the session as ERROR / crashed, closes its clients with 4002, and frees the only slot`, async () => {
    const session = await server.createSession({ keepAlive });
    const client = await CdpClient.connect(session.connectUrl);
    const page = await client.attachToPage();
    const pendingCommand = client.ask(
      'Runtime.evaluate',
      { expression: 'new Promise(() => {})', awaitPromise: true },
      page,
    );
    kill(victim(boxProcessesOf(server, session.id)));
    const { code, reason } = await client.waitForClose();
    assert.deepEqual({ code, reason }, { code: 4002, reason: 'session ended: crashed' });
    assert.ok((await withTimeLimit('the pending command to be answered', pendingCommand)).error);
    await assertEnded(server, session.id, 'ERROR', 'crashed');
    const nextSession = await server.createSession();
    assert.ok(await isResponsive(nextSession));
    await server.waitUntilSettled([nextSession.id]);
  });

test('every pending command of many clients gets an error when their browser is killed', async () => {
  const session = await server.createSession({ keepAlive: true });
  const clients = await Promise.all(Array.from({ length: 5 }, () => CdpClient.connect(session.connectUrl)));
  const pendingCommands = await Promise.all(
    clients.map(async client => {
      const page = await client.attachToPage();
      return Array.from({ length: 20 }, () =>
        client.ask('Runtime.evaluate', { expression: 'new Promise(() => {})', awaitPromise: true }, page),
      );
    }),
  );
  kill(boxProcessesOf(server, session.id).browser);
  for (const client of clients) assert.equal((await client.waitForClose()).code, 4002);
  for (const { error } of await Promise.all(pendingCommands.flat())) assert.ok(error);
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
  const pendingCommand = client.ask('Runtime.evaluate', endlessEvaluation, channel);
  await client.evaluate('1', channel); // once this returns, the renderer has received the pending command
  const pageCrash = new Promise<void>(resolve => void page.once('crash', () => resolve()));

  killRenderers(session);
  await client.waitForEvent('Inspector.targetCrashed', event => event.sessionId === channel);
  await withTimeLimit('Playwright to report the crash', pageCrash);
  const { error } = await withTimeLimit('the pending command to be answered', pendingCommand);
  assert.equal(error?.code, SERVER_ERROR);

  const freshPage = await contextOf(browser).newPage();
  await freshPage.goto(`${pages.url}/next`);
  assert.equal(await freshPage.title(), 'Next');
  const otherBrowser = await withTimeLimit('another client to connect', connectPlaywright(session));
  await otherBrowser.close();
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
  await client.waitForEvent('Target.targetCrashed');
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
  const client = await CdpClient.connect(session.connectUrl);
  await client.send('Target.setDiscoverTargets', { discover: true });
  killRenderers(session);
  // Until the browser has detected the crash, the crashed page seems to work for a new client.
  await client.waitForEvent('Target.targetCrashed');
  await client.close();
  const browser = await connectPlaywright(session);
  const page = firstPage(browser);
  await page.goto(`${pages.url}/next`);
  assert.equal(await page.title(), 'Next');
  await browser.close();
  // Chromium may restore the crashed page, so there may be two pages: the restored one and its replacement. Each of
  // them responds.
  for (let times = 0; times < 2; times++) {
    const nextBrowser = await connectPlaywright(session);
    const contextPages = contextOf(nextBrowser).pages();
    assert.ok(contextPages.length === 1 || contextPages.length === 2, `${contextPages.length} pages`);
    for (const each of contextPages)
      assert.equal(await withTimeLimit('the page to answer', each.evaluate('6 * 7')), 42);
    await nextBrowser.close();
  }
});

for (const part of ['gpu', 'network'] as const)
  test(`a session continues when its ${part} process is killed`, async () => {
    const session = await server.createSession({ keepAlive: true });
    const browser = await connectPlaywright(session);
    const page = firstPage(browser);
    await page.goto(`${pages.url}/`);
    // Chromium starts this process on demand and restarts it when it has ended.
    const victimPid = await eventually(
      `a ${part} process to be killed`,
      () => boxProcessesOf(server, session.id)[part],
      pid => killIfRunning(pid),
    );
    await waitUntilGone(Number(victimPid));
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
  kill(boxProcessesOf(server, session.id).browser);
  assert.equal((await client.waitForClose()).code, 4002);
  await assertEnded(server, session.id, 'ERROR', 'crashed');
  assert.ok(await isResponsive(await server.createSession()));
});
