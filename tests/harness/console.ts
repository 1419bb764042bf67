// The web console in a browser of this machine, outside Berth. Reports violations of the Content Security Policy,
// requests to other origins, and errors in the browser's console.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after } from 'node:test';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { buildWeb } from '../../tools/build-web.ts';
import { launchOutsideBrowser } from './outside-browser.ts';
import type { TestServer } from './server.ts';
import { WAIT_TIMEOUT_MS } from './until.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** The axe rules whose result depends on colors. All other rules give the same result in both color schemes. */
const COLOUR_RULES = ['color-contrast', 'link-in-text-block'];
/**
 * axe takes a minute to check the colors of a page with this many elements. Only the API reference has so many, because
 * it repeats a few kinds of elements thousands of times. On that page, the colors of only one element of each kind are
 * checked. Elements with text are of the same kind if they have the same chain of tags and classes, and the same
 * colors, font size and font weight.
 */
const ELEMENTS_MAX = 10_000;
const SAMPLE_TEXTS_SCRIPT = `(() => {
  const places = new Map([[null, '']]);
  const kinds = new Map();
  for (const element of document.querySelectorAll('*')) {
    const place = places.get(element.parentElement) + '>' + element.tagName + '.' + (element.getAttribute('class') ?? '');
    places.set(element, place);
    if (![...element.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.data.trim() !== '')) continue;
    const { color, backgroundColor, fontSize, fontWeight } = getComputedStyle(element);
    const kind = [place, color, backgroundColor, fontSize, fontWeight].join();
    if (!kinds.has(kind)) kinds.set(kind, element);
  }
  return [...kinds.values()];
})()`;

/** Ends transitions at once. A transition in a part of the page that is not painted never ends by itself. */
const END_TRANSITIONS_SCRIPT = `(() => {
  for (const animation of document.getAnimations()) if (animation instanceof CSSTransition) animation.finish();
})()`;

export interface DisplaySettings {
  readonly width: number;
  readonly height: number;
  readonly colours: 'light' | 'dark';
}

export const DESKTOP: DisplaySettings = { width: 1440, height: 900, colours: 'light' };
export const DESKTOP_DARK: DisplaySettings = { ...DESKTOP, colours: 'dark' };
export const PHONE: DisplaySettings = { width: 390, height: 844, colours: 'light' };
export const PHONE_DARK: DisplaySettings = { ...PHONE, colours: 'dark' };

let browser: Promise<Browser> | undefined;

/** Builds the console. Must be called before the server starts, because the server reads the build at its start. */
export const ensureConsoleBuilt = (): Promise<string> => buildWeb();

function openBrowser(): Promise<Browser> {
  browser ??= launchOutsideBrowser();
  return browser;
}

/**
 * Opens a page in its own context. `violations` lists the violations on the page and must be empty at the end of a
 * test.
 */
export async function openWatchedPage(display: DisplaySettings, origin: string): Promise<WatchedPage> {
  const context = await (await openBrowser()).newContext({
    viewport: { width: display.width, height: display.height },
    colorScheme: display.colours,
    reducedMotion: 'reduce',
    hasTouch: display.width < 500,
    permissions: ['clipboard-read', 'clipboard-write'],
  });
  context.setDefaultTimeout(WAIT_TIMEOUT_MS);
  const page = await context.newPage();
  return new WatchedPage(context, page, origin);
}

after(async () => {
  await (await browser)?.close();
});

export class WatchedPage {
  readonly page: Page;
  readonly violations: string[] = [];
  readonly #context: BrowserContext;

  constructor(context: BrowserContext, page: Page, origin: string) {
    this.#context = context;
    this.page = page;
    page.on('request', request => {
      const url = request.url();
      if (!url.startsWith(`${origin}/`) && !/^(data|blob|about):/.test(url)) this.violations.push(`asked ${url}`);
    });
    page.on('pageerror', error => this.violations.push(`threw ${error.stack ?? error.message}`));
    page.on('console', message => {
      // The browser logs an error for each refused request. Tests of refusals expect these errors.
      const isRefusal = /^Failed to load resource/.test(message.text());
      if (message.type() === 'error' && !isRefusal) this.violations.push(`wrote ${message.text()}`);
    });
  }

  /** Sets the window size and the color scheme of the page, and ends its transitions. */
  async setDisplay({ width, height, colours }: DisplaySettings): Promise<void> {
    await this.page.setViewportSize({ width, height });
    await this.page.emulateMedia({ colorScheme: colours });
    await this.page.evaluate(END_TRANSITIONS_SCRIPT);
  }

  /**
   * Returns the violations that axe finds on the page in its current state. With `colours`, only the rules about colors
   * run, for a page that was already checked in the other color scheme.
   */
  async runAxe(scope: 'everything' | 'colours' = 'everything'): Promise<string[]> {
    // The Content Security Policy of the page forbids foreign scripts, so axe is injected through the debugger, which
    // is exempt.
    if (!(await this.page.evaluate(() => 'axe' in globalThis))) await this.page.evaluate(AXE);
    if (scope === 'colours') return this.#run('the page', { runOnly: COLOUR_RULES });
    if ((await this.page.locator('*').count()) < ELEMENTS_MAX) return this.#run('the page', {});
    const disabledRules = Object.fromEntries(COLOUR_RULES.map(rule => [rule, { enabled: false }]));
    return [
      ...(await this.#run('the page', { rules: disabledRules })),
      ...(await this.#run('one text of each kind', { runOnly: COLOUR_RULES })),
    ];
  }

  async #run(what: 'the page' | 'one text of each kind', rules: object): Promise<string[]> {
    // Results of rules that pass are not collected.
    const options = { resultTypes: ['violations'], ...rules };
    const axeFindings = await this.page.evaluate<AxeFinding[]>(
      `axe.run(${what === 'the page' ? 'document' : `{ include: ${SAMPLE_TEXTS_SCRIPT} }`}, ${JSON.stringify(options)})
        .then(({ violations }) => violations)`,
    );
    return axeFindings.flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`),
    );
  }

  /** Asserts that axe finds nothing, and that nothing is wider than the window. */
  async assertAccessible(): Promise<void> {
    assert.deepEqual(await this.runAxe(), []);
    assert.equal(await this.overflows(), false);
  }

  /** Adds a virtual authenticator for passkeys that verifies its user, like that of a phone or a laptop. */
  async addAuthenticator(): Promise<void> {
    const cdp = await this.#context.newCDPSession(this.page);
    await cdp.send('WebAuthn.enable');
    const options = { protocol: 'ctap2', transport: 'internal', hasResidentKey: true } as const;
    await cdp.send('WebAuthn.addVirtualAuthenticator', {
      options: { ...options, hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true },
    });
  }

  /** Whether content is wider than the window, so that a phone would scroll horizontally. */
  overflows(): Promise<boolean> {
    return this.page.locator('html').evaluate(root => root.scrollWidth > root.clientWidth);
  }

  close(): Promise<void> {
    return this.#context.close();
  }
}

/** The link that the server printed at its first start. */
export function findConsoleLink(server: TestServer): string {
  for (const line of server.log()) {
    const link = /(http\S+\/console#token=bpt_\S+)/.exec(line)?.[1];
    if (link) return link;
  }
  throw new Error('the log of the server contains no link to the console; only a first start prints the link');
}

/** Runs `work` on a page of the console. Fails if the page requested another origin, threw an error or logged one. */
export async function visit(
  origin: string,
  display: DisplaySettings,
  path: string,
  work: (page: Page, watchedPage: WatchedPage) => Promise<void>,
): Promise<void> {
  const watchedPage = await openWatchedPage(display, origin);
  try {
    await watchedPage.page.goto(`${origin}${path}`);
    await work(watchedPage.page, watchedPage);
    assert.deepEqual(watchedPage.violations, []);
  } finally {
    await watchedPage.close();
  }
}

/** Signs in on a page that asks for an e-mail address and a password. */
export async function signInByHand(page: Page, email: string, password: string): Promise<void> {
  await page.getByLabel('E-mail address').fill(email);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
}

/** Runs work on the sessions page as a signed-in person. Fails if the page has a violation. */
export async function visitSessions(
  server: TestServer,
  link: string,
  display: DisplaySettings,
  work: (watchedPage: WatchedPage) => Promise<void>,
): Promise<void> {
  const watchedPage = await openWatchedPage(display, server.url);
  try {
    await watchedPage.page.goto(link);
    await watchedPage.page.getByRole('heading', { name: 'Overview', exact: true }).waitFor();
    assert.doesNotMatch(watchedPage.page.url(), /bpt_|#/);
    await watchedPage.page.goto(`${server.url}/console/a/${server.applicationId}/sessions`);
    await watchedPage.page.getByRole('heading', { name: 'Sessions', exact: true }).waitFor();
    await work(watchedPage);
    assert.deepEqual(watchedPage.violations, []);
  } finally {
    await watchedPage.close();
  }
}

interface AxeFinding {
  readonly id: string;
  readonly nodes: ReadonlyArray<{ readonly html: string; readonly failureSummary: string }>;
}
