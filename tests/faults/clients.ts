// Clients that are busy while something is killed. Each runs a typical load and can report how its connection ended.
import { type Browser, chromium, type Page } from 'playwright-core';
import puppeteer, { type Browser as PuppeteerBrowser } from 'puppeteer-core';
import { CdpClient } from '../harness/cdp.ts';
import type { CreatedSession } from '../harness/server.ts';
import { withTimeLimit } from '../harness/until.ts';

const FLOOD_AT_ONCE = 2_000;
const CONNECT_TIMEOUT_MS = 60_000;
/** Maximum time from the first message to the end of the connection. It equals the time limit of a test. */
const END_TIMEOUT_MS = 480_000;

export interface BusyClient {
  /** Resolves when the connection has closed. */
  readonly ended: Promise<unknown>;
}

export const connectPlaywright = (session: Pick<CreatedSession, 'connectUrl'>): Promise<Browser> =>
  chromium.connectOverCDP(session.connectUrl, { timeout: CONNECT_TIMEOUT_MS });

export const connectPuppeteer = (session: Pick<CreatedSession, 'connectUrl'>): Promise<PuppeteerBrowser> =>
  withTimeLimit(
    'Puppeteer to connect',
    puppeteer.connect({ browserWSEndpoint: session.connectUrl, defaultViewport: null }),
    CONNECT_TIMEOUT_MS,
  );

export function firstPage(browser: Browser): Page {
  const page = browser.contexts()[0]?.pages()[0];
  if (!page) throw new Error('the browser has no page');
  return page;
}

export const waitForDisconnect = (browser: Browser): Promise<void> =>
  new Promise(resolve => void browser.once('disconnected', () => resolve()));

/** A client that never continues a request that `route()` intercepted. */
export async function startRouteHolder(session: CreatedSession, url: string, marker: string): Promise<BusyClient> {
  const browser = await connectPlaywright(session);
  const ended = waitForDisconnect(browser);
  const page = firstPage(browser);
  await page.goto(url);
  await page.evaluate(`void (globalThis.marker = ${JSON.stringify(marker)})`);
  const held = Promise.withResolvers<void>();
  await page.route('**/held', () => held.resolve());
  await page.evaluate("void fetch('/held')");
  await withTimeLimit('the request to be held', held.promise);
  return { ended };
}

/** A client that waits for a popup that never opens. */
export async function startPopupWaiter(session: CreatedSession, url: string): Promise<BusyClient> {
  const browser = await connectPlaywright(session);
  const ended = waitForDisconnect(browser);
  const page = await contextOf(browser).newPage();
  await page.goto(url);
  page.waitForEvent('popup', { timeout: 0 }).catch(() => {});
  return { ended };
}

/** A Puppeteer client that evaluates one expression after another. */
export async function startPuppeteerClient(session: CreatedSession, url: string): Promise<BusyClient> {
  const browser = await connectPuppeteer(session);
  const ended = new Promise<void>(resolve => void browser.once('disconnected', () => resolve()));
  const page = await browser.newPage();
  await page.goto(url);
  const work = async (): Promise<void> => {
    while (browser.connected) await page.evaluate('document.title');
  };
  work().catch(() => {});
  return { ended };
}

/** A client that sends messages in batches of thousands, each batch as soon as the previous one is answered. */
export async function startFloodingClient(session: CreatedSession): Promise<BusyClient & { responseCount(): number }> {
  const client = await CdpClient.connect(session.connectUrl);
  const { targetId } = await client.send('Target.createTarget', { url: 'about:blank' });
  const { sessionId } = await client.send('Target.attachToTarget', { targetId, flatten: true });
  let responseCount = 0;
  const sendBatches = async (): Promise<void> => {
    while (client.isOpen) {
      const asks = Array.from({ length: FLOOD_AT_ONCE }, async () => {
        const { error } = await client.ask('Runtime.evaluate', { expression: '1' }, String(sessionId));
        if (!error) responseCount += 1;
      });
      await Promise.all(asks);
    }
  };
  sendBatches().catch(() => {});
  return { ended: client.waitForClose(END_TIMEOUT_MS), responseCount: () => responseCount };
}

/** A client that is attached and idle. */
export async function startIdleClient(session: CreatedSession): Promise<BusyClient> {
  const client = await CdpClient.connect(session.connectUrl);
  await client.send('Browser.getVersion');
  return { ended: client.waitForClose(END_TIMEOUT_MS) };
}

export function contextOf(browser: Browser) {
  const context = browser.contexts()[0];
  if (!context) throw new Error('the browser has no context');
  return context;
}

/** Whether the browser of the session answers a command. */
export async function isResponsive(session: { connectUrl?: string | undefined }): Promise<boolean> {
  const client = await CdpClient.connect(String(session.connectUrl));
  try {
    return (await client.evaluate('6 * 7', await client.attachToPage())) === 42;
  } finally {
    client.cut();
  }
}
