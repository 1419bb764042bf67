// The machine and the server process, for the operator.
import { useMutation, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { Host, HostExamination, HostSample } from '../../../contract/host.ts';
import { call } from '../api/call.ts';
import { Button } from '../ui/button.tsx';
import { BarChart } from '../ui/chart.tsx';
import { Icon } from '../ui/icon.tsx';
import { Meter } from '../ui/meter.tsx';
import { Facts, Page, Panel } from '../ui/page.tsx';
import { FormError, LoadError, LoadingRows } from '../ui/states.tsx';
import { bytesWords, fullTime } from '../ui/time.tsx';
import { ForOperator } from './for-operator.tsx';

const POLL_INTERVAL_MS = 5_000;
/** The maximum number of bars in a chart. If there are more readings, several are combined into one bar. */
const BARS_MAX = 60;

export const HostPage = () => (
  <Page
    title="This host"
    about="The machine and the server process that serve this page, across all applications."
    above={
      <Link to="/hosts" className="mb-3 inline-flex items-center gap-1 text-sm text-soft hover:text-ink">
        <Icon name="back" size={16} />
        Hosts
      </Link>
    }
  >
    <ForOperator>
      <OperatorView />
    </ForOperator>
  </Page>
);

function OperatorView() {
  const { data, error, refetch } = useQuery({
    queryKey: ['host'],
    queryFn: ({ signal }) => call('readHost', { signal }),
    refetchInterval: POLL_INTERVAL_MS,
  });
  if (error && !data) return <LoadError error={error} retry={() => void refetch()} />;
  if (!data)
    return (
      <Panel>
        <LoadingRows contentLabel="the host" rows={6} />
      </Panel>
    );
  return (
    <div className="grid gap-5 @min-[680px]:grid-cols-2">
      <CurrentUse host={data} />
      <Panel title="Readiness">
        <Checks checks={data.checks} />
      </Panel>
      <HistoryChart title="Processor" host={data} getValue={({ cpuShare }) => cpuShare} toText={formatPercent} />
      <HistoryChart title="Memory" host={data} getValue={sample => sample.memoryUsedBytes} toText={bytesWords} />
      <HistoryChart
        title="Sessions"
        host={data}
        getValue={({ sessions }) => sessions}
        toText={value => String(Math.round(value))}
      />
      <Process host={data} />
      <Examination />
    </div>
  );
}

const formatPercent = (share: number): string => `${Math.round(share * 100)} %`;

const CurrentUse = ({ host: { now, sessionsMax, processors, memoryBytes } }: { readonly host: Host }) => (
  <Panel title="Now">
    <Meter label="Sessions" used={now.sessions} limit={sessionsMax} />
    <Facts
      facts={[
        [
          'Processor',
          `${formatPercent(now.cpuShare)} of ${processors} ${processors === 1 ? 'processor' : 'processors'}`,
        ],
        ['Memory', `${bytesWords(now.memoryUsedBytes)} of ${bytesWords(memoryBytes)}`],
        ['Disk', `${bytesWords(now.diskFreeBytes)} free`],
        ['Browsers', `${now.slotsUsed}, of which ${now.warm} warm`],
        ['Clients', now.clients],
        ['Waiting', `${now.waiting} creates`],
      ]}
    />
  </Panel>
);

function HistoryChart({
  title,
  host: { samples, now },
  getValue,
  toText,
}: {
  readonly title: string;
  readonly host: Host;
  readonly getValue: (sample: HostSample) => number;
  readonly toText: (value: number) => string;
}) {
  const allSamples = [...samples, now];
  const samplesPerBar = Math.ceil(allSamples.length / BARS_MAX);
  const bars = Array.from({ length: Math.ceil(allSamples.length / samplesPerBar) }, (_, at) => {
    const barSamples = allSamples.slice(at * samplesPerBar, (at + 1) * samplesPerBar);
    const from = barSamples[0]?.at ?? now.at;
    const value = Math.max(...barSamples.map(getValue));
    const tick = TICK_FORMAT.format(new Date(from));
    return {
      key: from,
      name: fullTime(from),
      tick,
      upperValue: value,
      valueText: toText(value),
      cells: [toText(value)],
    };
  });
  const peak = Math.max(...allSamples.map(getValue));
  return (
    <Panel title={title}>
      <p className="px-4 pt-3 text-sm text-soft">{`Now ${toText(getValue(now))}, at most ${toText(peak)} since ${TICK_FORMAT.format(new Date(allSamples[0]?.at ?? now.at))}.`}</p>
      <BarChart
        label={`${title} since ${fullTime(allSamples[0]?.at ?? now.at)}: at most ${toText(peak)}`}
        headings={['Time', 'At most']}
        bars={bars}
        formatTop={toText}
      />
    </Panel>
  );
}

const TICK_FORMAT = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });

const Process = ({ host }: { readonly host: Host }) => (
  <Panel title="Server">
    <Facts
      facts={[
        ['Berth', host.version],
        ['Node', host.nodeVersion],
        ['Running since', fullTime(host.startedAt)],
        ['Memory', bytesWords(host.now.serverBytes)],
        ['Engines', host.engines.join(', ')],
        ['Isolation', host.isolation === 'process' ? 'none: browsers run without a jail' : `jail (${host.isolation})`],
        ...(host.missing.length > 0 ? [['Missing', host.missing.join(' ')] as const] : []),
      ]}
    />
  </Panel>
);

const Checks = ({ checks }: Pick<Host, 'checks'>) => (
  <ul className="divide-y divide-line">
    {checks.map(({ name, ok, detail }) => (
      <Line key={name} name={name} state={ok ? 'fine' : 'failing'} detail={detail ?? ''} />
    ))}
  </ul>
);

const STATE_CLASSES = { fine: 'text-good', failing: 'text-bad', warning: 'text-warn' } as const;

const Line = ({
  name,
  state,
  detail,
  cure = '',
}: {
  readonly name: string;
  readonly state: keyof typeof STATE_CLASSES;
  readonly detail: string;
  readonly cure?: string;
}) => (
  <li className="flex items-start gap-3 px-4 py-2 text-sm">
    <span className={`mt-0.5 ${STATE_CLASSES[state]}`}>
      <Icon name={state === 'fine' ? 'check' : 'warning'} size={16} />
    </span>
    <span className="w-28 shrink-0 font-medium break-words">{name}</span>
    <span className="min-w-0 break-words text-soft">
      <span className="sr-only">{state}: </span>
      {detail}
      {cure && <span className="block text-ink">{cure}</span>}
    </span>
  </li>
);

const stateOf = ({ ok, required }: HostExamination['findings'][number]): keyof typeof STATE_CLASSES =>
  ok ? 'fine' : required ? 'failing' : 'warning';

function Examination() {
  const examination = useMutation({ mutationFn: () => call('examineHost', {}) });
  return (
    <Panel
      title="Examination"
      className="@min-[680px]:col-span-2"
      actions={
        <Button busy={examination.isPending} onClick={() => examination.mutate()}>
          Examine
        </Button>
      }
    >
      {examination.data ? (
        <ul className="divide-y divide-line">
          {examination.data.findings.map(finding => (
            <Line key={finding.name} {...finding} state={stateOf(finding)} />
          ))}
        </ul>
      ) : (
        <div className="grid gap-3 px-4 py-3 text-sm text-soft">
          <p>
            Checks what browsers need, as <code className="font-mono text-xs">berth doctor</code> does. It starts a
            browser and takes a few seconds.
          </p>
          <FormError error={examination.error} />
        </div>
      )}
    </Panel>
  );
}
