// The time until a new user sees the first screen of the console: from the navigation until the heading of the list and
// the data from the API are shown.

import { PlainChromium } from '../tests/harness/by-hand.ts';
import type { TestServer } from '../tests/harness/server.ts';
import { evaluateIn, openWindow } from './live-sides.ts';
import { type Summary, summaryOf } from './statistics.ts';

const RECORD_FIRST_SCREEN = `new MutationObserver((_, observer) => {
  if (document.querySelector('h1')?.textContent !== 'Sessions' || document.querySelector('[role=status] .sr-only')) return;
  observer.disconnect();
  globalThis.firstScreenMs = performance.now();
}).observe(document, { subtree: true, childList: true, characterData: true });`;

export async function measureFirstScreen(server: TestServer, visits: number): Promise<Summary> {
  const link = server.log().flatMap(line => /http\S+\/console#token=bpt_\S+/.exec(line) ?? [])[0];
  if (!link) throw new Error('the server did not print a link to its console');
  const times: number[] = [];
  for (let visit = 0; visit < visits; visit++) {
    const browser = await PlainChromium.start();
    const view = await openWindow(browser);
    await view.connection.send('Page.enable', {}, view.page);
    await view.connection.send('Page.addScriptToEvaluateOnNewDocument', { source: RECORD_FIRST_SCREEN }, view.page);
    await view.connection.visit(link, view.page);
    times.push(
      await evaluateIn<number>(
        view,
        `new Promise(resolve => {
          const look = () => globalThis.firstScreenMs ? resolve(firstScreenMs) : setTimeout(look, 10);
          look();
        })`,
      ),
    );
    view.connection.close();
    await browser.close();
  }
  return summaryOf(times);
}
