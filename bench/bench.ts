// `npm run bench [-- --quick] [-- --json PATH] [-- --write]`: starts a real server in a temporary folder, compares it
// with browsers that are started by hand, and prints Markdown or writes it into docs/performance.md.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { WaitExpired, withTimeout } from '../server/kit/wait.ts';
import { claimFreePort } from '../tests/harness/free-port.ts';
import { liftLimits } from '../tests/harness/limits.ts';
import { TestServer } from '../tests/harness/server.ts';
import { measureContexts } from './contexts.ts';
import { measureCrowd } from './crowd.ts';
import { measureEgress } from './egress.ts';
import { measureFiles } from './files.ts';
import { measureGateway } from './gateway.ts';
import { measureLifecycle } from './lifecycle.ts';
import { measureLogs } from './logs.ts';
import { readMachine } from './machine.ts';
import { measureMemory } from './memory.ts';
import { measureSteps } from './steps.ts';
import { type Figures, formatFigures } from './table.ts';
import { measureThroughput } from './throughput.ts';

const PERFORMANCE_DOC = join(import.meta.dirname, '../docs/performance.md');
/** The text between these marks in docs/performance.md is replaced. */
const MARKS = ['<!-- bench -->\n', '\n<!-- /bench -->'] as const;
/** The number of sessions that are open at the same time at the end of the benchmark. */
const SLOTS = 40;

interface Extent {
  readonly timeoutMs: number;
  readonly rounds: number;
  readonly sideRounds: number;
  readonly settleMs: number;
  readonly laneCounts: readonly number[];
  readonly turns: number;
  readonly turnMs: number;
  readonly crowdSessions: number;
}

const FULL_EXTENT: Extent = {
  timeoutMs: 900_000,
  rounds: 15,
  sideRounds: 25,
  settleMs: 5_000,
  laneCounts: [1, 4],
  turns: 3,
  turnMs: 10_000,
  crowdSessions: SLOTS,
};
const QUICK_EXTENT: Extent = {
  timeoutMs: 120_000,
  rounds: 1,
  sideRounds: 2,
  settleMs: 1_000,
  laneCounts: [1, 4],
  turns: 1,
  turnMs: 1_000,
  crowdSessions: 4,
};

async function measureAll(server: TestServer, isQuick: boolean): Promise<Figures> {
  const extent = isQuick ? QUICK_EXTENT : FULL_EXTENT;
  const machine = await readMachine();
  await runStep('the server', () => server.start());
  await liftLimits(server);
  const memory = await runStep('memory', () => measureMemory(server, extent.settleMs));
  const gateway = await runStep('CDP through the gateway', () => measureGateway(server, extent.sideRounds));
  const lifecycle = await runStep('one session', () => measureLifecycle(server, extent.rounds));
  const throughput = await runStep('sessions per minute', () => measureThroughput(server, extent));
  const crowd = await runStep('many sessions at once', () =>
    measureCrowd(server, extent.crowdSessions, extent.settleMs),
  );
  const steps = await runStep('steps of a create and of a release', () => measureSteps(extent.rounds, SLOTS));
  const logs = await runStep('logs', () => measureLogs(server, extent.sideRounds, extent.turns, extent.turnMs));
  const files = await runStep('files', () => measureFiles(server, extent.rounds));
  const egress = await runStep('the network of a page', () => measureEgress(server, extent.rounds));
  const contexts = await runStep('contexts', () => measureContexts(extent.rounds));
  return { machine, isQuick, lifecycle, gateway, memory, throughput, crowd, steps, logs, files, egress, contexts };
}

/** Progress goes to stderr, because stdout contains only the table. */
async function runStep<T>(name: string, work: () => Promise<T>): Promise<T> {
  process.stderr.write(`bench: ${name}\n`);
  return work();
}

function writeReport(markdown: string): void {
  const text = readFileSync(PERFORMANCE_DOC, 'utf8');
  const [from, to] = MARKS.map(mark => text.indexOf(mark)) as [number, number];
  if (from < 0 || to < from)
    throw new Error(`${PERFORMANCE_DOC} must contain the lines <!-- bench --> and <!-- /bench -->`);
  writeFileSync(PERFORMANCE_DOC, `${text.slice(0, from + MARKS[0].length)}${markdown.trim()}${text.slice(to)}`);
}

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    json: { type: 'string' },
    write: { type: 'boolean', default: false },
  },
});
const server = new TestServer(
  { env: { BERTH_SLOTS: String(SLOTS), BERTH_WARM: undefined, BERTH_EGRESS_ALLOW: '127.0.0.1/32' }, isMeasured: true },
  await claimFreePort(),
);
const { timeoutMs } = values.quick ? QUICK_EXTENT : FULL_EXTENT;
try {
  const figures = await withTimeout(timeoutMs, 'the bench', () => measureAll(server, values.quick));
  if (values.write) writeReport(formatFigures(figures));
  else process.stdout.write(formatFigures(figures));
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(figures, undefined, 2)}\n`);
} catch (error) {
  process.stderr.write(`bench: ${error instanceof WaitExpired ? error.message : error}\n`);
  process.exitCode = 1;
} finally {
  await server.close();
}
process.exit();
