// `npm run bench:console`: the first paint of each page of the console, and when it has its content, with ten thousand sessions.
import { chromium, type Page } from 'playwright-core';
import { findChromium } from '../server/engines/slots/chromium.ts';
import { WaitExpired, within } from '../server/kit/wait.ts';
import { consoleIsBuilt, consoleLink, DESK } from '../tests/harness/console.ts';
import { freePort } from '../tests/harness/free-port.ts';
import { inventPast, inventSessions } from '../tests/harness/past.ts';
import { TestServer } from '../tests/harness/server.ts';
import { inWords, thisMachine } from './machine.ts';
import { median } from './statistics.ts';

const END_MS = 600_000;
const SESSIONS = 10_000;
const ROUNDS = 11;

await consoleIsBuilt();
const server = new TestServer({ env: { BERTH_SLOTS: '2' }, isMeasured: true }, await freePort());

const FIRST_PAINT = `new Promise(resolve => new PerformanceObserver(list => {
  const [first] = list.getEntriesByName('first-contentful-paint');
  if (first) resolve(first.startTime);
}).observe({ type: 'paint', buffered: true }))`;

/** Times in milliseconds since the navigation began. */
interface Paint {
  readonly firstMs: number;
  readonly wholeMs: number;
}

async function paint(page: Page, address: string): Promise<Paint> {
  await page.goto(address, { waitUntil: 'commit' });
  await page.locator('main h1').waitFor();
  await page.getByText('Loading').first().waitFor({ state: 'detached' });
  const wholeMs = await page.evaluate<number>('performance.now()');
  const firstMs = await page.evaluate<number>(FIRST_PAINT);
  return { firstMs, wholeMs };
}

async function measure(): Promise<void> {
  await server.start();
  const session = await server.createSession({ keepAlive: true });
  await inventPast(server);
  await inventSessions(server, SESSIONS);
  const browser = await chromium.launch({ executablePath: findChromium() ?? '', args: ['--no-sandbox'] });
  try {
    const page = await browser.newPage({ viewport: { width: DESK.width, height: DESK.height } });
    await page.goto(consoleLink(server));
    await page.getByRole('heading', { name: 'Overview', exact: true }).waitFor();
    const app = `/a/${server.applicationId}`;
    const places = [
      ...[app, `${app}/sessions`, `${app}/sessions?find=9990`, `${app}/sessions/${session.id}`, `${app}/sessions/new`],
      ...['playground', 'contexts', 'extensions', 'certificates', 'keys', 'limits', 'members', 'audit'].map(
        name => `${app}/${name}`,
      ),
      ...['/account', '/applications', '/tokens', '/host', '/outbox'],
    ];
    process.stdout.write(`Measured on: ${inWords(await thisMachine())}; ${ROUNDS} rounds, ${SESSIONS} sessions\n\n`);
    process.stdout.write('| Page | first paint p50 | worst | with its content p50 |\n| --- | ---: | ---: | ---: |\n');
    for (const place of places) {
      const paints: Paint[] = [];
      for (let round = 0; round < ROUNDS; round += 1) paints.push(await paint(page, `${server.url}/console${place}`));
      const first = paints.map(({ firstMs }) => firstMs);
      const shown = [median(first), Math.max(...first), median(paints.map(({ wholeMs }) => wholeMs))];
      const name = place.replace(server.applicationId, '{appId}').replace(session.id, '{id}');
      process.stdout.write(`| ${name} | ${shown.map(ms => `${ms.toFixed(0)} ms`).join(' | ')} |\n`);
    }
  } finally {
    await browser.close();
  }
}

try {
  await within(END_MS, 'the bench', measure);
} catch (error) {
  process.stderr.write(`bench: ${error instanceof WaitExpired ? error.message : error}\n`);
  process.exitCode = 1;
} finally {
  await server.close();
}
process.exit();
