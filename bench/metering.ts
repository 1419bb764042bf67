// `npm run bench:metering [-- --quick] [--json]`: creates sessions on two servers alternately. On one server, sessions
// cost credit. On the other server, they cost nothing. The target is that metering adds at most one millisecond.
import { parseArgs } from 'node:util';
import { systemClock } from '../server/kit/clock.ts';
import { claimFreePort } from '../tests/harness/free-port.ts';
import { liftLimits } from '../tests/harness/limits.ts';
import { TestServer } from '../tests/harness/server.ts';
import { untilRefilled } from './lifecycle.ts';
import { describeMachine, readMachine } from './machine.ts';
import { median, type Summary, summaryOf } from './statistics.ts';

const ROUNDS = 100;
const QUICK_ROUNDS = 20;
/** The number of rounds that are not counted, because the first requests to a server are slower. */
const WARM_UP_ROUNDS = 10;
const ADDED_MS_MAX = 1;
const CREDITS = '1000000';
const RATES = { BERTH_RATE_BROWSER_SECOND: '1000', BERTH_RATE_EGRESS_MEGABYTE: '100' };

interface Figures {
  /**
   * Milliseconds per create: `off` on the server where sessions cost nothing, `on` on the server where they cost
   * credit.
   */
  readonly off: Summary;
  readonly on: Summary;
  /** `on` minus `off` in each round, in milliseconds. */
  readonly difference: Summary;
  readonly released: { readonly off: number; readonly on: number; readonly difference: number };
}

const startedServers: TestServer[] = [];

async function startServer(env: Record<string, string>): Promise<TestServer> {
  const server = new TestServer(
    { env: { BERTH_WARM: '2', BERTH_SLOTS: '6', ...env }, isMeasured: true },
    await claimFreePort(),
  );
  startedServers.push(server);
  await server.start();
  await liftLimits(server);
  return server;
}

interface Times {
  readonly createMs: number;
  readonly releaseMs: number;
}

/** Measures a create that claims a warm browser, and the release of the session. */
async function createAndRelease(server: TestServer): Promise<Times> {
  await untilRefilled(server);
  const startMs = systemClock.monotonicMs();
  const { id } = await server.createSession({ keepAlive: true });
  const createdMs = systemClock.monotonicMs();
  await server.release(id);
  return { createMs: createdMs - startMs, releaseMs: systemClock.monotonicMs() - createdMs };
}

async function measure(freeServer: TestServer, chargedServer: TestServer, rounds: number): Promise<Figures> {
  const times: { off: Times[]; on: Times[] } = { off: [], on: [] };
  for (let round = -WARM_UP_ROUNDS; round < rounds; round += 1) {
    // The two servers take turns in going first.
    const isOffFirst = round % 2 === 0;
    const first = await createAndRelease(isOffFirst ? freeServer : chargedServer);
    const second = await createAndRelease(isOffFirst ? chargedServer : freeServer);
    if (round < 0) continue;
    times.off.push(isOffFirst ? first : second);
    times.on.push(isOffFirst ? second : first);
  }
  const timesOf = (side: 'off' | 'on', timeField: keyof Times): number[] => times[side].map(one => one[timeField]);
  const differencesOf = (timeField: keyof Times): number[] =>
    timesOf('on', timeField).map((ms, at) => ms - (timesOf('off', timeField)[at] ?? Number.NaN));
  return {
    off: summaryOf(timesOf('off', 'createMs')),
    on: summaryOf(timesOf('on', 'createMs')),
    difference: summaryOf(differencesOf('createMs')),
    released: {
      ...{ off: median(timesOf('off', 'releaseMs')), on: median(timesOf('on', 'releaseMs')) },
      difference: median(differencesOf('releaseMs')),
    },
  };
}

const formatMs = (value: number): string => `${value.toFixed(2)} ms`;

function figuresTable({ off, on, difference, released }: Figures): string {
  const isMet = difference.median <= ADDED_MS_MAX;
  return [
    '| | without credit | with credit | median of the differences |',
    '| --- | --- | --- | --- |',
    `| create | ${formatMs(off.median)} | ${formatMs(on.median)} | ${formatMs(difference.median)} |`,
    `| release | ${formatMs(released.off)} | ${formatMs(released.on)} | ${formatMs(released.difference)} |`,
    '',
    `${off.count} creates on each side. Asked of a create: at most ${ADDED_MS_MAX} ms more. ${isMet ? 'Met.' : 'Not met.'}`,
    '',
  ].join('\n');
}

const { values } = parseArgs({ options: { quick: { type: 'boolean' }, json: { type: 'boolean' } } });
const machine = await readMachine();
try {
  const [freeServer, chargedServer] = [await startServer({}), await startServer(RATES)];
  const grantResult = await chargedServer.berth('credits', 'grant', '-', CREDITS, '--reason', 'bench');
  if (grantResult.code !== 0) throw new Error(grantResult.stderr);
  const figures = await measure(freeServer, chargedServer, values.quick ? QUICK_ROUNDS : ROUNDS);
  process.stdout.write(
    values.json
      ? `${JSON.stringify({ machine, ...figures })}\n`
      : `${describeMachine(machine)}\n\n${figuresTable(figures)}`,
  );
} finally {
  for (const server of startedServers) await server.close();
}
