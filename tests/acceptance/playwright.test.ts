import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Browser, chromium, type Page } from 'playwright-core';
import { CdpClient } from '../harness/cdp.ts';
import { openPages } from '../harness/pages.ts';
import { decodePng } from '../harness/png.ts';
import { type CreatedSession, startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const MB = 1_000_000;

const pages = await openPages({
  '/form': `<!doctype html><title>Form</title><form><input id="name"><input id="gift" type="checkbox">
    <select id="size"><option>s<option>m</select></form><div style="height:10000px"></div>`,
});
const server = await startServer({ pages });

async function withSession(body: object, work: (session: CreatedSession) => Promise<void>): Promise<void> {
  const session = await server.createSession(body);
  try {
    await work(session);
  } finally {
    await server.release(session.id).catch(() => {}); // the session may have ended with its client
  }
}

/** Returns the page that every session has at its start. */
function firstPage(browser: Browser): Page {
  const page = browser.contexts()[0]?.pages()[0];
  assert.ok(page, 'there is a default context with a page');
  return page;
}

const withPage = (work: (page: Page, browser: Browser, session: CreatedSession) => Promise<void>) =>
  withSession({}, async session => {
    const browser = await chromium.connectOverCDP(session.connectUrl);
    await work(firstPage(browser), browser, session);
    await browser.close();
  });

test('Playwright can open, read, fill in and click a page', () =>
  withPage(async page => {
    const response = await page.goto(pages.a);
    assert.equal(response?.status(), 200);
    assert.equal(await page.title(), 'Home');
    await page.click('#next');
    await page.waitForURL(`${pages.a}/next`);
    assert.equal(await page.textContent('h1'), 'Next');
    assert.deepEqual(await page.evaluate(() => ({ sum: 1 + 2, list: [1, 'two', null] })), {
      sum: 3,
      list: [1, 'two', null],
    });
    await page.setContent('<input id=name><button onclick="document.title = document.getElementById(\'name\').value">');
    await page.fill('#name', 'Grüße 🚢');
    await page.click('button');
    assert.equal(await page.title(), 'Grüße 🚢');
  }));

test('navigator.onLine is true in a page, a frame and a worker until the client changes the value', () =>
  withPage(async page => {
    await page.goto(pages.a);
    const readOnline = () =>
      page.evaluate(`(async () => {
        const frame = document.body.appendChild(document.createElement('iframe'));
        const worker = new Worker(URL.createObjectURL(new Blob(['postMessage(navigator.onLine)'])));
        const inWorker = await new Promise(done => (worker.onmessage = ({ data }) => done(data)));
        worker.terminate();
        return [navigator.onLine, frame.contentWindow.navigator.onLine, inWorker];
      })()`);
    assert.deepEqual(await readOnline(), [true, true, true]);
    await page.context().setOffline(true);
    assert.equal(await page.evaluate('navigator.onLine'), false);
    await page.context().setOffline(false);
    assert.deepEqual(await readOnline(), [true, true, true]);
  }));

test('WebRTC reveals no address to a page', () =>
  withSession({}, async ({ connectUrl }) => {
    const client = await CdpClient.connect(connectUrl);
    const gatherScript = `new Promise(done => {
      const found = [], peer = new RTCPeerConnection();
      peer.onicecandidate = ({ candidate }) => candidate?.candidate ? found.push(candidate.candidate) : done(found);
      peer.createDataChannel('x');
      peer.createOffer().then(offer => peer.setLocalDescription(offer));
    })`;
    const page = await client.attachToPage();
    await client.visit(pages.a, page);
    assert.deepEqual(await client.evaluate(gatherScript, page), []);
    await client.close();
  }));

test('Playwright can connect to connectUrl with the scheme http instead of ws', () =>
  withSession({}, async ({ connectUrl }) => {
    const browser = await chromium.connectOverCDP(connectUrl.replace(/^ws/, 'http'));
    await firstPage(browser).goto(pages.a);
    await browser.close();
  }));

test('Playwright can connect with an agent key in a header instead of the signing key', () =>
  withSession({}, async ({ connectUrl }) => {
    const headers = { authorization: `Bearer ${server.key}` };
    const browser = await chromium.connectOverCDP(connectUrl.replace(/\?.*/, ''), { headers });
    await firstPage(browser).goto(pages.a);
    await browser.close();
  }));

test('a screenshot shows the pixels of the page', () =>
  withPage(async page => {
    await page.setViewportSize({ width: 400, height: 200 });
    await page.goto(`${pages.a}/colours`);
    const png = decodePng(await page.screenshot());
    assert.deepEqual([png.width, png.height], [400, 200]);
    const colours = [50, 150, 250, 350].map(x => png.colourAt(x, 50));
    assert.deepEqual(colours, ['#ff0000', '#00ff00', '#0000ff', '#ffffff']);
    assert.equal(png.colourAt(50, 150), '#ffffff');
  }));

test('a page can use a WebSocket, follow a redirect and fetch a large response', () =>
  withPage(async page => {
    await page.goto(`${pages.a}/socket`);
    await page.waitForFunction("document.title === 'HELLO'");
    const redirected = await page.goto(`${pages.b}/redirect`);
    assert.equal(redirected?.url(), `${pages.b}/next`);
    const byteCount = await page.evaluate(async () => (await (await fetch('/big')).arrayBuffer()).byteLength);
    assert.equal(byteCount, 8 * 1024 ** 2);
  }));

test('a browser context has its own time zone, language, cookies and page', () =>
  withPage(async (page, browser) => {
    const context = await browser.newContext({ timezoneId: 'Asia/Tokyo', locale: 'de-DE' });
    const own = await context.newPage();
    await own.goto(pages.a);
    const zone = await own.evaluate(() => Intl.DateTimeFormat().resolvedOptions().timeZone);
    assert.equal(zone, 'Asia/Tokyo');
    assert.equal(await own.evaluate(() => (1234.5).toLocaleString()), '1.234,5');
    await context.addCookies([{ name: 'who', value: 'me', url: pages.a }]);
    assert.equal(await own.evaluate('document.cookie'), 'who=me');
    await page.goto(pages.a);
    assert.equal(await page.evaluate('document.cookie'), '');
    await context.close();
  }));

test('a client can navigate back and forward in the history', () =>
  withPage(async page => {
    await page.goto(pages.a);
    await page.goto(`${pages.a}/next`);
    await page.goBack();
    assert.equal(await page.textContent('h1'), 'Home');
    await page.goForward();
    assert.equal(await page.textContent('h1'), 'Next');
  }));

test('popups from window.open and links can be controlled', () =>
  withPage(async page => {
    await page.goto(`${pages.a}/popups`);
    for (const opener of ['#open', '#blank']) {
      const [popup] = await Promise.all([page.waitForEvent('popup'), page.click(opener)]);
      await popup.waitForURL(`${pages.a}/next`);
      assert.equal(await popup.title(), 'Next');
      await popup.close();
    }
  }));

test('a client can intercept requests and send its own responses', () =>
  withPage(async page => {
    const hitsBefore = pages.hits('/next');
    await page.route('**/next', route => route.fulfill({ contentType: 'text/html', body: '<title>Mine</title>' }));
    await page.goto(`${pages.a}/next`);
    assert.equal(await page.title(), 'Mine');
    assert.equal(pages.hits('/next'), hitsBefore);
    await page.unroute('**/next');
    await page.goto(`${pages.a}/next`);
    assert.equal(await page.title(), 'Next');
  }));

test('50 MB can be sent to a page and read from a page', () =>
  withPage(async page => {
    const text = 'x'.repeat(50 * MB);
    assert.equal(await page.evaluate(sent => sent.length, text), 50 * MB);
    const returnedText = await page.evaluate(length => 'y'.repeat(length), 50 * MB);
    assert.equal(returnedText.length, 50 * MB);
    assert.ok(returnedText.startsWith('yyy') && returnedText.endsWith('yyy'));
  }));

test('two clients can work concurrently, and one client can continue when the other disconnects', () =>
  withSession({}, async session => {
    const firstBrowser = await chromium.connectOverCDP(session.connectUrl);
    const secondBrowser = await chromium.connectOverCDP(session.connectUrl);
    const pageOfOne = await firstBrowser.contexts()[0]?.newPage();
    const pageOfTwo = await secondBrowser.contexts()[0]?.newPage();
    assert.ok(pageOfOne && pageOfTwo);
    await Promise.all([pageOfOne.goto(`${pages.a}/next`), pageOfTwo.goto(pages.b)]);
    const pageUrlsOf = (browser: Browser): string[] =>
      browser
        .contexts()[0]
        ?.pages()
        .map(page => page.url()) ?? [];
    // Each client receives the events about the other client's pages on its own connection, so they may arrive later.
    await eventually('both to see the pages of the default context', () =>
      pageUrlsOf(firstBrowser).includes(`${pages.b}/`),
    );
    await firstBrowser.close();
    assert.equal(await pageOfTwo.title(), 'Home');
    await eventually('the page of the other client to stay open', () =>
      pageUrlsOf(secondBrowser).includes(`${pages.a}/next`),
    );
    await secondBrowser.close();
  }));

test('two clients that send commands concurrently each get their own responses', () =>
  withSession({}, async session => {
    const clients = await Promise.all([1, 2].map(() => chromium.connectOverCDP(session.connectUrl)));
    await Promise.all(
      clients.map(async (browser, who) => {
        const page = await browser.contexts()[0]?.newPage();
        for (let count = 0; count < 200; count++)
          assert.deepEqual(await page?.evaluate(told => told, { who, count }), { who, count });
      }),
    );
    await Promise.all(clients.map(browser => browser.close()));
  }));

test('a client that reconnects finds the page unchanged: heap, scroll position and form', () =>
  withSession({ keepAlive: true }, async session => {
    const firstBrowser = await chromium.connectOverCDP(session.connectUrl);
    const page = firstPage(firstBrowser);
    await page.goto(`${pages.a}/form`);
    await page.fill('#name', 'Grüße 🚢');
    await page.check('#gift');
    await page.selectOption('#size', 'm');
    await page.evaluate('globalThis.kept = { visits: 7 }; scrollTo(0, 5000)');
    await firstBrowser.close();
    const secondBrowser = await chromium.connectOverCDP(session.connectUrl);
    const secondPage = firstPage(secondBrowser);
    assert.equal(secondPage.url(), `${pages.a}/form`);
    assert.deepEqual(await secondPage.evaluate('[kept, scrollY]'), [{ visits: 7 }, 5000]);
    const form = '(({ name, gift, size }) => [name.value, gift.checked, size.value])(document.forms[0].elements)';
    assert.deepEqual(await secondPage.evaluate(form), ['Grüße 🚢', true, 'm']);
    await secondBrowser.close();
  }));

test('browser contexts created by Playwright are removed when Playwright disconnects, and one with disposeOnDetach: false is kept', () =>
  withSession({ keepAlive: true }, async session => {
    const firstBrowser = await chromium.connectOverCDP(session.connectUrl);
    await (await firstBrowser.newContext()).newPage();
    const raw = await CdpClient.connect(session.connectUrl);
    const { browserContextId } = await raw.send('Target.createBrowserContext', { disposeOnDetach: false });
    await raw.send('Target.createTarget', { url: `${pages.a}/next`, browserContextId });
    await raw.close();
    await firstBrowser.close();
    const next = await CdpClient.connect(session.connectUrl);
    await eventually(
      'the contexts of Playwright to be gone',
      async () => (await next.send('Target.getBrowserContexts')).browserContextIds,
      left => Array.isArray(left) && left.join() === browserContextId,
    );
    const secondBrowser = await chromium.connectOverCDP(session.connectUrl);
    // The page in the persistent context must still be there.
    await eventually(
      'the page in the persistent context',
      () => secondBrowser.contexts().map(context => context.pages().map(page => page.url())),
      urls => urls.some(own => own.includes(`${pages.a}/next`)),
    );
    await next.send('Target.disposeBrowserContext', { browserContextId });
    await next.close();
    await secondBrowser.close();
  }));

test('a client that closed the last page finds a new page when it reconnects', () =>
  withSession({ keepAlive: true }, async session => {
    const firstBrowser = await chromium.connectOverCDP(session.connectUrl);
    await firstPage(firstBrowser).close();
    await firstBrowser.close();
    const secondBrowser = await chromium.connectOverCDP(session.connectUrl);
    const page = firstPage(secondBrowser);
    await page.goto(pages.a);
    assert.equal(await page.title(), 'Home');
    await secondBrowser.close();
  }));

test('a page cannot reach services of this machine that the operator has not allowed', async () => {
  const forbiddenPages = await openPages();
  await withPage(async page => {
    const refusal = await page.goto(forbiddenPages.url);
    assert.equal(refusal?.status(), 403);
    assert.match(String(await page.textContent('body')), /private|loopback|not allowed|refused/i);
    assert.equal(forbiddenPages.hits('/'), 0);
    const own = await page.goto(`${server.url}/healthz`);
    assert.equal(own?.status(), 403);
    const open = await page.goto(pages.a);
    assert.equal(open?.status(), 200, 'the page can still be used');
  });
});

test('closing the browser ends the session unless the session has keepAlive', async () => {
  const session = await server.createSession();
  await (await chromium.connectOverCDP(session.connectUrl)).close();
  const endedSession = await server.waitUntilEnded(session.id);
  assert.deepEqual([endedSession.status, endedSession.endReason], ['COMPLETED', 'client_disconnected']);
  await withSession({ keepAlive: true }, async kept => {
    await (await chromium.connectOverCDP(kept.connectUrl)).close();
    const secondBrowser = await chromium.connectOverCDP(kept.connectUrl);
    await secondBrowser.close();
    assert.equal((await server.read(kept.id)).status, 'RUNNING');
  });
});

test('ended sessions leave no process, file or unfinished database row behind', () => server.waitUntilSettled());
