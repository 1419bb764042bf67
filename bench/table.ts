// Formats the figures as Markdown. JSON output contains them unchanged.
import type { ContextFigures } from './contexts.ts';
import type { CrowdFigure } from './crowd.ts';
import type { EgressFigure } from './egress.ts';
import type { FilesFigure } from './files.ts';
import type { GatewayFigure } from './gateway.ts';
import type { LifecycleFigure } from './lifecycle.ts';
import type { LogFigures } from './logs.ts';
import { describeMachine, type Machine } from './machine.ts';
import type { MemoryFigures } from './memory.ts';
import type { Comparison, Summary } from './statistics.ts';
import type { StepFigure } from './steps.ts';
import type { ThroughputFigure } from './throughput.ts';

export interface Figures {
  readonly machine: Machine;
  readonly isQuick: boolean;
  readonly lifecycle: readonly LifecycleFigure[];
  readonly gateway: readonly GatewayFigure[];
  readonly memory: MemoryFigures;
  readonly throughput: readonly ThroughputFigure[];
  readonly crowd: CrowdFigure;
  readonly steps: readonly StepFigure[];
  readonly logs: LogFigures;
  readonly files: readonly FilesFigure[];
  readonly egress: readonly EgressFigure[];
  readonly contexts: ContextFigures;
}

export function formatFigures(figures: Figures): string {
  const sections = [
    `Measured on: ${describeMachine(figures.machine)}.${figures.isQuick ? ' A quick run: few rounds, wide spread.' : ''}`,
    lifecycleTable(figures.lifecycle),
    stepsTable(figures.steps),
    gatewayTable(figures.gateway),
    memoryTable(figures.memory),
    throughputTable(figures.throughput),
    crowdLine(figures.crowd),
    logTables(figures.logs),
    filesTable(figures.files),
    networkTable(figures.egress),
    contextTable(figures.contexts),
  ];
  return `${sections.join('\n\n')}\n`;
}

const lifecycleTable = (figures: readonly LifecycleFigure[]): string =>
  table(
    ['From the create request, median ms', 'by hand', 'Berth', 'ratio (min–max)', 'asked for'],
    figures.map(({ name, step, target, comparison: { base, ours, ratio } }) => [
      `${name}: ${step === 'release' ? 'release answered' : step}`,
      base.median.toFixed(0),
      ours.median.toFixed(1),
      formatSpread(ratio),
      'ms' in target ? `≤ ${target.ms} ms` : `≤ ${target.ratio}`,
    ]),
  );

const OPERATION_NAMES: Readonly<Record<string, string>> = { createSession: 'create', updateSession: 'release' };

const stepsTable = (figures: readonly StepFigure[]): string =>
  table(
    ['Where the time goes (traced, empty body)', 'median ms', 'min–max'],
    figures.map(({ operation, step, ms }) => [
      `${OPERATION_NAMES[operation] ?? operation}: ${step}`,
      ms.median.toFixed(1),
      `${ms.min.toFixed(1)}–${ms.max.toFixed(1)}`,
    ]),
  );

const crowdLine = ({ sessions, seconds, pssMibEach, privateMibEach }: CrowdFigure): string =>
  `${sessions} sessions open at once, each with a page: all respond; all were open after ${seconds.toFixed(0)} s; ` +
  `${pssMibEach.toFixed(0)} MiB each (PSS), of which ${privateMibEach.toFixed(0)} MiB are private.`;

const gatewayTable = (figures: readonly GatewayFigure[]): string =>
  table(
    ['CDP', 'direct', 'gateway', 'ratio (min–max)', 'asked for', 'a proxy that looks at nothing: ratio (min–max)'],
    figures.map(({ name, unit, target, gateway, passThrough }) => [
      `${name}, ${unit}`,
      formatAmount(gateway.base.median, unit),
      formatAmount(gateway.ours.median, unit),
      formatSpread(gateway.ratio),
      `${unit === 'ms' ? '≤' : '≥'} ${target}`,
      formatSpread(passThrough.ratio),
    ]),
  );

const memoryTable = ({ controlPlane, session, byHand }: MemoryFigures): string =>
  table(
    ['Memory when idle, MiB', 'PSS', 'private', 'processes'],
    [
      ['Chromium by hand', byHand.pssMib.toFixed(0), byHand.privateMib.toFixed(0), String(byHand.processes)],
      ['session', session.pssMib.toFixed(0), session.privateMib.toFixed(0), String(session.processes)],
      [
        'control plane with PostgreSQL and the warm browsers',
        controlPlane.pssMib.toFixed(0),
        controlPlane.privateMib.toFixed(0),
        String(controlPlane.processes),
      ],
    ],
  );

const throughputTable = (figures: readonly ThroughputFigure[]): string =>
  table(
    ['Sessions per minute', 'by hand', 'Berth', 'ratio (min–max)'],
    figures.map(({ concurrency, comparison: { base, ours, ratio } }) => [
      `${concurrency} at once`,
      base.median.toFixed(0),
      ours.median.toFixed(0),
      formatSpread(ratio),
    ]),
  );

const logTables = ({ gateway, work }: LogFigures): string =>
  [
    table(
      ['CDP with the log on', 'off', 'on', 'ratio (min–max)'],
      gateway.map(({ name, unit, comparison: { base, ours, ratio } }) => [
        `${name}, ${unit}`,
        formatAmount(base.median, unit),
        formatAmount(ours.median, unit),
        formatSpread(ratio),
      ]),
    ),
    table(
      ['CPU-s a minute: log off, on', 'Chromium', 'server'],
      work.map(({ page, chromium, server }) => [page, formatOffAndOn(chromium), formatOffAndOn(server)]),
    ),
  ].join('\n\n');

const formatOffAndOn = ({ off, on }: { readonly off: Summary; readonly on: Summary }): string =>
  `${off.median.toFixed(1)}, ${on.median.toFixed(1)}`;

const filesTable = (figures: readonly FilesFigure[]): string =>
  table(
    ['Files, MiB per second', 'plain HTTP server', 'Berth', 'ratio (min–max), asked for ≥ 0.7'],
    figures.map(({ name, comparison: { base, ours, ratio } }) => [
      name,
      base.median.toFixed(0),
      ours.median.toFixed(0),
      formatSpread(ratio),
    ]),
  );

const networkTable = (figures: readonly EgressFigure[]): string =>
  table(
    ['A page over plain HTTP, in a session', 'by hand', 'Berth', 'ratio, or ms more (min–max)', 'asked for'],
    figures.flatMap(({ name, throughput, firstByte, addedMs }) => [
      [
        `${name}: 100 MiB, MiB per second`,
        throughput.base.median.toFixed(0),
        throughput.ours.median.toFixed(0),
        formatSpread(throughput.ratio),
        '≥ 0.8',
      ],
      [
        `${name}: a request on a connection of its own, ms`,
        firstByte.base.median.toFixed(2),
        firstByte.ours.median.toFixed(2),
        formatSpread(addedMs),
        '≤ 2 ms more',
      ],
    ]),
  );

const contextTable = ({ megabytes, start, byHand }: ContextFigures): string => {
  const comparisonCells = ({ base, ours, ratio }: Comparison): string[] => [
    base.median.toFixed(0),
    ours.median.toFixed(0),
    formatSpread(ratio),
  ];
  return table(
    ['Cold start to the first CDP answer, ms', 'without', 'with', 'ratio (min–max)', 'asked for'],
    [
      [`a context of ${megabytes.toFixed(1)} MB`, ...comparisonCells(start), '≤ 1.15'],
      ['by hand, with such a profile in place: Chromium’s own part', ...comparisonCells(byHand), ''],
    ],
  );
};

const formatSpread = ({ median, min, max }: Summary): string =>
  `${median.toFixed(2)} (${min.toFixed(2)}–${max.toFixed(2)})`;

const formatAmount = (value: number, unit: 'ms' | 'per s'): string =>
  unit === 'ms' ? value.toFixed(3) : value.toFixed(0);

function table(head: readonly string[], rows: ReadonlyArray<readonly string[]>): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map((_, index) => (index === 0 ? '---' : '---:'))), ...rows.map(line)].join('\n');
}
