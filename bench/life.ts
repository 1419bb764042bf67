// The CPU seconds of each step of a session's life. The server has no warm browsers, so a create starts Chromium.
import { systemClock } from '../server/kit/clock.ts';
import { PlainChromium } from '../tests/harness/by-hand.ts';
import type { TestServer } from '../tests/harness/server.ts';
import { CdpConnection } from './cdp-connection.ts';
import {
  type CpuSeconds,
  measureChildren,
  PROCESS_KINDS,
  type ServerCpuMeter,
  subtractCpuSeconds,
} from './cpu-groups.ts';
import { median } from './statistics.ts';

const PAGE = 'data:text/html,<title>life</title><h1>A page</h1>';
/** The wait after the release, so that the processor time of storing the recording is included. */
const STORE_WAIT_MS = 4_000;

const STEPS = ['create', 'first page', 'idle', 'release', 'afterwards'] as const;
type Step = (typeof STEPS)[number];

export interface LifeFigure {
  readonly step: Step;
  readonly ours: CpuSeconds;
  readonly byHand: number;
}

interface StartedBrowser {
  readonly url: string;
  end(): Promise<unknown>;
}

export async function measureLife(
  server: TestServer,
  cpuMeter: ServerCpuMeter,
  rounds: number,
  idleMs: number,
): Promise<readonly LifeFigure[]> {
  const ourCosts: CpuSeconds[][] = [];
  const byHandCosts: number[][] = [];
  for (let round = 0; round < rounds; round++) {
    await measureChildren('life', async readSeconds => {
      const start = async (): Promise<StartedBrowser> => {
        const browser = await PlainChromium.start();
        return { url: browser.url, end: () => browser.close() };
      };
      byHandCosts.push(differencesOf(await runLife(start, readSeconds, idleMs), (from, to) => to - from));
    });
    const start = async (): Promise<StartedBrowser> => {
      const session = await server.createSession();
      return { url: session.connectUrl, end: () => server.release(session.id) };
    };
    ourCosts.push(differencesOf(await runLife(start, () => cpuMeter.read(), idleMs), subtractCpuSeconds));
  }
  return STEPS.map((step, index) => ({
    step,
    byHand: median(byHandCosts.map(one => one[index] ?? Number.NaN)),
    ours: mediansOf(ourCosts.flatMap(one => one[index] ?? [])),
  }));
}

/** Returns the CPU time used before the first step and after each step. */
async function runLife<T>(
  start: () => Promise<StartedBrowser>,
  readCpuTime: () => T,
  idleMs: number,
): Promise<readonly T[]> {
  const readings = [readCpuTime()];
  const startedBrowser = await start();
  readings.push(readCpuTime());
  const connection = await CdpConnection.open(startedBrowser.url);
  const page = await connection.attachToPage();
  await connection.visit(PAGE, page);
  await connection.evaluate('document.title', page);
  readings.push(readCpuTime());
  await systemClock.sleep(idleMs);
  readings.push(readCpuTime());
  connection.close();
  await startedBrowser.end();
  readings.push(readCpuTime());
  await systemClock.sleep(STORE_WAIT_MS);
  return [...readings, readCpuTime()];
}

const differencesOf = <T, D>(readings: readonly T[], subtract: (from: T, to: T) => D): D[] =>
  readings.slice(1).flatMap((to, index) => {
    const from = readings[index];
    return from === undefined ? [] : [subtract(from, to)];
  });

function mediansOf(all: readonly CpuSeconds[]): CpuSeconds {
  const [chromium = 0, server = 0, postgres = 0, helpers = 0] = PROCESS_KINDS.map(kind =>
    median(all.map(cpuSeconds => cpuSeconds[kind])),
  );
  return { chromium, server, postgres, helpers };
}
