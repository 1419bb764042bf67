// `node bench/engines.ts [--rounds N]`: measures the cost of a session on each engine. The engines alternate within
// each round. The figures of a session are its CPU seconds, including those of the server, the time from a create without a
// warm browser until the title of a page has been read, and the time of its release, both in milliseconds. Also measures
// the memory of idle sessions with a page. Requires root and the cgroup controller cpuacct.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ENGINES, type Engine } from '../contract/sessions.ts';
import { systemClock } from '../server/kit/clock.ts';
import { boxesOf } from '../tests/harness/boxes.ts';
import { claimFreePort } from '../tests/harness/free-port.ts';
import { liftLimits } from '../tests/harness/limits.ts';
import { TestServer } from '../tests/harness/server.ts';
import { CdpConnection } from './cdp-connection.ts';
import { runSessionCycle } from './lifecycle.ts';
import { describeMachine, readMachine } from './machine.ts';
import { createCpuMeter, type Memory, memoryOf, processTreesOf } from './processes.ts';
import { type Summary, summaryOf } from './statistics.ts';

const ROUNDS = 11;
const IDLE_SESSIONS = 4;
const SETTLE_MS = 5_000;
/** The time until the processes of a released session are reaped. */
const REAP_WAIT_MS = 300;
const PAGE = 'data:text/html,<title>idle</title><h1>A page</h1>';

const { values } = parseArgs({ options: { rounds: { type: 'string' } } });
const rounds = Number(values.rounds ?? ROUNDS);
const machine = await readMachine();
const server = new TestServer(
  { env: { BERTH_SLOTS: '10', BERTH_WARM: '0', BERTH_ENGINE: undefined }, isMeasured: true },
  await claimFreePort(),
);
await server.start();
try {
  await liftLimits(server);
  const cpuMeter = createCpuMeter([server.pid]);
  const lives = await measureLife(() => cpuMeter.seconds() + boxCpuSeconds());
  const idleMemories = [];
  for (const engine of ENGINES) idleMemories.push({ engine, memory: await measureIdle(engine) });
  process.stdout.write(`Measured on: ${describeMachine(machine)}\n\n${formatTables(lives, idleMemories)}`);
} finally {
  await server.close();
}

/**
 * The CPU seconds of all boxes of this server. Boxes do not stay in the server's cgroup, but join child groups of the
 * group read here. This group also counts child groups that have been removed.
 */
function boxCpuSeconds(): number {
  const installId = readFileSync(join(server.dataDir, 'install-id'), 'utf8').trim();
  return Number(readFileSync(`/sys/fs/cgroup/cpuacct/berth-${installId}/cpuacct.usage`, 'utf8')) / 1e9;
}

interface Life {
  readonly engine: Engine;
  readonly cpuSeconds: Summary;
  readonly titleMs: Summary;
  readonly releaseMs: Summary;
}

async function measureLife(readCpuSeconds: () => number): Promise<readonly Life[]> {
  const samples = ENGINES.map(engine => ({
    engine,
    cpu: [] as number[],
    titleTimes: [] as number[],
    releaseTimes: [] as number[],
  }));
  // The first cycle of each engine reads all files from disk.
  for (const { engine } of samples) await runSessionCycle(server, { browserSettings: { engine } });
  for (let round = 0; round < rounds; round++)
    for (const { engine, cpu, titleTimes, releaseTimes } of samples) {
      const cpuSecondsBefore = readCpuSeconds();
      const cycle = await runSessionCycle(server, { browserSettings: { engine } });
      await systemClock.sleep(REAP_WAIT_MS);
      cpu.push(readCpuSeconds() - cpuSecondsBefore);
      titleTimes.push(cycle['page title']);
      releaseTimes.push(cycle.release);
    }
  return samples.map(({ engine, cpu, titleTimes, releaseTimes }) => ({
    engine,
    cpuSeconds: summaryOf(cpu),
    titleMs: summaryOf(titleTimes),
    releaseMs: summaryOf(releaseTimes),
  }));
}

/** Measures several sessions and returns the average, because they share memory pages. */
async function measureIdle(engine: Engine): Promise<Memory> {
  const sessions = [];
  for (let nth = 0; nth < IDLE_SESSIONS; nth++)
    sessions.push(await server.createSession({ keepAlive: true, browserSettings: { engine } }));
  for (const { connectUrl } of sessions) {
    const connection = await CdpConnection.open(connectUrl);
    await connection.visit(PAGE, await connection.attachToPage());
    connection.close();
  }
  await systemClock.sleep(SETTLE_MS);
  const total = memoryOf(processTreesOf(boxesOf(server.dataDir).flatMap(({ pids }) => pids)));
  for (const { id } of sessions) await server.release(id);
  return {
    pssMib: total.pssMib / IDLE_SESSIONS,
    privateMib: total.privateMib / IDLE_SESSIONS,
    processes: total.processes / IDLE_SESSIONS,
  };
}

function formatTables(lives: readonly Life[], idleMemories: ReadonlyArray<{ engine: Engine; memory: Memory }>): string {
  const cell = ({ median, min, max }: Summary, digits: number): string =>
    `${median.toFixed(digits)} (${min.toFixed(digits)}–${max.toFixed(digits)})`;
  return [
    '| Cold create → title → release | CPU seconds, with the server’s | title, ms | release, ms |',
    '| --- | ---: | ---: | ---: |',
    ...lives.map(
      ({ engine, cpuSeconds, titleMs, releaseMs }) =>
        `| ${engine} | ${cell(cpuSeconds, 2)} | ${cell(titleMs, 0)} | ${cell(releaseMs, 0)} |`,
    ),
    '',
    '| An idle session with a page, MiB | private | PSS | processes |',
    '| --- | ---: | ---: | ---: |',
    ...idleMemories.map(
      ({ engine, memory }) =>
        `| ${engine} | ${memory.privateMib.toFixed(0)} | ${memory.pssMib.toFixed(0)} | ${memory.processes.toFixed(0)} |`,
    ),
    '',
  ].join('\n');
}
