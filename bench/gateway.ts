// CDP through the gateway and through a plain TCP proxy, compared with Chromium's own DevTools socket. The three sides
// are measured in alternating blocks. Each ratio compares a block with the block on Chromium's own socket in the same
// round.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { systemClock } from '../server/kit/clock.ts';
import { withTimeout } from '../server/kit/wait.ts';
import { PlainChromium } from '../tests/harness/by-hand.ts';
import type { TestServer } from '../tests/harness/server.ts';
import { CdpConnection } from './cdp-connection.ts';
import { type Comparison, comparisonOf, median } from './statistics.ts';

const COMMANDS_IN_FLIGHT = 64;
const MEGABYTE = 1_000_000;
const PAGE = `data:text/html,<title>fixed</title><style>body{font:16px sans-serif}</style>${'<p>The same page each time.</p>'.repeat(40)}`;
const START_TIMEOUT_MS = 10_000;

export interface GatewayFigure {
  readonly name: string;
  readonly unit: 'ms' | 'per s';
  /** The target for the ratio of the gateway to the direct connection: an upper limit for times, a lower limit for rates. */
  readonly target: number;
  readonly gateway: Comparison;
  readonly passThrough: Comparison;
}

export interface Side {
  readonly connection: CdpConnection;
  readonly page: string;
}

export interface Measure {
  readonly name: string;
  readonly unit: 'ms' | 'per s';
  readonly target: number;
  measureBlock(side: Side): Promise<number>;
}

const evaluate = ({ connection, page }: Side): Promise<unknown> =>
  connection.send('Runtime.evaluate', { expression: '1+1' }, page);

export const MEASURES: readonly Measure[] = [
  {
    name: 'Browser.getVersion, p50',
    unit: 'ms',
    target: 1.25,
    measureBlock: side => measureMedianMs(300, () => side.connection.send('Browser.getVersion')),
  },
  {
    name: 'Runtime.evaluate, p50',
    unit: 'ms',
    target: 1.15,
    measureBlock: side => measureMedianMs(150, () => evaluate(side)),
  },
  {
    name: `Runtime.evaluate, ${COMMANDS_IN_FLIGHT} in flight`,
    unit: 'per s',
    target: 0.95,
    measureBlock: side => measureEvaluationRate(2_000, side),
  },
  {
    name: '1 MB result, p50',
    unit: 'ms',
    target: 1.05,
    measureBlock: ({ connection, page }) => measureMedianMs(8, () => connection.evaluate('megabyte', page)),
  },
  {
    name: 'Page.captureScreenshot, p50',
    unit: 'ms',
    target: 1.05,
    measureBlock: ({ connection, page }) =>
      measureMedianMs(5, () => connection.send('Page.captureScreenshot', {}, page)),
  },
];

export async function measureGateway(server: TestServer, rounds: number): Promise<readonly GatewayFigure[]> {
  const browser = await PlainChromium.start();
  const proxy = await startPassThrough(browser.url);
  const session = await server.createSession();
  const urls = [browser.url, session.connectUrl, proxy.url];
  const sides = await Promise.all(urls.map(prepareSide));
  const figures: GatewayFigure[] = [];
  for (const measure of MEASURES) figures.push(await compare(measure, sides, rounds));
  for (const { connection } of sides) connection.close();
  proxy.end();
  await server.release(session.id);
  await browser.close();
  return figures;
}

async function compare(measure: Measure, sides: readonly Side[], rounds: number): Promise<GatewayFigure> {
  const [direct = [], gateway = [], passThrough = []] = await measureInTurns(measure, sides, rounds);
  const { name, unit, target } = measure;
  return { name, unit, target, gateway: comparisonOf(direct, gateway), passThrough: comparisonOf(direct, passThrough) };
}

/** Measures the sides in alternating blocks, and returns the results by side. */
export async function measureInTurns(measure: Measure, sides: readonly Side[], rounds: number): Promise<number[][]> {
  const resultsBySide: number[][] = sides.map(() => []);
  for (const side of sides) await measure.measureBlock(side); // fills caches
  for (let round = 0; round < rounds; round++) {
    // Each round begins with a different side, so that no side always follows the slowest one.
    for (const offset of sides.keys()) {
      const index = (round + offset) % sides.length;
      const side = sides[index];
      if (side) resultsBySide[index]?.push(await measure.measureBlock(side));
    }
  }
  return resultsBySide;
}

export async function prepareSide(url: string): Promise<Side> {
  const connection = await CdpConnection.open(url);
  // A separate window: a background tab is not painted, and its screenshot never completes.
  const { targetId } = await connection.send('Target.createTarget', { url: 'about:blank', newWindow: true });
  const { sessionId } = await connection.send('Target.attachToTarget', { targetId, flatten: true });
  const page = String(sessionId);
  await connection.visit(PAGE, page);
  await connection.evaluate(`globalThis.megabyte = 'x'.repeat(${MEGABYTE}); 0`, page);
  return { connection, page };
}

async function measureMedianMs(count: number, work: () => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let sample = 0; sample < count; sample++) {
    const startMs = systemClock.monotonicMs();
    await work();
    times.push(systemClock.monotonicMs() - startMs);
  }
  return median(times);
}

/** Commands per second while `COMMANDS_IN_FLIGHT` commands are always pending. */
async function measureEvaluationRate(count: number, side: Side): Promise<number> {
  let startedCount = 0;
  const runLane = async (): Promise<void> => {
    while (startedCount++ < count) await evaluate(side);
  };
  const startMs = systemClock.monotonicMs();
  await Promise.all(Array.from({ length: COMMANDS_IN_FLIGHT }, runLane));
  return (count / (systemClock.monotonicMs() - startMs)) * 1000;
}

async function startPassThrough(url: string): Promise<{ url: string; end(): void }> {
  const target = new URL(url);
  const child = fork(join(import.meta.dirname, 'pass-through.ts'), [target.port]);
  const [port] = await withTimeout(START_TIMEOUT_MS, 'the pass-through to start', signal =>
    once(child, 'message', { signal }),
  );
  target.port = String(port);
  return { url: target.href, end: () => child.disconnect() };
}
