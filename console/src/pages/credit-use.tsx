// What credit was used for, by day, operation or agent key: a chart, with its values as a table.
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { CreditUsage, UsageGrouping } from '../../../contract/credits.ts';
import { call } from '../api/call.ts';
import { keysQuery } from '../api/queries.ts';
import { Button } from '../ui/button.tsx';
import { BarChart, BarList, FigureTable } from '../ui/chart.tsx';
import { Panel } from '../ui/page.tsx';
import { LoadError, LoadingRows } from '../ui/states.tsx';
import { bytesWords } from '../ui/time.tsx';
import {
  CREDIT_USAGE_PERIODS,
  type CreditUsagePeriod,
  type CreditView,
  dayNames,
  GROUPINGS,
  readCreditView,
  usageQueryOf,
} from './credit-words.ts';
import { creditWords } from './invocation-words.tsx';
import { timeWords } from './overview-costs.tsx';

const REFETCH_INTERVAL_MS = 30_000;
const BARS_MAX = 12;

type Row = CreditUsage['data'][number];

export function CreditUse({
  app,
  view,
  isCharged,
}: {
  readonly app: string;
  readonly view: CreditView;
  /** Whether the installation charges for use. If it does not, browser time is shown instead of credit. */
  readonly isCharged: boolean;
}) {
  const { by = 'day', period = 'week' } = view;
  const { data, error, refetch } = useQuery({
    queryKey: ['credit-use', app, by, period],
    queryFn: ({ signal }) =>
      call('readCreditUsage', { params: { appId: app }, query: usageQueryOf(view, Date.now()), signal }),
    refetchInterval: REFETCH_INTERVAL_MS,
    placeholderData: keepPreviousData,
  });
  return (
    <section className="grid gap-3">
      <Choices app={app} view={view} by={by} period={period} />
      <Panel title={isCharged ? 'Used' : 'Usage, not charged'}>
        {data ? (
          <UsageTable app={app} usage={data} isCharged={isCharged} period={period} />
        ) : error ? (
          <LoadError error={error} retry={() => void refetch()} />
        ) : (
          <LoadingRows contentLabel="usage" rows={6} />
        )}
      </Panel>
    </section>
  );
}

const PRESSED_CLASS = 'aria-pressed:border-accent aria-pressed:bg-accent-soft aria-pressed:text-accent';

function Choices({
  app,
  view,
  by,
  period,
}: {
  readonly app: string;
  readonly view: CreditView;
  readonly by: UsageGrouping;
  readonly period: CreditUsagePeriod;
}) {
  const navigate = useNavigate();
  const changeView = (change: Readonly<Record<string, string>>): void => {
    const search = readCreditView({ ...view, ...change });
    void navigate({ to: '/a/$app/credit', params: { app }, search, replace: true });
  };
  return (
    <div className="flex flex-wrap items-center gap-x-5 gap-y-2">
      <fieldset className="flex flex-wrap gap-2">
        <legend className="sr-only">Period</legend>
        {Object.entries(CREDIT_USAGE_PERIODS).map(([one, { name }]) => (
          <Button
            key={one}
            aria-pressed={one === period}
            className={PRESSED_CLASS}
            onClick={() => changeView({ period: one })}
          >
            {name}
          </Button>
        ))}
      </fieldset>
      <fieldset className="flex flex-wrap gap-2">
        <legend className="sr-only">Group by</legend>
        {Object.entries(GROUPINGS).map(([one, name]) => (
          <Button key={one} aria-pressed={one === by} className={PRESSED_CLASS} onClick={() => changeView({ by: one })}>
            {name}
          </Button>
        ))}
      </fieldset>
      <span className="text-xs text-soft">Days are in UTC.</span>
    </div>
  );
}

function UsageTable({
  app,
  usage: { by, data },
  isCharged,
  period,
}: {
  readonly app: string;
  readonly usage: CreditUsage;
  readonly isCharged: boolean;
  readonly period: CreditUsagePeriod;
}) {
  // The names of agent keys, for usage rows that contain no name.
  const { data: keys } = useQuery({ ...keysQuery(app), enabled: by === 'key' });
  const keyNames = new Map(keys?.map(({ id, name }) => [id, name]));
  const figureOf = ({ cost, browserSeconds }: Row): number => (isCharged ? cost : browserSeconds);
  const formatFigure = isCharged ? creditWords : timeWords;
  const totalText = formatFigure(data.reduce((sum, row) => sum + figureOf(row), 0));
  const periodName = CREDIT_USAGE_PERIODS[period].name.toLowerCase();
  const headings = [GROUPING_NAMES[by], ...(isCharged ? ['Cost'] : []), 'Calls', 'Browser time', 'Network'];
  const cellsOf = (row: Row): string[] => [
    ...(isCharged ? [creditWords(row.cost)] : []),
    ...[String(row.calls), timeWords(row.browserSeconds), bytesWords(row.egressBytes)],
  ];
  const summary = `${totalText} ${isCharged ? 'used' : 'of browser time'} in the ${periodName}`;
  if (by === 'day')
    return (
      <>
        <p className="px-4 pt-3 text-sm text-soft">{summary}.</p>
        <BarChart
          label={summary}
          headings={headings}
          formatTop={formatFigure}
          bars={data.map(row => ({
            ...{
              key: row.of,
              ...dayNames(row.of),
              upperValue: figureOf(row),
              valueText: figureWithoutUnit(figureOf(row), isCharged),
            },
            cells: cellsOf(row),
          }))}
        />
      </>
    );
  if (data.length === 0) return <p className="px-4 py-6 text-sm text-soft">Nothing was used in this period.</p>;
  return (
    <>
      <p className="px-4 pt-3 text-sm text-soft">{summary}.</p>
      <BarList
        items={data.slice(0, BARS_MAX).map(row => ({
          ...{ key: row.of, value: figureOf(row), shownValue: formatFigure(figureOf(row)), hatched: false },
          name: nameLinkOf(app, by, row, keyNames),
        }))}
      />
      <div className="overflow-x-auto border-t border-line px-2 py-1">
        <FigureTable
          caption={`${GROUPINGS[by]}, ${periodName}`}
          headings={headings}
          rows={data.map(row => ({ key: row.of, name: nameLinkOf(app, by, row, keyNames), cells: cellsOf(row) }))}
        />
      </div>
    </>
  );
}

const GROUPING_NAMES = { day: 'Day', operation: 'Operation', key: 'Agent key' } as const satisfies Readonly<
  Record<UsageGrouping, string>
>;

/** The value without its unit, which is shown with the sum above the chart. */
const figureWithoutUnit = (value: number, isCharged: boolean): string =>
  isCharged ? creditWords(value).replace(/ credits?$/, '') : timeWords(value);

const nameLinkOf = (
  app: string,
  grouping: UsageGrouping,
  { of, name }: Row,
  names: ReadonlyMap<string, string>,
): ReactNode => (
  <Link
    to="/a/$app/invocations"
    params={{ app }}
    search={grouping === 'key' ? { key: of } : { operation: of }}
    className="underline decoration-line-strong underline-offset-2 hover:text-accent"
  >
    {grouping === 'key' ? (name ?? names.get(of) ?? `deleted key ${of.slice(0, 8)}`) : of}
  </Link>
);
