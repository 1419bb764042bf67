// The figures as Markdown, for people; the same figures go to JSON as they are.
import type { GatewayFigure } from './gateway.ts';
import type { LifecycleFigure } from './lifecycle.ts';
import { inWords, type Machine } from './machine.ts';
import type { MemoryFigures } from './memory.ts';
import type { Summary } from './statistics.ts';
import type { ThroughputFigure } from './throughput.ts';

export interface Figures {
  readonly machine: Machine;
  readonly quick: boolean;
  readonly lifecycle: readonly LifecycleFigure[];
  readonly gateway: readonly GatewayFigure[];
  readonly memory: MemoryFigures;
  readonly throughput: readonly ThroughputFigure[];
}

export const CONTROL_PLANE_PSS_MIB_MAX = 150;

export function inMarkdown(figures: Figures): string {
  const sections = [
    `Measured on: ${inWords(figures.machine)}.${figures.quick ? ' A quick run: few rounds, wide spread.' : ''}`,
    lifecycleTable(figures.lifecycle),
    gatewayTable(figures.gateway),
    memoryTable(figures.memory),
    throughputTable(figures.throughput),
  ];
  return `${sections.join('\n\n')}\n`;
}

const lifecycleTable = (figures: readonly LifecycleFigure[]): string =>
  table(
    ['One session, median ms', 'by hand', 'Berth', 'ratio (min–max)'],
    figures.map(({ step, comparison: { base, ours, ratio } }) => [
      step,
      base.median.toFixed(0),
      ours.median.toFixed(0),
      spread(ratio),
    ]),
  );

const gatewayTable = (figures: readonly GatewayFigure[]): string =>
  table(
    ['CDP', 'direct', 'gateway', 'ratio (min–max)', 'asked for', 'a proxy that looks at nothing: ratio (min–max)'],
    figures.map(({ name, unit, target, gateway, passThrough }) => [
      `${name}, ${unit}`,
      amount(gateway.base.median, unit),
      amount(gateway.ours.median, unit),
      spread(gateway.ratio),
      `${unit === 'ms' ? '≤' : '≥'} ${target}`,
      spread(passThrough.ratio),
    ]),
  );

const memoryTable = ({ controlPlane, session, byHand }: MemoryFigures): string =>
  table(
    ['Memory when idle, MiB', 'PSS', 'private', 'processes'],
    [
      ['Chromium by hand', byHand.pssMib.toFixed(0), byHand.privateMib.toFixed(0), String(byHand.processes)],
      ['session', session.pssMib.toFixed(0), session.privateMib.toFixed(0), String(session.processes)],
      [
        `control plane with PostgreSQL (PSS ≤ ${CONTROL_PLANE_PSS_MIB_MAX})`,
        controlPlane.pssMib.toFixed(0),
        controlPlane.privateMib.toFixed(0),
        String(controlPlane.processes),
      ],
    ],
  );

const throughputTable = (figures: readonly ThroughputFigure[]): string =>
  table(
    ['Sessions per minute', 'by hand', 'Berth', 'ratio (min–max)'],
    figures.map(({ atOnce, comparison: { base, ours, ratio } }) => [
      `${atOnce} at once`,
      base.median.toFixed(0),
      ours.median.toFixed(0),
      spread(ratio),
    ]),
  );

const spread = ({ median, min, max }: Summary): string => `${median.toFixed(2)} (${min.toFixed(2)}–${max.toFixed(2)})`;

const amount = (value: number, unit: 'ms' | 'per s'): string => (unit === 'ms' ? value.toFixed(3) : value.toFixed(0));

function table(head: readonly string[], rows: ReadonlyArray<readonly string[]>): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map((_, index) => (index === 0 ? '---' : '---:'))), ...rows.map(line)].join('\n');
}
