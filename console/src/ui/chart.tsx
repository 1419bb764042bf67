// Bar charts made of HTML elements. Every value can be read without color: a long chart shows the largest value at the
// axis, the bars of a short chart show their values, and each chart has its values as a table.
import type { ReactNode } from 'react';

export interface Bar {
  readonly key: string;
  /** The full name, for the table and the tooltip. */
  readonly name: string;
  /** Shown below the bar, if there is room. */
  readonly tick: string;
  /** The value at the lower end of the bar. Default: 0. */
  readonly lowerValue?: number;
  /** The value at the upper end of the bar. */
  readonly upperValue: number;
  /** The part of the value that is hatched, at the top of the bar. */
  readonly hatchedValue?: number;
  /** The value as shown at the bar. */
  readonly valueText: string;
  /** The values as shown in the tooltip, and in a row of the table. */
  readonly cells: readonly string[];
}

/** Bars show their values only in charts that have at most this number of bars. */
const LABELLED_BARS_MAX = 14;
const TICKS_MAX = 8;

const HATCHED_CLASS =
  'bg-[repeating-linear-gradient(45deg,var(--bad)_0_2px,var(--bad-soft)_2px_5px)] outline outline-1 -outline-offset-1 outline-bad';

export function BarChart({
  label,
  headings,
  bars,
  formatTop,
}: {
  /** What the chart shows, in one sentence. */
  readonly label: string;
  /** The headings of the table. The first heading is for the names. */
  readonly headings: readonly string[];
  readonly bars: readonly Bar[];
  /** Formats the value at the top of the axis. */
  readonly formatTop: (top: number) => string;
}) {
  const top = Math.max(...bars.map(({ upperValue: to }) => to), 0);
  const tickInterval = Math.ceil(bars.length / TICKS_MAX);
  return (
    <div className="px-4 pt-3 pb-2">
      <div role="img" aria-label={label}>
        <div aria-hidden="true" className="relative h-36">
          <div className="absolute inset-x-0 top-5 border-t border-dashed border-line">
            {top > 0 && bars.length > LABELLED_BARS_MAX && (
              <span className="absolute -top-5 left-0 text-xs text-soft tabular-nums">{formatTop(top)}</span>
            )}
          </div>
          <div className="absolute inset-x-0 top-5 bottom-0 flex items-end gap-[2px] border-b border-line-strong">
            {bars.map(bar => (
              <Column
                key={bar.key}
                bar={bar}
                top={top}
                isLabelled={bars.length <= LABELLED_BARS_MAX}
                headings={headings}
              />
            ))}
          </div>
          {top === 0 && (
            <p className="absolute inset-x-0 top-1/2 text-center text-sm text-soft">None in this period.</p>
          )}
        </div>
        <div aria-hidden="true" className="mt-1 flex gap-[2px] text-xs text-soft">
          {bars.map(({ key, tick }, at) => (
            <span key={key} className="relative h-4 min-w-0 flex-1">
              {at % tickInterval === 0 && (
                <span
                  className={`absolute whitespace-nowrap ${tickInterval === 1 ? 'inset-x-0 truncate text-center' : 'left-0'}`}
                >
                  {tick}
                </span>
              )}
            </span>
          ))}
        </div>
      </div>
      <Figures label={label} headings={headings} rows={bars.map(({ key, name, cells }) => ({ key, name, cells }))} />
    </div>
  );
}

function Column({
  bar: { name, lowerValue: from = 0, upperValue: to, hatchedValue: hatched = 0, valueText, cells },
  top,
  isLabelled,
  headings,
}: {
  readonly bar: Bar;
  readonly top: number;
  readonly isLabelled: boolean;
  readonly headings: readonly string[];
}) {
  const percentOf = (value: number): string => `${top > 0 ? (value / top) * 100 : 0}%`;
  const tooltipText = cells.map((cell, at) => `${headings[at + 1]}: ${cell}`).join('\n');
  return (
    <div className="group relative h-full min-w-0 flex-1 hover:bg-sunk" title={`${name}\n${tooltipText}`}>
      {to > 0 && (
        <div
          className="absolute inset-x-0 mx-auto max-w-9 min-h-[2px] overflow-hidden rounded-t-[3px] bg-accent"
          style={{ bottom: percentOf(from), height: percentOf(to - from) }}
        >
          {hatched > 0 && (
            <div className={HATCHED_CLASS} style={{ height: `${(hatched / to) * 100}%`, minHeight: 4 }} />
          )}
        </div>
      )}
      {isLabelled && to > 0 && (
        <span
          className="absolute inset-x-0 truncate text-center text-xs font-medium tabular-nums"
          style={{ bottom: percentOf(to) }}
        >
          {valueText}
        </span>
      )}
    </div>
  );
}

/** Horizontal bars with their names and values. */
export const BarList = ({
  items,
}: {
  readonly items: ReadonlyArray<{
    readonly key: string;
    readonly name: ReactNode;
    readonly value: number;
    /** The value as shown. */
    readonly shownValue?: string;
    readonly hatched: boolean;
  }>;
}) => {
  const top = Math.max(...items.map(({ value }) => value), 1);
  return (
    <ul className="grid gap-3 px-4 py-3">
      {items.map(({ key, name, value, shownValue = String(value), hatched }) => (
        <li key={key}>
          <div className="mb-1 flex items-baseline justify-between gap-3 text-sm">
            <span className="min-w-0">{name}</span>
            <span className="font-medium tabular-nums">{shownValue}</span>
          </div>
          <div aria-hidden="true" className="h-2 rounded-full bg-sunk">
            <div
              className={`h-full rounded-full ${value > 0 ? 'min-w-1' : ''} ${hatched ? HATCHED_CLASS : 'bg-accent'}`}
              style={{ width: `${(value / top) * 100}%` }}
            />
          </div>
        </li>
      ))}
    </ul>
  );
};

/** The values of a chart as a table, which is hidden until the user opens it. */
const Figures = ({
  label,
  headings,
  rows,
}: {
  readonly label: string;
  readonly headings: readonly string[];
  readonly rows: ReadonlyArray<{ readonly key: string; readonly name: string; readonly cells: readonly string[] }>;
}) => (
  <details className="mt-1">
    <summary className="w-fit rounded text-xs text-soft hover:text-ink">Show as table</summary>
    <div className="mt-2">
      <FigureTable caption={label} headings={headings} rows={rows} />
    </div>
  </details>
);

export const FigureTable = ({
  caption,
  headings,
  rows,
}: {
  readonly caption: string;
  readonly headings: readonly string[];
  readonly rows: ReadonlyArray<{ readonly key: string; readonly name: ReactNode; readonly cells: readonly string[] }>;
}) => (
  <table className="w-full text-sm">
    <caption className="sr-only">{caption}</caption>
    <thead className="text-left text-xs text-soft">
      <tr>
        {headings.map((heading, at) => (
          <th
            key={heading}
            scope="col"
            className={`px-2 py-1.5 font-medium whitespace-nowrap ${at > 0 ? 'text-right' : ''}`}
          >
            {heading}
          </th>
        ))}
      </tr>
    </thead>
    <tbody className="divide-y divide-line">
      {rows.map(({ key, name, cells }) => (
        <tr key={key}>
          <th scope="row" className="px-2 py-1.5 text-left font-normal">
            {name}
          </th>
          {cells.map((cell, at) => (
            <td key={headings[at + 1]} className="px-2 py-1.5 text-right whitespace-nowrap tabular-nums">
              {cell}
            </td>
          ))}
        </tr>
      ))}
    </tbody>
  </table>
);
