// Settings of a session, checked where they must apply: the first page, a popup, a new window, workers of each kind,
// and requests to servers. Warm and new browsers must not differ.
import assert from 'node:assert/strict';
import { createServer } from 'node:https';
import { after, test } from 'node:test';
import { type Browser, chromium, type Page } from 'playwright-core';
import { IS_CHROMIUM } from '../harness/engine.ts';
import { openPages } from '../harness/pages.ts';
import { createSelfSignedCert } from '../harness/self-signed.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const SETTINGS = {
  viewport: { width: 1000, height: 650 },
  locale: 'de-DE',
  timezoneId: 'Asia/Tokyo',
  userAgent: 'Agent/1.0 (berth test)',
  geolocation: { latitude: 52.5, longitude: 13.4, accuracy: 5 },
};

/** An expression that reads the settings, for pages and workers. */
const SETTINGS_EXPRESSION = `({
  userAgent: navigator.userAgent,
  language: navigator.language,
  languages: [...navigator.languages].join(),
  locale: Intl.DateTimeFormat().resolvedOptions().locale,
  timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
  number: (1234.5).toLocaleString(),
})`;
const EXPECTED_SETTINGS = {
  userAgent: SETTINGS.userAgent,
  language: 'de-DE',
  languages: 'de-DE,de',
  locale: 'de-DE',
  timeZone: 'Asia/Tokyo',
  number: '1.234,5',
};
/**
 * Shared and service workers are not part of a page. In headless shell, their list of languages contains only the
 * locale (docs/engines.md).
 */
const EXPECTED_OUTSIDE_PAGES = IS_CHROMIUM ? EXPECTED_SETTINGS : { ...EXPECTED_SETTINGS, languages: 'de-DE' };

const serveScript = (source: string) => (_: unknown, response: import('node:http').ServerResponse) => {
  response.writeHead(200, { 'content-type': 'text/javascript' });
  response.end(source);
};

const pages = await openPages({
  // The page reads the settings during parsing, so that a setting that is applied too late is detected.
  '/early': `<!doctype html><title>Early</title><script>globalThis.early = { ...${SETTINGS_EXPRESSION}, width: innerWidth, height: innerHeight }</script>`,
  '/document.pdf': (_, response) => {
    response.writeHead(200, { 'content-type': 'application/pdf' });
    response.end(
      '%PDF-1.1\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj 3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF',
    );
  },
  '/worker.js': serveScript(`postMessage(${SETTINGS_EXPRESSION})`),
  '/shared.js': serveScript(
    `const early = ${SETTINGS_EXPRESSION}; onconnect = event => event.ports[0].postMessage(early)`,
  ),
  '/service.js': serveScript(
    `const early = ${SETTINGS_EXPRESSION}; oninstall = () => skipWaiting(); onactivate = event => event.waitUntil(clients.claim()); onmessage = event => event.source.postMessage(early)`,
  ),
});
const server = await startServer({ pages, env: { BERTH_WARM: '1' } });

async function drive<T>(browserSettings: object, use: (page: Page, browser: Browser) => Promise<T>): Promise<T> {
  const session = await server.createSession({ browserSettings });
  assert.deepEqual(session.warnings, []);
  const browser = await chromium.connectOverCDP(session.connectUrl);
  try {
    const page = browser.contexts()[0]?.pages()[0];
    assert.ok(page, 'the default context has a page');
    return await use(page, browser);
  } finally {
    // The session is released first, because it ends by itself after its client has disconnected.
    await server.release(session.id);
    await browser.close();
  }
}

/** Waits until there are at least this many warm browsers. */
const waitForWarmBrowsers = (count: number): Promise<unknown> =>
  eventually(
    `${count} warm browsers`,
    async () => /^berth_warm_browsers (\d+)$/m.exec(String((await server.fetchFromOperator('/metrics')).text))?.[1],
    found => Number(found) >= count,
    60_000,
  );

const WORKER_SCRIPTS = {
  dedicated: `new Promise(done => { new Worker('/worker.js').onmessage = event => done(event.data) })`,
  shared: `new Promise(done => { new SharedWorker('/shared.js').port.onmessage = event => done(event.data) })`,
  service: `navigator.serviceWorker.register('/service.js').then(() => navigator.serviceWorker.ready).then(registration => new Promise(done => {
    navigator.serviceWorker.onmessage = event => done(event.data);
    registration.active.postMessage('who are you?');
  }))`,
};

for (const browserKind of [
  'a browser started for the session',
  'a warm browser that was started with the same settings',
])
  test(`the settings of a session apply to the first page, a popup and each kind of worker in ${browserKind}`, async () => {
    await drive(SETTINGS, async page => {
      await page.goto(`${pages.url}/early`);
      const { width, height, ...self } = (await page.evaluate('early')) as typeof EXPECTED_SETTINGS & {
        width: number;
        height: number;
      };
      assert.deepEqual(self, EXPECTED_SETTINGS);
      assert.deepEqual({ width, height }, SETTINGS.viewport);
      assert.deepEqual(await page.evaluate('({ width: screen.width, height: screen.height })'), SETTINGS.viewport);

      const popup = page.waitForEvent('popup');
      await page.evaluate(`window.open('${pages.a}/early', '_blank', 'noopener')`);
      await (await popup).waitForFunction('globalThis.early !== undefined');
      const {
        width: popupWidth,
        height: popupHeight,
        ...inPopup
      } = (await (await popup).evaluate('early')) as typeof self & { width: number; height: number };
      assert.deepEqual(inPopup, EXPECTED_SETTINGS);
      assert.deepEqual(
        { width: popupWidth, height: popupHeight },
        SETTINGS.viewport,
        'a new tab has the size of the first',
      );

      for (const [kind, expression] of Object.entries(WORKER_SCRIPTS)) {
        const expected = kind === 'dedicated' ? EXPECTED_SETTINGS : EXPECTED_OUTSIDE_PAGES;
        assert.deepEqual(await page.evaluate(expression), expected, `in a ${kind} worker`);
      }

      await page.goto(`${pages.url}/echo`);
      const { headers } = JSON.parse(await page.innerText('body')) as { headers: Record<string, string> };
      assert.equal(headers['user-agent'], SETTINGS.userAgent);
      assert.match(headers['accept-language'] ?? '', /^de-DE,de/);
    });
    await waitForWarmBrowsers(2);
  });

test('a page and its popup get the geolocation without a permission prompt', async () => {
  await drive(SETTINGS, async page => {
    const locationExpression = `new Promise((done, failed) => navigator.geolocation.getCurrentPosition(({ coords }) => done([coords.latitude, coords.longitude, coords.accuracy]), failed))`;
    await page.goto(`${pages.url}/`);
    assert.deepEqual(await page.evaluate(locationExpression), [52.5, 13.4, 5]);
    const popup = page.waitForEvent('popup');
    await page.evaluate(`void window.open('/next')`);
    await (await popup).waitForURL(`${pages.url}/next`);
    assert.deepEqual(await (await popup).evaluate(locationExpression), [52.5, 13.4, 5]);
  });
});

test('a session keeps its geolocation after the server restarts, including in new pages and browser contexts', async () => {
  const ownServer = await startServer({ pages, env: { BERTH_WARM: '0' } });
  const { connectUrl } = await ownServer.createSession({ keepAlive: true, browserSettings: SETTINGS });
  const read = (page: Page): Promise<unknown> =>
    page.evaluate(
      'new Promise((done, failed) => navigator.geolocation.getCurrentPosition(({ coords }) => done(coords.latitude), failed))',
    );
  const browserBefore = await chromium.connectOverCDP(connectUrl);
  const [oldPage] = browserBefore.contexts()[0]?.pages() ?? [];
  assert.ok(oldPage);
  await oldPage.goto(`${pages.url}/`);
  assert.equal(await read(oldPage), 52.5);
  await ownServer.kill('SIGKILL');
  await ownServer.start();
  const browser = await chromium.connectOverCDP(connectUrl);
  const [samePage] = browser.contexts()[0]?.pages() ?? [];
  assert.ok(samePage);
  assert.equal(await read(samePage), 52.5, 'in the old page');
  for (const context of [browser.contexts()[0], await browser.newContext()]) {
    const page = await context?.newPage();
    assert.ok(page);
    await page.goto(`${pages.url}/`);
    assert.equal(await read(page), 52.5, 'in a new page');
  }
  await browser.close();
});

test("overrides in a client's browser context take effect there, and the first page keeps the session's settings", async () => {
  await drive(SETTINGS, async (page, browser) => {
    const ownContext = await browser.newContext({
      timezoneId: 'America/New_York',
      locale: 'fr-FR',
      viewport: { width: 500, height: 400 },
    });
    const ownPage = await ownContext.newPage();
    await ownPage.goto(`${pages.url}/early`);
    const seen = (await ownPage.evaluate('early')) as Record<string, unknown>;
    assert.deepEqual([seen.timeZone, seen.locale, seen.width], ['America/New_York', 'fr-FR', 500]);
    await ownContext.close();
    await page.goto(`${pages.url}/early`);
    const { timeZone, locale } = (await page.evaluate('early')) as typeof EXPECTED_SETTINGS;
    assert.deepEqual([timeZone, locale], ['Asia/Tokyo', 'de-DE']);
  });
});

test("pages in a client's browser context and in a new window have the viewport of the session", async () => {
  await drive(SETTINGS, async (page, browser) => {
    const ownContext = await browser.newContext({ viewport: null });
    const openedPages = [
      await ownContext.newPage(),
      ...(await Promise.all([ownContext.newPage(), ownContext.newPage()])),
    ];
    const newWindowPage = page.context().waitForEvent('page');
    const root = await browser.newBrowserCDPSession();
    await root.send('Target.createTarget', { url: 'about:blank', newWindow: true });
    for (const each of [...openedPages, await newWindowPage]) {
      await each.goto(`${pages.url}/early`);
      const { width, height } = (await each.evaluate('early')) as { width: number; height: number };
      assert.deepEqual({ width, height }, SETTINGS.viewport);
    }
    await ownContext.close();
  });
});

test('a session created with defaults has the documented window size and language', async () => {
  await drive({}, async page => {
    await page.goto(`${pages.url}/early`);
    const { width, height, language } = (await page.evaluate('early')) as {
      width: number;
      height: number;
      language: string;
    };
    assert.deepEqual([width, height, language], [1280, 720, 'en-US']);
  });
});

// Headless shell lacks this feature. engines.test.ts checks that such a create is refused.
if (IS_CHROMIUM)
  test('new and warm browsers show a PDF file if enablePdfViewer is set, and a session without this setting downloads the file', async () => {
    const readPdfSupport = async (page: Page): Promise<unknown> => {
      await page.goto(`${pages.url}/`);
      const pdfFlags = await page.evaluate('[navigator.pdfViewerEnabled, navigator.mimeTypes.length > 0]');
      const downloadOutcome = page.waitForEvent('download', { timeout: 60_000 }).then(
        () => 'downloaded',
        () => 'shown',
      );
      const navigationOutcome = page.goto(`${pages.url}/document.pdf`).then(
        () => 'shown',
        () => 'downloaded',
      );
      assert.equal(await Promise.race([navigationOutcome, downloadOutcome]), await navigationOutcome);
      return [pdfFlags, await navigationOutcome];
    };
    assert.deepEqual(await drive({}, readPdfSupport), [[false, false], 'downloaded']);
    for (const browserKind of ['cold', 'warm']) {
      assert.deepEqual(await drive({ enablePdfViewer: true }, readPdfSupport), [[true, true], 'shown'], browserKind);
      await waitForWarmBrowsers(2);
    }
  });

test('a certificate error blocks a page, but not the pages and workers of a session that ignores certificate errors', async () => {
  const httpsServer = createServer(createSelfSignedCert('127.0.0.1'), (_, response) =>
    response.end('<title>Secret</title>secure'),
  );
  await new Promise<void>(listening => httpsServer.listen(0, '127.0.0.1', listening));
  const { port } = httpsServer.address() as import('node:net').AddressInfo;
  after(() => {
    httpsServer.closeAllConnections();
    httpsServer.close();
  });
  const secondServer = await startServer({ env: { BERTH_EGRESS_ALLOW: `127.0.0.1/32:${port}`, BERTH_WARM: '0' } });
  for (const ignoreCertificateErrors of [false, true]) {
    const session = await secondServer.createSession({ browserSettings: { ignoreCertificateErrors } });
    const browser = await chromium.connectOverCDP(session.connectUrl);
    const page = browser.contexts()[0]?.pages()[0];
    assert.ok(page);
    const pageStatus = page.goto(`https://127.0.0.1:${port}/`).then(response => response?.status());
    if (!ignoreCertificateErrors) await assert.rejects(pageStatus, /ERR_CERT/);
    else {
      assert.equal(await pageStatus, 200);
      const workerExpression = `new Promise(done => { const blob = new Blob(["fetch('https://127.0.0.1:${port}/').then(r => r.status, String).then(postMessage)"]); new Worker(URL.createObjectURL(blob)).onmessage = event => done(event.data) })`;
      assert.equal(await page.evaluate(workerExpression), 200);
    }
    await secondServer.release(session.id);
    await browser.close();
  }
});
