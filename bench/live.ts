// `node bench/live.ts [--quick]`: latency and cost of watching a session, compared with a screencast directly from a
// Chromium that is started by hand. Prints Markdown tables.
import { parseArgs } from 'node:util';
import { withTimeout } from '../server/kit/wait.ts';
import { claimFreePort } from '../tests/harness/free-port.ts';
import { TestServer } from '../tests/harness/server.ts';
import { buildWeb } from '../tools/build-web.ts';
import { measureFirstScreen } from './first-screen.ts';
import { type CrowdCost, measureLiveCrowd } from './live-crowd.ts';
import { type Latency, type LatencyFigure, measureLatency } from './live-latency.ts';
import { describeMachine, readMachine } from './machine.ts';
import type { Summary } from './statistics.ts';

const BENCH_TIMEOUT_MS = 900_000;
const FULL_EXTENT = { samples: 40, floods: 3, seconds: 10, visits: 5 };
const QUICK_EXTENT = { samples: 10, floods: 1, seconds: 5, visits: 1 };

const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
const formatLatency = ({ p50, p95 }: Latency): string => `${p50.toFixed(0)}, ${p95.toFixed(0)}`;

const formatFirstScreen = ({ median, max }: Summary): string => `${median.toFixed(0)} ms (at most ${max.toFixed(0)})`;

const latencyTable = (figures: readonly LatencyFigure[]): string =>
  [
    row(['Live view, ms: p50, p95', 'relay by hand', 'Berth', 'asked for']),
    row(['---', '---:', '---:', '---:']),
    ...figures.map(({ name, raw, ours, target }) =>
      row([`${name} (${ours.count})`, formatLatency(raw), formatLatency(ours), target]),
    ),
  ].join('\n');

const crowdTable = (costs: readonly CrowdCost[]): string =>
  [
    row(['Viewers of one session', 'way', 'viewers', 'CPU s/s outside Chromium', 'pictures/s each']),
    row(['---', '---', '---:', '---:', '---:']),
    ...costs.map(({ page, way, viewers, cpu, framesPerSecond }) =>
      row([page, way, String(viewers), cpu.toFixed(3), viewers === 0 ? '' : framesPerSecond.toFixed(1)]),
    ),
  ].join('\n');

const { values } = parseArgs({ options: { quick: { type: 'boolean', default: false } } });
const extent = values.quick ? QUICK_EXTENT : FULL_EXTENT;
await buildWeb();
const server = new TestServer({ isMeasured: true }, await claimFreePort());
try {
  await server.start();
  const machine = await readMachine();
  const [screen, latency, crowd] = await withTimeout(BENCH_TIMEOUT_MS, 'the bench', async () => [
    await measureFirstScreen(server, extent.visits),
    await measureLatency(server, extent.samples, extent.floods),
    await measureLiveCrowd(server, extent.seconds),
  ]);
  process.stdout.write(
    `Measured on: ${describeMachine(machine)}.\n\n${latencyTable(latency)}\n\n${crowdTable(crowd)}\n\n`,
  );
  process.stdout.write(
    `First screen of the console, first visit: ${formatFirstScreen(screen)}; asked for: under 1000 ms.\n`,
  );
} finally {
  await server.close();
}
process.exit();
