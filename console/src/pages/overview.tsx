// The first page of an application: what is running now, and what ran in the last day, week or month.
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import type { ApplicationUsage } from '../../../contract/usage.ts';
import { call } from '../api/call.ts';
import { limitsQuery } from '../api/queries.ts';
import { Button, buttonClass } from '../ui/button.tsx';
import { Icon } from '../ui/icon.tsx';
import { Page, Panel } from '../ui/page.tsx';
import { EmptyState, LoadError, LoadingRows } from '../ui/states.tsx';
import { ConcurrentSessions, EndReasons, SessionCharts, StartTimes } from './overview-charts.tsx';
import { KeyShares, TotalUsage } from './overview-costs.tsx';
import { CurrentUsage } from './overview-now.tsx';
import { PERIOD_DEFAULT, PERIODS, type Period, readPeriod, usageQueryOf } from './overview-period.ts';

const LIMITS_INTERVAL_MS = 5_000;
const USAGE_INTERVAL_MS = 30_000;

export function OverviewPage({ app, period = PERIOD_DEFAULT }: { readonly app: string; readonly period?: Period }) {
  const limits = useQuery({ ...limitsQuery(app), refetchInterval: LIMITS_INTERVAL_MS });
  const usage = useQuery({
    queryKey: ['usage-over-time', app, period],
    queryFn: async ({ signal }) => ({
      period,
      usage: await call('readApplicationUsage', {
        params: { appId: app },
        query: usageQueryOf(period, Date.now()),
        signal,
      }),
    }),
    refetchInterval: USAGE_INTERVAL_MS,
    // While another period is being loaded, the previous period is still shown, under its own name.
    placeholderData: keepPreviousData,
  });
  return (
    <Page
      title="Overview"
      about="The current sessions of this application, and its usage over time."
      actions={
        <Link to="/a/$app/sessions/new" params={{ app }} className={buttonClass('primary')}>
          <Icon name="plus" size={16} />
          New session
        </Link>
      }
    >
      <div className="grid gap-5">
        {limits.data ? (
          <CurrentUsage limits={limits.data} app={app} />
        ) : (
          <Panel>
            {limits.error ? (
              <LoadError error={limits.error} retry={() => void limits.refetch()} />
            ) : (
              <LoadingRows contentLabel="current usage" rows={2} />
            )}
          </Panel>
        )}
        <PeriodChoice app={app} period={period} />
        {usage.data ? (
          <UsageCharts app={app} {...usage.data} />
        ) : (
          <Panel>
            {usage.error ? (
              <LoadError error={usage.error} retry={() => void usage.refetch()} />
            ) : (
              <LoadingRows contentLabel="usage" rows={8} />
            )}
          </Panel>
        )}
      </div>
    </Page>
  );
}

function PeriodChoice({ app, period }: { readonly app: string; readonly period: Period }) {
  const navigate = useNavigate();
  return (
    <fieldset className="flex flex-wrap items-center gap-2">
      <legend className="sr-only">Period</legend>
      {(Object.keys(PERIODS) as Period[]).map(one => (
        <Button
          key={one}
          aria-pressed={one === period}
          className="aria-pressed:border-accent aria-pressed:bg-accent-soft aria-pressed:text-accent"
          onClick={() =>
            void navigate({ to: '/a/$app', params: { app }, search: readPeriod({ period: one }), replace: true })
          }
        >
          {PERIODS[one].name}
        </Button>
      ))}
      {period !== 'day' && <span className="text-xs text-soft">Days are in UTC.</span>}
    </fieldset>
  );
}

interface UsageChartsProps {
  readonly app: string;
  readonly usage: ApplicationUsage;
  readonly period: Period;
}

const UsageCharts = ({ app, usage, period }: UsageChartsProps) =>
  usage.total.created + usage.total.ended + usage.total.peakRunning === 0 ? (
    <Panel>
      <EmptyState
        icon="sessions"
        title="No sessions in this period"
        action={
          <span className="flex flex-wrap justify-center gap-2">
            <Link to="/a/$app/playground" params={{ app }} className={buttonClass('primary')}>
              Try one in the playground
            </Link>
            <Link to="/a/$app/keys" params={{ app }} className={buttonClass('plain')}>
              Agent keys
            </Link>
          </span>
        }
      >
        A session is one browser. Programs create sessions with an agent key.
      </EmptyState>
    </Panel>
  ) : (
    <>
      <SessionCharts usage={usage} period={period} />
      <div className="grid gap-5 @min-[680px]:grid-cols-2">
        <StartTimes usage={usage} period={period} />
        <ConcurrentSessions usage={usage} period={period} />
        <EndReasons app={app} usage={usage} period={period} />
        <TotalUsage usage={usage} />
      </div>
      <KeyShares app={app} usage={usage} />
    </>
  );
