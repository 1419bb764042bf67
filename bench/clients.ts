// `npm run bench:clients [-- --quick]`: measures how long it takes to run all cells of the table in
// tests/acceptance/clients.test.ts. As in the test, each cell has its own browser: a session, or a Chromium that is
// started by hand. Each round runs the whole table once with each kind of browser. Only one browser runs at a time.
import { parseArgs } from 'node:util';
import { systemClock } from '../server/kit/clock.ts';
import { withTimeout } from '../server/kit/wait.ts';
import { PlainChromium } from '../tests/harness/by-hand.ts';
import { CELL_PAGES, CELLS, type Driver } from '../tests/harness/client-cells.ts';
import { claimFreePort } from '../tests/harness/free-port.ts';
import { liftLimits } from '../tests/harness/limits.ts';
import { openPages } from '../tests/harness/pages.ts';
import { PlaywrightDriver } from '../tests/harness/playwright-driver.ts';
import { PuppeteerDriver } from '../tests/harness/puppeteer-driver.ts';
import { RawDriver } from '../tests/harness/raw-driver.ts';
import { TestServer } from '../tests/harness/server.ts';
import { untilRefilled } from './lifecycle.ts';
import { describeMachine, readMachine } from './machine.ts';
import { type Comparison, comparisonOf } from './statistics.ts';

const BENCH_TIMEOUT_MS = 1_800_000;
const ROUNDS = 3;
const CLIENTS = { 'bare CDP': RawDriver, Playwright: PlaywrightDriver, Puppeteer: PuppeteerDriver } as const;
const BODY_WITHOUT_CAPTURE = { browserSettings: { logSession: false, recordSession: false } };

interface Browser {
  readonly url: string;
  end(): Promise<unknown>;
}

interface Side {
  start(): Promise<Browser>;
}

/** How long it takes to run the table once, in milliseconds. */
interface Timings {
  /** From the start of the first browser to the end of the last browser. */
  readonly wholeMs: number;
  /** Excludes the time for starting, connecting to and ending the browsers. */
  readonly cellsMs: number;
}

async function runTable(
  open: (url: string, site: string) => Promise<Driver>,
  side: Side,
  site: string,
): Promise<Timings> {
  const startMs = systemClock.monotonicMs();
  let cellsMs = 0;
  for (const cell of CELLS) {
    const browser = await side.start();
    const driver = await open(browser.url, site);
    const cellStartMs = systemClock.monotonicMs();
    await driver.run(cell);
    cellsMs += systemClock.monotonicMs() - cellStartMs;
    await driver.close();
    await browser.end();
  }
  return { wholeMs: systemClock.monotonicMs() - startMs, cellsMs };
}

const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |\n`;
const formatSeconds = (ms: number): string => (ms / 1_000).toFixed(1);

function tableLine(label: string, { base, ours, ratio }: Comparison): string {
  const ratioText = `${ratio.median.toFixed(2)} (${ratio.min.toFixed(2)}–${ratio.max.toFixed(2)})`;
  return row([label, formatSeconds(base.median), formatSeconds(ours.median), ratioText]);
}

async function measure(rounds: number): Promise<void> {
  const pages = await openPages(CELL_PAGES);
  const server = new TestServer({ env: { BERTH_WARM: undefined }, isMeasured: true, pages }, await claimFreePort());
  const sessionSide = (body: object): Side => ({
    start: async () => {
      const { id, connectUrl } = await server.createSession(body);
      return { url: connectUrl, end: () => server.release(id) };
    },
  });
  const plainChromiumSide: Side = {
    start: async () => {
      const browser = await PlainChromium.start();
      return { url: browser.url, end: () => browser.close() };
    },
  };
  const sides = {
    'a session with defaults': sessionSide({}),
    'without log and recording': sessionSide(BODY_WITHOUT_CAPTURE),
  };
  try {
    await server.start();
    await liftLimits(server);
    process.stdout.write(`Measured on: ${describeMachine(await readMachine())}.\n\n`);
    process.stdout.write(row(['Table of clients, seconds', 'by hand', 'Berth', 'ratio (min–max)']));
    process.stdout.write(row(['---', '---:', '---:', '---:']));
    for (const [client, { open }] of Object.entries(CLIENTS)) {
      const plainChromiumTimings: Timings[] = [];
      const sessionTimings = Object.keys(sides).map((): Timings[] => []);
      for (let round = 0; round < rounds; round++) {
        plainChromiumTimings.push(await runTable(open, plainChromiumSide, pages.url));
        for (const [at, side] of Object.values(sides).entries()) {
          await untilRefilled(server);
          sessionTimings[at]?.push(await runTable(open, side, pages.url));
        }
      }
      for (const [at, name] of Object.keys(sides).entries()) {
        const compare = (timing: keyof Timings): Comparison =>
          comparisonOf(
            plainChromiumTimings.map(one => one[timing]),
            (sessionTimings[at] ?? []).map(one => one[timing]),
          );
        process.stdout.write(tableLine(`${client}, ${name}`, compare('wholeMs')));
        process.stdout.write(tableLine(`${client}, ${name}: the cells alone`, compare('cellsMs')));
      }
    }
  } finally {
    await server.close();
  }
}

const { values } = parseArgs({ options: { quick: { type: 'boolean', default: false } } });
await withTimeout(BENCH_TIMEOUT_MS, 'the bench of clients', () => measure(values.quick ? 1 : ROUNDS));
process.exit();
