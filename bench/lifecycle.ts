// Measures the life of one browser: start, first CDP response, the title of a page, end. Sessions and browsers started
// by hand alternate. A round begins when the warm pool is full. The benchmark of sessions per minute measures how fast
// the pool refills.
import { systemClock } from '../server/kit/clock.ts';
import { PlainChromium } from '../tests/harness/by-hand.ts';
import type { TestServer } from '../tests/harness/server.ts';
import { eventually } from '../tests/harness/until.ts';
import { CdpConnection } from './cdp-connection.ts';
import { type Comparison, comparisonOf } from './statistics.ts';

const TITLE = 'bench';
const PAGE = `data:text/html,<title>${TITLE}</title><h1>A page</h1>`;
const REFILL_TIMEOUT_MS = 120_000;

/** Includes settings that a warm browser can be launched with, and settings that are applied when it is claimed. */
const SETTINGS = {
  viewport: { width: 1000, height: 650 },
  locale: 'de-DE',
  timezoneId: 'Asia/Tokyo',
  userAgent: 'Agent/1.0 (berth bench)',
  geolocation: { latitude: 52.5, longitude: 13.4, accuracy: 5 },
  ignoreCertificateErrors: true,
  enablePdfViewer: true,
};

/**
 * Milliseconds since the start of the cycle. `release` is counted from the release request. For a browser started by
 * hand, `created` is the time at which its DevTools port begins to listen.
 */
const STEPS = ['created', 'CDP answers', 'page title', 'release'] as const;
type Step = (typeof STEPS)[number];
export type Cycle = Readonly<Record<Step, number>>;

export interface LifecycleFigure {
  readonly name: string;
  readonly step: string;
  /** The target: an upper limit in milliseconds, or for the ratio to a browser started by hand. */
  readonly target: { readonly ms: number } | { readonly ratio: number };
  readonly comparison: Comparison;
}

interface StartedBrowser {
  readonly url: string;
  end(): Promise<unknown>;
}

const CASES = [
  { name: 'empty body', body: {}, titleRatio: 0.35 },
  { name: 'every warm setting', body: { browserSettings: SETTINGS }, titleRatio: 0.5 },
] as const;

export async function measureLifecycle(server: TestServer, rounds: number): Promise<readonly LifecycleFigure[]> {
  const figures: LifecycleFigure[] = [];
  for (const { name, body, titleRatio } of CASES) {
    const byHandCycles: Cycle[] = [];
    const ourCycles: Cycle[] = [];
    await runSessionCycle(server, body); // the first round reads everything from disk, and fills the pool
    await runByHandCycle();
    for (let round = 0; round < rounds; round++) {
      byHandCycles.push(await runByHandCycle());
      await untilRefilled(server);
      ourCycles.push(await runSessionCycle(server, body));
    }
    const targets = {
      created: { ms: 15 },
      'CDP answers': { ratio: 0.2 },
      'page title': { ratio: titleRatio },
      release: { ms: 50 },
    };
    for (const step of STEPS) {
      const timesOf = (cycles: readonly Cycle[]): number[] => cycles.map(cycle => cycle[step]);
      figures.push({
        name,
        step,
        target: targets[step],
        comparison: comparisonOf(timesOf(byHandCycles), timesOf(ourCycles)),
      });
    }
  }
  return figures;
}

/**
 * Waits until the warm pool is full and the recordings of ended sessions are stored, because that work belongs to the
 * block that caused it.
 */
export async function untilRefilled(server: TestServer): Promise<void> {
  let previousWarmBrowsers = -1;
  const readCounts = async () => {
    const { text } = await server.fetchFromOperator('/metrics');
    const readMetric = (name: string): number => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1]);
    const [warmBrowsers, boxes] = [readMetric('berth_warm_browsers'), readMetric('berth_boxes')];
    const unstoredRecordings = readMetric('berth_recordings_unstored');
    const isSettled =
      warmBrowsers > 0 && warmBrowsers === boxes && warmBrowsers === previousWarmBrowsers && unstoredRecordings === 0;
    previousWarmBrowsers = warmBrowsers;
    if (!isSettled) await systemClock.sleep(SETTLE_INTERVAL_MS);
    return { isSettled, warmBrowsers, boxes, unstored: unstoredRecordings };
  };
  await eventually('the warm browsers', readCounts, ({ isSettled }) => isSettled, REFILL_TIMEOUT_MS);
}

/** A pool that starts no browser for this long is full. */
const SETTLE_INTERVAL_MS = 400;

export const runSessionCycle = (server: TestServer, body: object = {}): Promise<Cycle> =>
  runCycle(async () => {
    const session = await server.createSession(body);
    return { url: session.connectUrl, end: () => server.release(session.id) };
  });

export const runByHandCycle = (): Promise<Cycle> =>
  runCycle(async () => {
    const browser = await PlainChromium.start();
    return { url: browser.url, end: () => browser.close() };
  });

async function runCycle(start: () => Promise<StartedBrowser>): Promise<Cycle> {
  const startMs = systemClock.monotonicMs();
  const msSince = (from: number): number => systemClock.monotonicMs() - from;
  const { url, end } = await start();
  const createdMs = msSince(startMs);
  const connection = await CdpConnection.open(url);
  await connection.send('Browser.getVersion');
  const firstResponseMs = msSince(startMs);
  const page = await connection.attachToPage();
  await connection.visit(PAGE, page);
  const title = await connection.evaluate('document.title', page);
  if (title !== TITLE)
    throw new Error(`the page has the title ${JSON.stringify(title)} instead of ${JSON.stringify(TITLE)}`);
  const titleMs = msSince(startMs);
  connection.close();
  const releaseStartMs = systemClock.monotonicMs();
  await end();
  return {
    created: createdMs,
    'CDP answers': firstResponseMs,
    'page title': titleMs,
    release: msSince(releaseStartMs),
  };
}
