// Tries each feature of a session on one engine. Each probe returns what it observed, in the words of the table in
// docs/engines.md.
import type { Page } from 'playwright-core';
import type { DownloadPage } from '../../contract/files.ts';
import type { DebugUrls } from '../../contract/live.ts';
import type { Pages } from './pages.ts';
import { decodePng } from './png.ts';
import { listReplays } from './recordings.ts';
import type { CreatedSession, TestServer } from './server.ts';
import { eventually } from './until.ts';

export interface ProbeContext {
  readonly page: Page;
  readonly pages: Pages;
  readonly server: TestServer;
  readonly session: CreatedSession;
}

/** Resolves to `yes`, `no`, or a description of the difference. If the probe fails, it resolves to the error text. */
export type Probe = (context: ProbeContext) => Promise<string>;

const yesOrNo = (condition: boolean): string => (condition ? 'yes' : 'no');

export const PROBES: Readonly<Record<string, Probe>> = {
  'screenshots in the size of the viewport': async ({ page, pages }) => {
    await page.goto(`${pages.url}/colours`);
    const screenshot = decodePng(await page.screenshot());
    return yesOrNo(screenshot.width === 1280 && screenshot.colourAt(150, 50) === '#00ff00');
  },
  'pages as PDF files (`Page.printToPDF`)': async ({ page }) =>
    yesOrNo((await page.pdf()).subarray(0, 5).toString() === '%PDF-'),
  recordings: async ({ server, session }) =>
    yesOrNo(
      (
        await eventually(
          'a replay',
          () => listReplays(server, session.id),
          ({ length }) => length > 0,
        )
      ).length > 0,
    ),
  'pictures and the live view': async ({ server, session }) => {
    const path = `/v1/browsers/sessions/${session.id}/picture`;
    const response = await eventually(
      'a picture',
      () => server.api('GET', path),
      ({ status }) => status === 200,
    );
    return yesOrNo(String(response.headers['content-type']).startsWith('image/'));
  },
  'logs of the console and the network': async ({ page, pages, server, session }) => {
    await page.goto(`${pages.url}/next`);
    await page.evaluate(`console.log('seen by the probe')`);
    const read = () => server.api<unknown>('GET', `/v1/browsers/sessions/${session.id}/logs`);
    const response = await eventually('the log', read, ({ text }) => text.includes('seen by the probe'));
    return yesOrNo(response.text.includes('/next'));
  },
  downloads: async ({ page, pages, server, session }) => {
    await page.goto(`${pages.url}/download-page`);
    await page.click('#get');
    const list = () => server.api<DownloadPage>('GET', `/v1/browsers/downloads?sessionId=${session.id}`);
    return yesOrNo((await eventually('the download', list, ({ body }) => body.total === 1)).body.total === 1);
  },
  'file choosers and uploads': async ({ page, pages }) => {
    await page.goto(`${pages.url}/next`);
    await page.setContent('<input type=file>');
    const [chooser] = await Promise.all([page.waitForEvent('filechooser'), page.click('input')]);
    await chooser.setFiles({ name: 'a.txt', mimeType: 'text/plain', buffer: Buffer.from('a file') });
    return yesOrNo((await page.evaluate(`document.querySelector('input').files[0].text()`)) === 'a file');
  },
  'popups, with opener': async ({ page, pages }) => {
    await page.goto(`${pages.url}/popups`);
    const [popup] = await Promise.all([page.waitForEvent('popup'), page.click('#open')]);
    await popup.waitForLoadState();
    const seen = (await popup.title()) === 'Next' && (await popup.evaluate('opener !== null')) === true;
    await popup.close();
    return yesOrNo(seen);
  },
  'popups of their own size': async ({ page, pages }) => {
    await page.goto(`${pages.url}/popups`);
    const [popup] = await Promise.all([
      page.waitForEvent('popup'),
      page.evaluate(`void window.open('/next', '', 'width=500,height=400')`),
    ]);
    await popup.waitForLoadState();
    const size = await popup.evaluate('`${innerWidth} × ${innerHeight}`');
    await popup.close();
    return size === '500 × 400' ? 'yes' : `no: ${size}`;
  },
  'browser contexts of clients': async ({ page, pages }) => {
    const context = await page.context().browser()?.newContext({ timezoneId: 'Asia/Tokyo', locale: 'de-DE' });
    const contextPage = await context?.newPage();
    await contextPage?.goto(`${pages.url}/next`);
    const localeText = await contextPage?.evaluate(
      '[new Intl.DateTimeFormat().resolvedOptions().timeZone, navigator.language].join()',
    );
    await context?.close();
    return yesOrNo(localeText === 'Asia/Tokyo,de-DE');
  },
  dialogs: async ({ page }) => {
    page.once('dialog', dialog => void dialog.accept('an answer'));
    return yesOrNo((await page.evaluate(`prompt('a question')`)) === 'an answer');
  },
  'granted permissions, and the clipboard': async ({ page, pages }) => {
    await page.goto(`${pages.url}/next`);
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.bringToFront();
    await page.evaluate(`navigator.clipboard.writeText('copied')`);
    return yesOrNo((await page.evaluate('navigator.clipboard.readText()')) === 'copied');
  },
  'service workers and WebSockets': async ({ page, pages }) => {
    await page.goto(`${pages.url}/socket`);
    await page.waitForFunction(`document.title === 'HELLO'`);
    await page.evaluate(`navigator.serviceWorker.register('/worker.js').then(() => navigator.serviceWorker.ready)`);
    return 'yes';
  },
  'video (H.264) and WebGL': async ({ page }) => {
    const expression = `[document.createElement('video').canPlayType('video/mp4; codecs="avc1.42E01E"'), !!document.createElement('canvas').getContext('webgl')].join()`;
    return yesOrNo((await page.evaluate(expression)) === 'probably,true');
  },
  DevTools: async ({ server, session }) => {
    const { body } = await server.api<DebugUrls>('GET', `/v1/browsers/sessions/${session.id}/debug`);
    const url = body.pages?.[0]?.devtoolsUrl;
    if (url === undefined) return 'no';
    return yesOrNo((await fetch(url)).status === 200);
  },
  '`file:` pages of the machine': async ({ page }) => probeRefusal(page, 'file:///etc/passwd'),
  '`chrome:` pages': async ({ page }) => probeRefusal(page, 'chrome://version'),
};

async function probeRefusal(page: Page, url: string): Promise<string> {
  const error = await page.goto(url).then(() => '', String);
  return error === '' ? 'open' : 'refused';
}
