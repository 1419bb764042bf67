// `npm run bench:neighbour [-- --quick] [--only NAME]`: the response time of a session while another application causes
// each kind of load that has a limit, compared with the same session without load. Prints a Markdown table.
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
import { type Misbehavior, openOffender } from './misbehavior.ts';

const CPU_ROOT = '/sys/fs/cgroup/cpu';
const IDLE_GROUP = join(CPU_ROOT, `berth-bench-${process.pid}`);
const BENCH_TIMEOUT_MS = 900_000;
const PROBE_TIMEOUT_MS = 40_000;
const FULL_EXTENT = { quietMs: 15_000, loadMs: 12_000 };
const QUICK_EXTENT = { quietMs: 4_000, loadMs: 3_000 };
/** The number of log lines that are shown on failure. */
const LOG_LINES_SHOWN = 10;
/** The limit for the p99 under load, relative to the p99 without load. */
const P99_RATIO_MAX = 3;

interface NeighbourOptions {
  readonly quick: boolean;
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

/** Repeats the misbehavior until the time is over. Refusals by the server are expected. */
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

const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |\n`;

const latencyRow = (name: string, { p50, p99, max, count }: Latencies, quietLatencies: Latencies): string =>
  row([name, ...[p50, p99, max].map(ms => ms.toFixed(1)), (p99 / quietLatencies.p99).toFixed(1), String(count)]);

async function measure(server: TestServer, { quick, only }: NeighbourOptions): Promise<string> {
  const { quietMs, loadMs } = quick ? QUICK_EXTENT : FULL_EXTENT;
  const machine = await readMachine();
  await server.start();
  await liftLimits(server);
  const session = await server.createSession({ keepAlive: true });
  const offender = await openOffender(server, await createOtherApplicationKey(server));
  const probe = await Probe.start(session.connectUrl);
  // This process is also the offender's client, which would normally run on another machine. It therefore uses only
  // idle processor time.
  await scheduleAsIdle(process.pid);
  await systemClock.sleep(quietMs / 3);
  const firstLineIndex = server.log().length;
  await probe.take();
  await systemClock.sleep(quietMs);
  const quietLatencies = await probe.take();
  const head = row([
    'While another application does',
    'p50 ms',
    'p99 ms',
    'max ms',
    `p99 / quiet, at most ${P99_RATIO_MAX}`,
    'answers',
  ]);
  const table = [head, row(['---', ...Array(5).fill('---:')]), latencyRow('nothing', quietLatencies, quietLatencies)];
  for (const misbehavior of offender.misbehaviors.filter(({ name }) => (only ?? name) === name)) {
    process.stderr.write(`neighbour: ${misbehavior.name}\n`);
    await probe.take();
    const refusals = await repeatFor(misbehavior, loadMs);
    table.push(
      latencyRow(
        refusals > 0 ? `${misbehavior.name} (${refusals} refused)` : misbehavior.name,
        await probe.take(),
        quietLatencies,
      ),
    );
  }
  if (only === undefined) {
    process.stderr.write('neighbour: all in turn\n');
    await probe.take();
    await repeatInTurn(offender.misbehaviors, 3 * loadMs);
    table.push(latencyRow('all of it in turn, by one client', await probe.take(), quietLatencies));
    process.stderr.write('neighbour: all at once\n');
    await Promise.all(offender.misbehaviors.map(misbehavior => repeatFor(misbehavior, 2 * loadMs)));
    table.push(
      latencyRow(`all of it at once, by ${offender.misbehaviors.length} clients`, await probe.take(), quietLatencies),
    );
  }
  probe.end();
  await offender.close();
  return `${table.join('')}\n${longTurnsText(server.log().slice(firstLineIndex))}\n\n${describeMachine(machine)}\n`;
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

const { values } = parseArgs({ options: { quick: { type: 'boolean', default: false }, only: { type: 'string' } } });
const env = { BERTH_SLOTS: '12', BERTH_EGRESS_ALLOW: '127.0.0.1/32' };
const server = new TestServer({ env, isMeasured: true }, await claimFreePort());
try {
  process.stdout.write(await withTimeout(BENCH_TIMEOUT_MS, 'the bench', () => measure(server, values)));
} catch (error) {
  process.stderr.write(`bench: ${error instanceof WaitExpired ? error.message : error}\n`);
  process.stderr.write(`${server.log().slice(-LOG_LINES_SHOWN).join('\n')}\n`);
  process.exitCode = 1;
} finally {
  await server.close();
  removeIdleGroup();
}
process.exit();
