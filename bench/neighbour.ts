// `npm run bench:neighbour [-- --quick] [--only NAME] [--rounds N]`: the response time of a session while another
// application causes each kind of load that has a limit, compared with the same session without load. Prints a Markdown
// table with the medians of the rounds.
import { type ChildProcess, execFile, fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { systemClock } from '../server/kit/clock.ts';
import { WaitExpired, withTimeout } from '../server/kit/wait.ts';
import { claimFreePort } from '../tests/harness/free-port.ts';
import { liftLimits } from '../tests/harness/limits.ts';
import { createOtherApplicationKey } from '../tests/harness/other-application.ts';
import { TestServer } from '../tests/harness/server.ts';
import { describeMachine, readMachine } from './machine.ts';
import { type Misbehavior, type Offender, openOffender } from './misbehavior.ts';
import { median } from './statistics.ts';

const CPU_ROOT = '/sys/fs/cgroup/cpu';
const IDLE_GROUP = join(CPU_ROOT, `berth-bench-${process.pid}`);
const ROUNDS_DEFAULT = 3;
const SETUP_TIMEOUT_MS = 300_000;
const ROUND_TIMEOUT_MS = 300_000;
/** The pause before each round, in which the load of the previous one ends. */
const PAUSE_MS = 15_000;
const PROBE_TIMEOUT_MS = 40_000;
const FULL_EXTENT = { quietMs: 15_000, loadMs: 12_000 };
const QUICK_EXTENT = { quietMs: 4_000, loadMs: 3_000 };
/** The number of log lines that are shown on failure. */
const LOG_LINES_SHOWN = 10;
/** The limit for the p99 under load, relative to the p99 without load. */
const P99_RATIO_MAX = 3;

interface NeighbourOptions {
  readonly quick: boolean;
  readonly rounds: number;
  /** Measures only this misbehavior. Default: each one, and then all at once. */
  readonly only?: string;
}

interface Latencies {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
  readonly count: number;
}

class Probe {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  static async start(connectUrl: string): Promise<Probe> {
    const child = fork(join(import.meta.dirname, 'neighbour-probe.ts'), [connectUrl]);
    await withTimeout(PROBE_TIMEOUT_MS, 'the probe to be ready', signal => once(child, 'message', { signal }));
    // The probe gets real-time priority. A client normally runs on another machine, and does not compete with the
    // server for processors.
    await setScheduling('--rr', 1, child.pid);
    return new Probe(child);
  }

  /** Response times since the last call. */
  async take(): Promise<Latencies> {
    const reply = withTimeout(PROBE_TIMEOUT_MS, 'the probe to answer', signal =>
      once(this.#child, 'message', { signal }),
    );
    this.#child.send('take');
    const [durationsMs]: readonly unknown[] = await reply;
    return latenciesOf(Array.isArray(durationsMs) ? durationsMs.filter(value => typeof value === 'number') : []);
  }

  end(): void {
    this.#child.disconnect();
  }
}

async function setScheduling(policy: '--idle' | '--rr', priority: number, pid: number | undefined): Promise<void> {
  await promisify(execFile)('chrt', [policy, '--all-tasks', '--pid', String(priority), String(pid)]);
}

/**
 * Sets the idle scheduling policy and, on cgroup v1, moves the process into an idle group. The policy alone affects
 * scheduling only within the autogroup of the process (the processes of the same terminal session).
 */
async function scheduleAsIdle(pid: number): Promise<void> {
  await setScheduling('--idle', 0, pid);
  if (!existsSync(join(CPU_ROOT, 'cpu.idle'))) return;
  mkdirSync(IDLE_GROUP, { recursive: true });
  writeFileSync(join(IDLE_GROUP, 'cpu.idle'), '1');
  writeFileSync(join(IDLE_GROUP, 'cgroup.procs'), String(pid));
}

function removeIdleGroup(): void {
  if (!existsSync(IDLE_GROUP)) return;
  writeFileSync(join(CPU_ROOT, 'cgroup.procs'), String(process.pid));
  rmdirSync(IDLE_GROUP);
}

function latenciesOf(durationsMs: readonly number[]): Latencies {
  const sortedMs = durationsMs.toSorted((one, other) => one - other);
  const percentile = (share: number): number =>
    sortedMs[Math.min(sortedMs.length - 1, Math.floor(share * sortedMs.length))] ?? 0;
  return { p50: percentile(0.5), p99: percentile(0.99), max: sortedMs.at(-1) ?? 0, count: sortedMs.length };
}

/** Repeats the misbehavior until the time is over. Returns how often the server refused it, which is expected. */
async function repeatFor({ run }: Misbehavior, ms: number): Promise<number> {
  const endMs = systemClock.monotonicMs() + ms;
  let refusals = 0;
  while (systemClock.monotonicMs() < endMs)
    await run().catch(async () => {
      refusals++;
      await systemClock.sleep(100);
    });
  return refusals;
}

/** Causes each kind of load once, one after the other, until the time is over. */
async function repeatInTurn(misbehaviors: readonly Misbehavior[], ms: number): Promise<void> {
  const endMs = systemClock.monotonicMs() + ms;
  while (systemClock.monotonicMs() < endMs) for (const one of misbehaviors) await one.run().catch(() => {});
}

interface Measurement {
  readonly name: string;
  readonly latencies: Latencies;
  /** The p99, divided by the p99 that was measured without load in the same round. */
  readonly ratio: number;
}

/** Measures the probe's session without load, beside each kind of load, and then beside all of them. */
async function measureRound(
  probe: Probe,
  { misbehaviors }: Offender,
  { quick, only }: NeighbourOptions,
): Promise<readonly Measurement[]> {
  const { quietMs, loadMs } = quick ? QUICK_EXTENT : FULL_EXTENT;
  const measurements: Measurement[] = [];
  const add = async (name: string, load: () => Promise<unknown>): Promise<void> => {
    process.stderr.write(`neighbour: ${name}\n`);
    await probe.take();
    await load();
    const latencies = await probe.take();
    if (latencies.count === 0) throw new Error(`the probe received no response during the measurement "${name}"`);
    const quietP99 = measurements[0]?.latencies.p99 ?? latencies.p99;
    measurements.push({ name, latencies, ratio: latencies.p99 / quietP99 });
  };
  await systemClock.sleep(PAUSE_MS);
  await add('nothing', () => systemClock.sleep(quietMs));
  for (const misbehavior of misbehaviors.filter(({ name }) => (only ?? name) === name))
    await add(misbehavior.name, async () => {
      const refusals = await repeatFor(misbehavior, loadMs);
      if (refusals > 0) process.stderr.write(`neighbour: ${refusals} refused\n`);
    });
  if (only !== undefined) return measurements;
  await add('all of it in turn, by one client', () => repeatInTurn(misbehaviors, 3 * loadMs));
  await add(`all of it at once, by ${misbehaviors.length} clients`, () =>
    Promise.all(misbehaviors.map(misbehavior => repeatFor(misbehavior, 2 * loadMs))),
  );
  return measurements;
}

const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |\n`;

/** One row for each load, with the medians of the rounds and the ratio of each round. */
function tableOf(rounds: readonly (readonly Measurement[])[]): string {
  const head = ['While another application does', 'p50 ms', 'p99 ms', 'max ms'];
  const lines = (rounds[0] ?? []).map(({ name }, at) => {
    const measurements = rounds.flatMap(round => round[at] ?? []);
    const medianOf = (read: (one: Measurement) => number): string => median(measurements.map(read)).toFixed(1);
    return row([
      name,
      medianOf(({ latencies }) => latencies.p50),
      medianOf(({ latencies }) => latencies.p99),
      medianOf(({ latencies }) => latencies.max),
      medianOf(({ ratio }) => ratio),
      measurements.map(({ ratio }) => ratio.toFixed(1)).join(', '),
    ]);
  });
  return [
    row([...head, `p99 / quiet, at most ${P99_RATIO_MAX}`, 'of each round']),
    row(['---', ...Array(5).fill('---:')]),
    ...lines,
  ].join('');
}

async function measure(server: TestServer, options: NeighbourOptions): Promise<string> {
  const machine = await readMachine();
  await server.start();
  await liftLimits(server);
  const session = await server.createSession({ keepAlive: true });
  const offender = await openOffender(server, await createOtherApplicationKey(server));
  const probe = await Probe.start(session.connectUrl);
  // This process is also the offender's client, which would normally run on another machine. It therefore uses only
  // idle processor time.
  await scheduleAsIdle(process.pid);
  const firstLineIndex = server.log().length;
  const rounds: (readonly Measurement[])[] = [];
  while (rounds.length < options.rounds) rounds.push(await measureRound(probe, offender, options));
  probe.end();
  await offender.close();
  return `${tableOf(rounds)}\n${longTurnsText(server.log().slice(firstLineIndex))}\n\n${describeMachine(machine)}\n`;
}

/**
 * Summarizes the long turns of the event loop that the server reports. They do not include time in which the machine
 * ran other processes.
 */
function longTurnsText(lines: readonly string[]): string {
  const cpuMs = lines
    .filter(line => line.includes('"loop.long_turn"'))
    .map(line => Number(/"cpuMs":(\d+)/.exec(line)?.[1]));
  return `Turns of the event loop above 100 ms: ${cpuMs.length}; the longest used ${Math.max(0, ...cpuMs)} ms of CPU time.`;
}

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string' },
    rounds: { type: 'string', default: String(ROUNDS_DEFAULT) },
  },
});
const options = { ...values, rounds: Number(values.rounds) };
if (!(options.rounds >= 1)) throw new Error(`--rounds must be at least 1, not ${values.rounds}`);
const env = { BERTH_SLOTS: '12', BERTH_EGRESS_ALLOW: '127.0.0.1/32' };
const server = new TestServer({ env, isMeasured: true }, await claimFreePort());
try {
  process.stdout.write(
    await withTimeout(SETUP_TIMEOUT_MS + options.rounds * ROUND_TIMEOUT_MS, 'the bench', () =>
      measure(server, options),
    ),
  );
} catch (error) {
  process.stderr.write(`bench: ${error instanceof WaitExpired ? error.message : error}\n`);
  process.stderr.write(`${server.log().slice(-LOG_LINES_SHOWN).join('\n')}\n`);
  process.exitCode = 1;
} finally {
  await server.close();
  removeIdleGroup();
}
process.exit();
