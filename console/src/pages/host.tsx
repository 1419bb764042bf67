// The host: slots, warm browsers, readiness. Uses the Prometheus metrics.
import { useQuery } from '@tanstack/react-query';
import { metric, quantile, type Sample } from '../api/metrics.ts';
import { metricsQuery, readinessQuery } from '../api/queries.ts';
import { Icon } from '../ui/icon.tsx';
import { Meter } from '../ui/meter.tsx';
import { Facts, Page, Panel } from '../ui/page.tsx';
import { Failed, Loading } from '../ui/states.tsx';
import { bytesWords, fullTime } from '../ui/time.tsx';

const LOOK_MS = 3_000;

export function HostPage() {
  const metrics = useQuery({ ...metricsQuery, refetchInterval: LOOK_MS });
  return (
    <Page title="This host" about="The server process that serves this console, with all its applications.">
      <div className="grid gap-5 lg:grid-cols-2 lg:items-start">
        <Panel title="Browsers">
          {metrics.data ? (
            <Browsers samples={metrics.data} />
          ) : metrics.error ? (
            <Failed error={metrics.error} retry={() => void metrics.refetch()} />
          ) : (
            <Loading what="figures" rows={3} />
          )}
        </Panel>
        <div className="grid gap-5">
          <Panel title="Readiness">
            <Checks />
          </Panel>
          {metrics.data && (
            <Panel title="Process">
              <Facts facts={processFacts(metrics.data)} />
            </Panel>
          )}
        </div>
      </div>
    </Page>
  );
}

function Browsers({ samples }: { readonly samples: readonly Sample[] }) {
  const used = metric(samples, 'berth_sessions');
  const median = quantile(samples, 'berth_session_start_seconds', 0.5);
  const warm = metric(samples, 'berth_warm_claims_total', ['outcome', 'hit']);
  const claims = metric(samples, 'berth_warm_claims_total');
  return (
    <>
      <Meter label="Slots in use" used={used} limit={metric(samples, 'berth_slots')} />
      <Facts
        facts={[
          ['Starting', metric(samples, 'berth_sessions', ['status', 'PENDING'])],
          ['Running', metric(samples, 'berth_sessions', ['status', 'RUNNING'])],
          ['Warm', `${metric(samples, 'berth_warm_browsers')} waiting for a create`],
          ['Warm hits', claims === 0 ? 'none yet' : `${warm} of ${claims} creates`],
          ['CDP clients', metric(samples, 'berth_cdp_clients')],
          ['Queued creates', metric(samples, 'berth_waiting_creates')],
          ['Median start', median === undefined ? 'none yet' : `up to ${Math.round(median * 1000)} ms`],
        ]}
      />
    </>
  );
}

const processFacts = (samples: readonly Sample[]): ReadonlyArray<readonly [string, string]> => {
  const startedMs = metric(samples, 'process_start_time_seconds') * 1000;
  return [
    ['Running since', startedMs > 0 ? fullTime(new Date(startedMs).toISOString()) : 'unknown'],
    ['Memory', bytesWords(metric(samples, 'process_resident_memory_bytes'))],
    ['Event loop lag', `${(metric(samples, 'nodejs_eventloop_lag_p99_seconds') * 1000).toFixed(0)} ms at p99`],
    ['Open files', String(metric(samples, 'process_open_fds'))],
  ];
};

function Checks() {
  const { data, error, refetch } = useQuery({ ...readinessQuery, refetchInterval: LOOK_MS });
  if (error) return <Failed error={error} retry={() => void refetch()} />;
  if (!data) return <Loading what="readiness" rows={3} />;
  return (
    <ul className="divide-y divide-line">
      {data.checks.map(({ name, ok, detail }) => (
        <li key={name} className="flex items-center gap-3 px-4 py-2 text-sm">
          <span className={ok ? 'text-good' : 'text-bad'}>
            <Icon name={ok ? 'check' : 'warning'} size={16} />
          </span>
          <span className="w-20 font-medium">{name}</span>
          <span className="min-w-0 break-words text-soft">
            <span className="sr-only">{ok ? 'fine: ' : 'failing: '}</span>
            {detail}
          </span>
        </li>
      ))}
    </ul>
  );
}
