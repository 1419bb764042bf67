// `npm run bench:console`: the first paint of each page of the console, of the pages of consumers and of approvals, and when it has its
// content, with ten thousand sessions.
import { type BrowserContext, chromium, type Page } from 'playwright-core';
import { findChromium } from '../server/engines/slots/chromium.ts';
import { WaitExpired, within } from '../server/kit/wait.ts';
import { ACTION_SCOPES, ActionAgent } from '../tests/harness/actions.ts';
import { cancelOrder, Owner } from '../tests/harness/configured.ts';
import { consoleIsBuilt, consoleLink, DESK } from '../tests/harness/console.ts';
import { ConsumerLab } from '../tests/harness/consumers.ts';
import { freePort } from '../tests/harness/free-port.ts';
import { liftLimits } from '../tests/harness/limits.ts';
import { keyWith } from '../tests/harness/operations.ts';
import { inventPast, inventSessions } from '../tests/harness/past.ts';
import { Person } from '../tests/harness/person.ts';
import { TestServer } from '../tests/harness/server.ts';
import { inWords, thisMachine } from './machine.ts';
import { median } from './statistics.ts';

const END_MS = 600_000;
const SESSIONS = 10_000;
const ROUNDS = 11;
const IDS = /[0-9a-f]{8}-[0-9a-f-]{27}/g;

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

/** The pages of a consumer who is signed in, with an Action that waits, and of the owner who may approve another one. */
async function toDecide(context: BrowserContext, origin: string): Promise<readonly string[]> {
  await liftLimits(server);
  const owner = await Owner.of(server);
  const ids = { end_user: 'orders.cancel', owner: 'orders.refund' } as const;
  for (const [approval, id] of Object.entries(ids))
    await owner.publish(id, cancelOrder({ url: 'https://api.shop.example' }, { approval }));
  const grants = Object.values(ids).map(operationId => ({ operationId }));
  const { id, key } = await keyWith(server, { scopes: ACTION_SCOPES, grants });
  const person = await Person.owner(server);
  const kim = await (await ConsumerLab.of(server, person)).signIn('kim@example.com');
  const endUser = { providerId: 'hosted', subject: kim.consumer.subject };
  const agent = new ActionAgent(server, key);
  const input = { orderId: 'A-1007' };
  const [asked, owned] = [
    await agent.prepared(ids.end_user, { input, endUser }),
    await agent.prepared(ids.owner, { input }),
  ];
  const own = `berth-consumer-${server.applicationId.replaceAll('-', '')}`;
  const [name = '', value = ''] = person.cookie?.split('=') ?? [];
  await context.addCookies([
    { name: own, value: kim.accessToken, url: origin },
    { name, value, url: origin },
  ]);
  const home = `/consumer/${server.applicationId}`;
  return [
    ...[home, `${home}/receipts`, `${home}/memory`, `${home}/account`, `${home}/approve/${asked.jobId}`],
    ...[`${home}/consent/${id}?key=address.home&access=read`, `/approve/${owned.jobId}`],
  ];
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
    // Passkeys, and so approvals, need the host name.
    const local = server.url.replace('127.0.0.1', 'localhost');
    const deciding = await toDecide(page.context(), local);
    const addresses = [
      ...places.map(place => `${server.url}/console${place}`),
      ...deciding.map(place => local + place),
    ];
    for (const [at, place] of [...places, ...deciding].entries()) {
      const paints: Paint[] = [];
      for (let round = 0; round < ROUNDS; round += 1) paints.push(await paint(page, addresses[at] ?? ''));
      const first = paints.map(({ firstMs }) => firstMs);
      const shown = [median(first), Math.max(...first), median(paints.map(({ wholeMs }) => wholeMs))];
      const name = place.replace(server.applicationId, '{appId}').replace(session.id, '{id}').replace(IDS, '{id}');
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
