// Observation of a browser: clients see the same targets and events with and without an observer, and the observer
// misses no message from a popup, frame or worker.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { type BrowserContext, chromium, type Page } from 'playwright-core';
import puppeteer, { type Page as PuppeteerPage } from 'puppeteer-core';
import type { ObservedTarget } from '../../server/engines/browser/observation.ts';
import type { JsonObject } from '../../server/kit/json.ts';
import type { Closeable } from '../../server/kit/scope.ts';
import { type BareBrowser, startBareBrowser } from '../harness/bare-browser.ts';
import { CdpClient } from '../harness/cdp.ts';
import { openPages } from '../harness/pages.ts';
import { eventually } from '../harness/until.ts';

const ROUND_TRIPS = 50;
const POPUP_COUNT = 5;
/**
 * The minimum number of workers that must start. With Playwright attached, Chromium fails to start the worker in about
 * 1 in 100 popups, with or without an observer.
 */
const WORKERS_MIN = 3;
const WORKER_START_TIMEOUT_MS = 15_000;
const SERVICE_WORKER_COUNT = 12;
/**
 * The minimum number of responses that a client must see. Chromium does not report about 1 in 10 responses to a client.
 */
const RESPONSES_MIN = 5;

const pages = await openPages({
  '/opener': '<!doctype html><title>Opener</title>',
  '/popup': `<!doctype html><title>Popup</title><script>
    console.log('first of popup', String(globalThis.put), document.visibilityState, innerWidth, innerHeight);
    new Worker('/worker.js');
  </script>`,
  '/worker.js': (_, response) => {
    response.writeHead(200, { 'content-type': 'text/javascript' });
    response.end("console.log('first of worker'); fetch('/asked-by-worker'); self.onmessage = () => {};");
  },
  '/service.js': (_, response) => {
    response.writeHead(200, { 'content-type': 'text/javascript' });
    response.end('oninstall = () => skipWaiting();');
  },
  '/frames': (_, response) => {
    response.writeHead(200, { 'content-type': 'text/html' });
    response.end(`<!doctype html><title>Frames</title><iframe src="http://localhost:${pages.port}/framed"></iframe>`);
  },
  '/framed': "<!doctype html><script>console.log('first of frame', String(globalThis.put))</script>",
  '/moving': `<!doctype html><style>body{margin:0}</style><script>
    let n = 0; const step = () => { document.body.style.background = 'hsl(' + (n += 7) + ',100%,50%)'; requestAnimationFrame(step); };
    addEventListener('load', step);
  </script>`,
});
const bare = await startBareBrowser();
after(() => bare.close());

interface ObservedEvent {
  readonly target: ObservedTarget;
  readonly method: string;
  readonly params: JsonObject;
}

async function observe({
  browser,
}: BareBrowser): Promise<{ events: ObservedEvent[]; targets: ObservedTarget[] } & Closeable> {
  const events: ObservedEvent[] = [];
  const targets: ObservedTarget[] = [];
  const observation = await browser.observe({
    target: target => {
      targets.push(target);
      target.on((method, params) => void events.push({ target, method, params }));
      for (const method of ['Runtime.enable', 'Network.enable', 'Page.enable', 'Log.enable']) target.post(method);
      if (target.kind === 'page') target.post('Page.startScreencast', { format: 'jpeg', quality: 80 });
    },
  });
  return { events, targets, close: () => observation.close() };
}

/** Runs the work without and then with an observer, and asserts that the results are equal. */
async function withAndWithoutObserver<T>(work: () => Promise<T>): Promise<void> {
  const resultWithout = await work();
  const observation = await observe(bare);
  try {
    assert.deepEqual(await work(), resultWithout);
  } finally {
    await observation.close();
  }
}

async function withPlaywright<T>(work: (context: BrowserContext, page: Page) => Promise<T>): Promise<T> {
  const browser = await chromium.connectOverCDP(bare.url);
  const context = await browser.newContext({ viewport: null });
  try {
    return await work(context, await context.newPage());
  } finally {
    await context.close();
    await browser.close();
  }
}

const consoleMessagesIn = ({ events }: { events: readonly ObservedEvent[] }): string[] =>
  events.filter(({ method }) => method === 'Runtime.consoleAPICalled').map(({ params }) => JSON.stringify(params.args));

test('Playwright sees the same popups, workers and cross-site frames with and without an observer', () =>
  withAndWithoutObserver(() =>
    withPlaywright(async (context, page) => {
      const messages = new Set<string>();
      let workerCount = 0;
      context.on('console', message => {
        messages.add(message.text());
        if (message.text() === 'first of worker') workerCount++;
      });
      await context.addInitScript('globalThis.put = true');
      await page.goto(`${pages.url}/opener`);
      for (let count = 0; count < POPUP_COUNT; count++) {
        const blankPopupEvent = page.waitForEvent('popup');
        assert.equal(await page.evaluate("window.open('about:blank').put"), true);
        await (await blankPopupEvent).close();
        const workersBefore = workerCount;
        const popupEvent = page.waitForEvent('popup');
        await page.evaluate("void window.open('/popup')");
        const popup = await popupEvent;
        await popup.waitForLoadState();
        await eventually('its worker', () => workerCount > workersBefore, Boolean, WORKER_START_TIMEOUT_MS).catch(
          () => {},
        );
        await popup.close();
      }
      assert.ok(workerCount >= WORKERS_MIN, `${workerCount} workers were reported`);
      await page.goto(`${pages.url}/frames`);
      await eventually('the first message of the frame', () => messages.has('first of frame true'));
      const stateExpression =
        'JSON.stringify([document.visibilityState, document.hasFocus(), innerWidth, innerHeight, devicePixelRatio])';
      return {
        said: [...messages].filter(text => text.startsWith('first of')).sort(),
        state: await page.evaluate(stateExpression),
      };
    }),
  ));

test('Puppeteer sees the same targets with and without an observer', () =>
  withAndWithoutObserver(async () => {
    const browser = await puppeteer.connect({ browserWSEndpoint: bare.url, defaultViewport: null });
    try {
      const page = await browser.newPage();
      await page.evaluateOnNewDocument('globalThis.put = true');
      await page.goto(`${pages.url}/opener`);
      const observations: unknown[] = [await page.evaluate('globalThis.put')];
      for (let count = 0; count < POPUP_COUNT; count++) {
        const popupEvent = new Promise<PuppeteerPage | null>(resolve => page.once('popup', resolve));
        observations.push(await page.evaluate("String(window.open('/popup'))"));
        const popup = await popupEvent;
        // A page that is still loading has no title.
        const readTitle = () => popup?.title().catch(() => '');
        observations.push(await eventually('the title of the popup', readTitle, text => text === 'Popup'));
      }
      observations.push(await page.evaluate('JSON.stringify([document.visibilityState, innerWidth, innerHeight])'));
      for (const one of (await browser.pages()).slice(1)) await one.close();
      return observations;
    } finally {
      await browser.disconnect();
    }
  }));

test("a client that enables Network before it resumes a service worker sees the response of the worker's script", async () => {
  const observation = await observe(bare);
  const client = await CdpClient.connect(bare.url);
  try {
    client.onMessage(({ method, params }) => {
      if (method !== 'Target.attachedToTarget') return;
      const workerChannel = String(params?.sessionId);
      for (const each of ['Runtime.enable', 'Network.enable', 'Runtime.runIfWaitingForDebugger'])
        client.ask(each, {}, workerChannel).catch(() => {});
    });
    const filter = [{ type: 'service_worker' }, { exclude: true }];
    const attachParams = { autoAttach: true, waitForDebuggerOnStart: true, flatten: true, filter };
    await client.send('Target.setAutoAttach', attachParams);
    const { targetId } = await client.send('Target.createTarget', { url: `${pages.url}/opener` });
    const { sessionId } = await client.send('Target.attachToTarget', { targetId, flatten: true });
    await client.waitForValue('the page', "document.title === 'Opener'", String(sessionId));
    for (let count = 0; count < SERVICE_WORKER_COUNT; count++) {
      const registerExpression = `navigator.serviceWorker.register('/service.js?${count}', { scope: '/scope-${count}/' }).then(() => true)`;
      assert.equal(await client.evaluate(registerExpression, String(sessionId)), true);
    }
    const eventsOf = (event: string) => client.events.filter(({ method }) => method === event);
    await eventually(
      'every script to be loaded',
      () => eventsOf('Network.loadingFinished').length,
      loaded => loaded >= SERVICE_WORKER_COUNT,
    );
    const reportedCount = eventsOf('Network.responseReceived').length;
    assert.ok(reportedCount >= RESPONSES_MIN, `${reportedCount} responses of ${SERVICE_WORKER_COUNT} were reported`);
    await client.send('Target.closeTarget', { targetId });
  } finally {
    await client.close();
    await observation.close();
  }
});

test('a raw client sees the same windows, focus and screencast with and without an observer', () =>
  withAndWithoutObserver(async () => {
    const client = await CdpClient.connect(bare.url);
    const readPages = async () => {
      const { targetInfos } = await client.send('Target.getTargets');
      const all = targetInfos as Array<{ type: string; targetId: string; openerId?: string }>;
      return all.filter(one => one.type === 'page');
    };
    // One of the earlier pages may still be closing.
    const earlierIds = new Set((await readPages()).map(one => one.targetId));
    const { targetId } = await client.send('Target.createTarget', { url: `${pages.url}/moving` });
    const { sessionId } = await client.send('Target.attachToTarget', { targetId, flatten: true });
    const page = String(sessionId);
    await client.send('Page.startScreencast', { format: 'jpeg', quality: 20, maxWidth: 320, maxHeight: 320 }, page);
    const frame = await client.waitForEvent('Page.screencastFrame');
    const { deviceWidth, deviceHeight } = (frame.params?.metadata ?? {}) as Record<string, unknown>;
    const nextFrame = client.next('another frame', ({ method }) => method === 'Page.screencastFrame');
    await client.send('Page.screencastFrameAck', { sessionId: frame.params?.sessionId }, page);
    await nextFrame;
    await client.send('Page.stopScreencast', {}, page);
    const openReply = await client.ask(
      'Runtime.evaluate',
      { expression: "String(window.open('about:blank'))", userGesture: true },
      page,
    );
    const state = await client.evaluate(
      '[document.visibilityState, document.hasFocus(), innerWidth, innerHeight]',
      page,
    );
    const ownIds = (await readPages()).map(one => one.targetId).filter(id => !earlierIds.has(id));
    for (const one of ownIds) await client.send('Target.closeTarget', { targetId: one });
    // A page that is closing is still listed for a moment.
    await eventually('the pages to be closed', readPages, left => !left.some(one => ownIds.includes(one.targetId)));
    await client.close();
    return { opened: openReply.result, state, deviceWidth, deviceHeight, pages: ownIds.length };
  }));

test('an observer sees the first message and the first request of popups, workers and frames', async () => {
  const observation = await observe(bare);
  const client = await CdpClient.connect(bare.url);
  const page = await client.attachToPage();
  await client.send('Page.navigate', { url: `${pages.url}/opener` }, page);
  await client.send('Runtime.evaluate', { expression: "void window.open('/popup')", userGesture: true }, page);
  await client.send('Page.navigate', { url: `${pages.url}/frames` }, page);
  const expectedMessages = ['first of popup', 'first of worker', 'first of frame'];
  await eventually(
    'the first messages of popup, worker and frame',
    () => consoleMessagesIn(observation).join('\n'),
    said => expectedMessages.every(one => said.includes(one)),
  );
  const wasRequested = (path: string): boolean =>
    observation.events.some(
      ({ method, params }) => method === 'Network.requestWillBeSent' && JSON.stringify(params.request).includes(path),
    );
  for (const path of ['/popup', '/framed', '/asked-by-worker'])
    await eventually(`${path} to be requested`, () => wasRequested(path));
  const kinds = observation.targets.map(({ kind, isNew }) => `${kind} ${isNew}`);
  for (const kind of ['page true', 'worker true', 'iframe true']) assert.ok(kinds.includes(kind), kinds.join());
  const worker = observation.targets.find(target => target.kind === 'worker');
  assert.equal(worker?.parent?.kind, 'page');
  await client.close();
  await observation.close();
});

test('targets that a client has paused are resumed when the client disconnects', async () => {
  const observation = await observe(bare);
  const pausingClient = await CdpClient.connect(bare.url);
  const client = await CdpClient.connect(bare.url);
  const page = await client.attachToPage();
  await pausingClient.send('Target.setAutoAttach', { autoAttach: true, waitForDebuggerOnStart: true, flatten: true });
  let isOpen = false;
  const pendingOpen = client
    .ask('Runtime.evaluate', { expression: "String(window.open('about:blank'))", userGesture: true }, page)
    .then(reply => {
      isOpen = true;
      return reply;
    });
  await pausingClient.waitForEvent('Target.attachedToTarget', ({ params }) => params?.waitingForDebugger === true);
  for (let turn = 0; turn < ROUND_TRIPS; turn++) await client.send('Browser.getVersion');
  assert.equal(isOpen, false, 'the target is paused by the client');
  pausingClient.cut();
  assert.deepEqual((await pendingOpen).result?.result, { type: 'string', value: '[object Window]' });
  await client.close();
  await observation.close();
});

test('an adopted browser can open a window, and an observer then finds the existing pages', async () => {
  await observe(bare); // This observation ends when `adopt` disconnects the engine.
  await bare.adopt();
  const client = await CdpClient.connect(bare.url);
  const page = await client.attachToPage();
  const expression = "String(window.open('about:blank'))";
  const reply = await client.ask('Runtime.evaluate', { expression, userGesture: true }, page);
  assert.deepEqual(reply.result?.result, { type: 'string', value: '[object Window]' });
  const observation = await observe(bare);
  assert.ok(observation.targets.filter(target => target.kind === 'page').length >= 2);
  assert.ok(observation.targets.every(target => !target.isNew));
  await client.close();
  await observation.close();
});
