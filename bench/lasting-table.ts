// Formats the figures of `npm run bench:lasting` as Markdown.
import { PROCESS_KINDS, sumOf } from './cpu-groups.ts';
import type { DemandFigure } from './demand.ts';
import type { HeldFigures } from './held.ts';
import type { LifeFigure } from './life.ts';
import type { Comparison } from './statistics.ts';

export interface EngineFigures {
  readonly engine: string;
  readonly demands: readonly DemandFigure[];
  readonly life?: readonly LifeFigure[];
  readonly held?: HeldFigures;
}

export const lastingTables = (engines: readonly EngineFigures[]): string =>
  engines
    .flatMap(({ engine, demands, life, held }) => [
      `### ${engine}`,
      ...(demands.length > 0 ? [demandTable(demands)] : []),
      ...(life ? [lifeTable(life)] : []),
      ...(held ? [serverTable(held), heldLine(held)] : []),
    ])
    .join('\n\n');

const demandTable = (figures: readonly DemandFigure[]): string =>
  table(
    ['Under demand, medians', 'by hand', 'Berth', 'ratio (min–max)'],
    figures.flatMap(({ name, perMinute, createMs, responseMs, titleMs, releaseMs, cpuSeconds }) => [
      comparisonCells(`${name}: sessions a minute`, perMinute, 1),
      comparisonCells(`${name}: created, ms`, createMs, 0),
      comparisonCells(`${name}: CDP answers, ms`, responseMs, 0),
      comparisonCells(`${name}: page title, ms`, titleMs, 0),
      comparisonCells(`${name}: release answered, ms`, releaseMs, 0),
      comparisonCells(`${name}: CPU s a session`, cpuSeconds, 2),
    ]),
  );

const lifeTable = (figures: readonly LifeFigure[]): string =>
  table(
    ['CPU s of a session without a warm browser', 'by hand', 'Berth', ...PROCESS_KINDS],
    figures.map(({ step, ours, byHand }) => [
      step,
      byHand.toFixed(3),
      sumOf(ours).toFixed(3),
      ...PROCESS_KINDS.map(kind => ours[kind].toFixed(3)),
    ]),
  );

const serverTable = ({ server }: HeldFigures): string =>
  table(
    ['Idle sessions', 'Node, RSS MiB', 'Node, PSS MiB', 'PostgreSQL, PSS MiB', 'CPU s a minute'],
    server.map(figure => [
      String(figure.sessions),
      figure.nodeRssMib.toFixed(0),
      figure.nodePssMib.toFixed(0),
      figure.postgresPssMib.toFixed(0),
      figure.cpuSecondsPerMinute.toFixed(2),
    ]),
  );

const heldLine = ({ sessions, stopReason, privateMibEach, pssMibEach }: HeldFigures): string =>
  `Open at once, each with a page: ${sessions} respond (limited by ${stopReason}); ${privateMibEach.toFixed(0)} MiB private each, ` +
  `${pssMibEach.toFixed(0)} MiB PSS.`;

const comparisonCells = (name: string, { base, ours, ratio }: Comparison, digits: number): readonly string[] => [
  name,
  base.median.toFixed(digits),
  ours.median.toFixed(digits),
  `${ratio.median.toFixed(2)} (${ratio.min.toFixed(2)}–${ratio.max.toFixed(2)})`,
];

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map((_, index) => (index === 0 ? '---' : '---:')), ...rows]
    .map(cells => `| ${cells.join(' | ')} |`)
    .join('\n');
