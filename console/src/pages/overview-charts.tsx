// The charts of the overview.
import { Link } from '@tanstack/react-router';
import type { EndReason } from '../../../contract/sessions.ts';
import type { ApplicationUsage } from '../../../contract/usage.ts';
import { BarChart, BarList } from '../ui/chart.tsx';
import { END_REASON_WORDS } from '../ui/end-reasons.ts';
import { Panel } from '../ui/page.tsx';
import { PERIODS, type Period, stepNames } from './overview-period.ts';

interface Props {
  readonly usage: ApplicationUsage;
  readonly period: Period;
}

const countWords = (number: number, noun: string): string => `${number} ${noun}${number === 1 ? '' : 's'}`;
const periodName = (period: Period): string => PERIODS[period].name.toLowerCase();

const SummaryLine = ({ children }: { readonly children: string }) => (
  <p className="px-4 pt-3 text-sm text-soft">{children}</p>
);

export function SessionCharts({ usage: { steps, total }, period }: Props) {
  const sessionSummary = `${countWords(total.created, 'session')} created, ${total.failed} of ${total.ended} ended sessions failed`;
  return (
    <Panel title="Sessions">
      <SummaryLine>{`${sessionSummary}. Failures are hatched.`}</SummaryLine>
      <BarChart
        label={`Sessions in the ${periodName(period)}: ${sessionSummary}`}
        headings={['Time', 'Created', 'Ended', 'Failed']}
        formatTop={String}
        bars={steps.map(({ from, created, ended, failed }) => ({
          ...{ key: from, ...stepNames(period, from) },
          // The number of failed sessions in a step may exceed the number created in it, because some of these sessions
          // were created earlier.
          ...{
            upperValue: Math.max(created, failed),
            hatchedValue: failed,
            valueText: failed > 0 ? `${created} (${failed})` : `${created}`,
          },
          cells: [created, ended, failed].map(String),
        }))}
      />
    </Panel>
  );
}

const msWords = (ms: number): string => (ms >= 1000 ? `${Number((ms / 1000).toFixed(1))} s` : `${Math.round(ms)} ms`);

export function StartTimes({ usage: { steps, total }, period }: Props) {
  const { startMsP50: p50Ms, startMsP95: p95Ms } = total;
  const startSummary =
    p50Ms === undefined || p95Ms === undefined
      ? 'No session started'
      : `Half of the sessions started within ${msWords(p50Ms)}, 95 % within ${msWords(p95Ms)}`;
  return (
    <Panel title="Start times">
      <SummaryLine>{`${startSummary}. Each bar reaches from p50 to p95.`}</SummaryLine>
      <BarChart
        label={`Start times in the ${periodName(period)}. ${startSummary}`}
        headings={['Time', 'p50', 'p95']}
        formatTop={msWords}
        bars={steps.map(({ from, startMsP50 = 0, startMsP95 = 0 }) => ({
          ...{
            key: from,
            ...stepNames(period, from),
            lowerValue: startMsP50,
            upperValue: startMsP95,
            valueText: msWords(startMsP95),
          },
          cells: startMsP95 > 0 ? [msWords(startMsP50), msWords(startMsP95)] : ['–', '–'],
        }))}
      />
    </Panel>
  );
}

export function ConcurrentSessions({ usage: { steps, total }, period }: Props) {
  const peakSummary = `At most ${countWords(total.peakRunning, 'session')} ran at once`;
  return (
    <Panel title="Running at once">
      <SummaryLine>{`${peakSummary}.`}</SummaryLine>
      <BarChart
        label={`${peakSummary} in the ${periodName(period)}`}
        headings={['Time', 'Most at once']}
        formatTop={String}
        bars={steps.map(({ from, peakRunning }) => ({
          ...{ key: from, ...stepNames(period, from), upperValue: peakRunning, valueText: String(peakRunning) },
          cells: [String(peakRunning)],
        }))}
      />
    </Panel>
  );
}

/** Whether a session that ends for this reason has the status ERROR. */
const IS_FAILURE: Readonly<Record<EndReason, boolean>> = {
  released: false,
  client_disconnected: false,
  browser_closed: false,
  timed_out: false,
  connect_timeout: false,
  crashed: true,
  out_of_memory: true,
  start_failed: true,
  egress_limit: true,
  disk_limit: true,
  operator: false,
  drained: false,
  credit_exhausted: true,
  service_restart: true,
  host_lost: true,
};

export function EndReasons({ app, usage: { total }, period }: Props & { readonly app: string }) {
  const reasons = (Object.keys(END_REASON_WORDS) as EndReason[])
    .map(reason => ({ reason, value: total.endReasons[reason] ?? 0, hatched: IS_FAILURE[reason] }))
    .filter(({ value }) => value > 0)
    .sort((a, b) => Number(b.hatched) - Number(a.hatched) || b.value - a.value);
  return (
    <Panel title="Why sessions ended">
      {reasons.length === 0 ? (
        <p className="px-4 py-6 text-sm text-soft">No session ended in this period.</p>
      ) : (
        <BarList
          items={reasons.map(({ reason, value, hatched }) => ({
            ...{ key: reason, value, hatched },
            name: (
              <>
                {hatched && <span className="font-medium text-bad">Failed: </span>}
                <Link
                  to="/a/$app/sessions"
                  params={{ app }}
                  search={{ reason, since: period }}
                  className="underline decoration-line-strong underline-offset-2 hover:text-accent"
                >
                  {END_REASON_WORDS[reason]}
                </Link>
              </>
            ),
          }))}
        />
      )}
    </Panel>
  );
}
