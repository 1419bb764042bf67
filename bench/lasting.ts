// `npm run bench:lasting [-- --engine NAME]... [--rounds N] [--quick] [--part NAME]... [--json PATH] [--write]`:
// measures the demand that a server sustains, and the cost of a session. On a noisy machine, look at the CPU seconds
// and the ratios.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { withTimeout } from '../server/kit/wait.ts';
import { claimFreePort } from '../tests/harness/free-port.ts';
import { liftLimits } from '../tests/harness/limits.ts';
import { TestServer } from '../tests/harness/server.ts';
import { ServerCpuMeter } from './cpu-groups.ts';
import { type DemandFigure, measureDemand } from './demand.ts';
import { type HeldFigures, measureHeldSessions } from './held.ts';
import { type EngineFigures, lastingTables } from './lasting-table.ts';
import { type LifeFigure, measureLife } from './life.ts';
import { describeMachine, readMachine } from './machine.ts';

const PERFORMANCE_DOC = join(import.meta.dirname, '../docs/performance.md');
const MARKS = ['<!-- bench:lasting -->\n', '\n<!-- /bench:lasting -->'] as const;
/** The time limit of the whole run of one engine. */
const BENCH_TIMEOUT_MS = 4 * 3_600_000;
const SLOTS = 150;
const BURST_CYCLES = 10;
const BURST_WARM_BROWSERS = 4;
const PARTS = ['back to back', 'four at once', 'burst', 'cold', 'life', 'held'] as const;
type Part = (typeof PARTS)[number];

/** Cold starts all take about the same time, so a shorter block of `coldCycles` suffices for them. */
const FULL_EXTENT = {
  cycles: 60,
  coldCycles: 10,
  restMs: 60_000,
  idleMs: 10_000,
  lives: 5,
  held: 140,
  serverMs: 60_000,
  serverSettleMs: 90_000,
  pageSettleMs: 90_000,
};
const QUICK_EXTENT = {
  cycles: 6,
  coldCycles: 6,
  restMs: 1_000,
  idleMs: 2_000,
  lives: 1,
  held: 10,
  serverMs: 10_000,
  serverSettleMs: 2_000,
  pageSettleMs: 2_000,
};

const { values } = parseArgs({
  options: {
    engine: { type: 'string', multiple: true, default: ['chromium'] },
    part: { type: 'string', multiple: true, default: [...PARTS] },
    rounds: { type: 'string' },
    quick: { type: 'boolean', default: false },
    json: { type: 'string' },
    write: { type: 'boolean', default: false },
  },
});
const extent = values.quick ? QUICK_EXTENT : FULL_EXTENT;
const rounds = Number(values.rounds ?? (values.quick ? 1 : 11));
const isSelected = (part: Part): boolean => values.part.includes(part);

async function measureEngine(engine: string): Promise<EngineFigures> {
  const { cycles, coldCycles, restMs } = extent;
  const blocks = { burst: { cycles: BURST_CYCLES, restMs }, cold: { cycles: coldCycles, restMs: 0 } };
  const demands: DemandFigure[] = [];
  const measure = async (server: TestServer, cpuMeter: ServerCpuMeter, part: Part, lanes: number, isWarm = true) => {
    const block = part === 'burst' || part === 'cold' ? blocks[part] : { cycles, restMs: 0 };
    const figure = await measureDemand(server, cpuMeter, { name: part, rounds, lanes, ...block }, isWarm);
    // Printed at once, because a later part may fail.
    process.stderr.write(`${lastingTables([{ engine, demands: [figure] }])}\n\n`);
    return figure;
  };
  if (isSelected('back to back') || isSelected('four at once'))
    await withServer(engine, undefined, async (server, cpuMeter) => {
      if (isSelected('back to back')) demands.push(await measure(server, cpuMeter, 'back to back', 1));
      if (isSelected('four at once')) demands.push(await measure(server, cpuMeter, 'four at once', 4));
    });
  if (isSelected('burst'))
    await withServer(engine, BURST_WARM_BROWSERS, async (server, cpuMeter) => {
      demands.push(await measure(server, cpuMeter, 'burst', BURST_CYCLES));
    });
  const figures: { life?: readonly LifeFigure[]; held?: HeldFigures } = {};
  await withServer(engine, 0, async (server, cpuMeter) => {
    if (isSelected('cold')) demands.push(await measure(server, cpuMeter, 'cold', 1, false));
    if (isSelected('life')) figures.life = await measureLife(server, cpuMeter, extent.lives, extent.idleMs);
    if (isSelected('held'))
      figures.held = await measureHeldSessions(server, cpuMeter, {
        ...{ maxSessions: extent.held, idleMs: extent.serverMs },
        ...{ serverSettleMs: extent.serverSettleMs, pageSettleMs: extent.pageSettleMs },
      });
  });
  return { engine, demands, ...figures };
}

/** `warm`: the value of BERTH_WARM. If undefined, the server uses its default for this machine. */
async function withServer(
  engine: string,
  warm: number | undefined,
  work: (server: TestServer, cpuMeter: ServerCpuMeter) => Promise<void>,
): Promise<void> {
  const env = {
    BERTH_SLOTS: String(SLOTS),
    BERTH_WARM: warm?.toString(),
    BERTH_ENGINE: engine === 'chromium' ? undefined : engine,
  };
  const server = new TestServer({ env, isMeasured: true }, await claimFreePort());
  let cpuMeter: ServerCpuMeter | undefined;
  try {
    await server.start();
    await liftLimits(server);
    cpuMeter = new ServerCpuMeter(server, String(warm ?? 'default'));
    await work(server, cpuMeter);
  } finally {
    await server.close();
    await cpuMeter?.close();
  }
}

function writeReport(markdown: string): void {
  const text = readFileSync(PERFORMANCE_DOC, 'utf8');
  const [from, to] = MARKS.map(mark => text.indexOf(mark));
  if (from === undefined || to === undefined || from < 0 || to < from)
    throw new Error(`${PERFORMANCE_DOC} must contain the lines ${MARKS.map(mark => mark.trim()).join(' and ')}`);
  writeFileSync(PERFORMANCE_DOC, `${text.slice(0, from + MARKS[0].length)}${markdown.trim()}${text.slice(to)}`);
}

try {
  const machine = await readMachine();
  const engines: EngineFigures[] = [];
  for (const engine of values.engine)
    engines.push(await withTimeout(BENCH_TIMEOUT_MS, `the bench of ${engine}`, () => measureEngine(engine)));
  const markdown = `Measured on: ${describeMachine(machine)}; ${rounds} rounds.\n\n${lastingTables(engines)}\n`;
  if (values.write) writeReport(markdown);
  else process.stdout.write(markdown);
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify({ machine, engines }, undefined, 2)}\n`);
} catch (error) {
  process.stderr.write(`bench: ${error instanceof Error ? error.stack : error}\n`);
  process.exitCode = 1;
}
process.exit();
