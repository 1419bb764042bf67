// The network requests of a session as a waterfall, with the details of one request.
import { useMemo, useState } from 'react';
import type { JsonObject } from '../../../contract/common.ts';
import { saveHar } from '../api/save-file.ts';
import { useSessionLogs } from '../api/use-session-logs.ts';
import { pageNames } from '../logs/marks.ts';
import { type NetworkCall, networkCalls, shortUrl } from '../logs/network-calls.ts';
import { Button } from '../ui/button.tsx';
import { Choice } from '../ui/choice.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { Facts } from '../ui/page.tsx';
import { Rows } from '../ui/rows.tsx';
import { FormError } from '../ui/states.tsx';
import { bytesWords } from '../ui/time.tsx';
import { LogFilters } from './log-filters.tsx';
import { LogsState } from './logs-state.tsx';

const ROW_HEIGHT_PX = 33;
const BAR_SHARE_MIN = 0.004;

export function NetworkTab({
  app,
  id,
  isOpen,
}: {
  readonly app: string;
  readonly id: string;
  readonly isOpen: boolean;
}) {
  const { data, error, refetch } = useSessionLogs(app, id, isOpen);
  const [selectedCall, setSelectedCall] = useState<NetworkCall | undefined>();
  const [problem, setProblem] = useState<unknown>();
  const [find, setFind] = useState('');
  const [status, setStatus] = useState('');
  const [page, setPage] = useState('');
  const allCalls = useMemo(() => networkCalls(data?.logs ?? []), [data]);
  const pages = useMemo(() => pageNames(data?.logs ?? []), [data]);
  const calls = allCalls.filter(
    call =>
      call.url.toLowerCase().includes(find.toLowerCase()) &&
      (STATUSES.find(one => one.id === status)?.matches(call) ?? true) &&
      (page === '' || call.pageId === Number(page)),
  );
  const count = `${calls.length} ${calls.length === 1 ? 'request' : 'requests'}`;
  const fromMs = calls[0]?.startMs ?? 0;
  const toMs = Math.max(fromMs + 1, ...calls.map(call => call.endMs ?? call.startMs));
  return (
    <LogsState
      data={data}
      error={error}
      retry={() => void refetch()}
      isEmpty={allCalls.length === 0}
      titleIfEmpty="No requests"
    >
      <LogFilters label="Filter the requests" {...{ find, setFind, page, setPage, pages, count }}>
        <Choice label="Status" value={status} choose={setStatus} any="All statuses">
          {STATUSES.map(({ id: one, name }) => (
            <option key={one} value={one}>
              {name}
            </option>
          ))}
        </Choice>
        <Button icon="download" onClick={() => saveHar(app, id).then(() => setProblem(undefined), setProblem)}>
          HAR file
        </Button>
      </LogFilters>
      <FormError error={problem} />
      <Rows
        label="Requests"
        count={calls.length}
        rowHeightPx={ROW_HEIGHT_PX}
        row={index => {
          const call = calls[index];
          return call && <Row call={call} fromMs={fromMs} toMs={toMs} choose={() => setSelectedCall(call)} />;
        }}
      />
      {selectedCall && <Details call={selectedCall} close={() => setSelectedCall(undefined)} />}
    </LogsState>
  );
}

const STATUSES: ReadonlyArray<{ readonly id: string; readonly name: string; matches(call: NetworkCall): boolean }> = [
  {
    id: 'bad',
    name: 'Failed or 4xx, 5xx',
    matches: ({ failureText, status = 0 }) => failureText !== undefined || status >= 400,
  },
  { id: 'ok', name: '2xx', matches: ({ status = 0 }) => status >= 200 && status < 300 },
  { id: 'moved', name: '3xx', matches: ({ status = 0 }) => status >= 300 && status < 400 },
  { id: 'open', name: 'Not finished', matches: ({ endMs }) => endMs === undefined },
];

function Row({
  call,
  fromMs,
  toMs,
  choose,
}: {
  readonly call: NetworkCall;
  readonly fromMs: number;
  readonly toMs: number;
  readonly choose: () => void;
}) {
  const { startMs, endMs, failureText, status, bytes } = call;
  const isBad = failureText !== undefined || (status ?? 0) >= 400;
  const share = (ms: number): number => (ms - fromMs) / (toMs - fromMs);
  const width = Math.max(BAR_SHARE_MIN, share(endMs ?? toMs) - share(startMs));
  return (
    <button
      type="button"
      onClick={choose}
      className="grid h-8 w-full grid-cols-[44px_minmax(0,1fr)_64px] items-center gap-x-3 px-4 text-left text-xs -outline-offset-2 hover:bg-sunk md:grid-cols-[44px_52px_minmax(0,1fr)_72px_64px_64px_minmax(0,0.8fr)]"
    >
      <span className={`font-mono ${isBad ? 'text-bad' : 'text-soft'}`}>{failureText ? 'fail' : (status ?? '…')}</span>
      <span className="hidden font-mono text-soft md:block">{call.method}</span>
      <span className="truncate" title={call.url}>
        {shortUrl(call.url)}
      </span>
      <span className="hidden truncate text-soft md:block">{call.type}</span>
      <span className="hidden text-right text-soft tabular-nums md:block">
        {bytes === undefined ? '' : bytesWords(bytes)}
      </span>
      <span className="text-right text-soft tabular-nums">{callDuration(call)}</span>
      <span aria-hidden="true" className="relative hidden h-2 md:block">
        <span
          className={`absolute h-2 min-w-0.5 rounded-sm ${isBad ? 'bg-bad' : 'bg-accent'}`}
          style={{ left: `${share(startMs) * 100}%`, width: `${width * 100}%` }}
        />
      </span>
    </button>
  );
}

const callDuration = ({ startMs, endMs }: NetworkCall): string => {
  if (endMs === undefined) return '';
  const ms = endMs - startMs;
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
};

const Details = ({ call, close }: { readonly call: NetworkCall; readonly close: () => void }) => (
  <Dialog open onClose={close} title={shortUrl(call.url)} about={<span className="break-all">{call.url}</span>}>
    <div className="-mx-5 border-t border-line">
      <Facts
        facts={[
          ['Response', call.failureText ?? String(call.status ?? 'none yet')],
          ['Method', call.method],
          ['Type', [call.type, call.mimeType].filter(Boolean).join(', ')],
          ['Took', callDuration(call) || 'in progress'],
          ...(call.bytes === undefined ? [] : [['Size', bytesWords(call.bytes)] as const]),
          ...(call.protocol ? [['Protocol', call.protocol] as const] : []),
        ]}
      />
      <Headers name="Request headers" headers={call.requestHeaders} />
      <Headers name="Response headers" headers={call.responseHeaders} />
    </div>
  </Dialog>
);

const Headers = ({ name, headers }: { readonly name: string; readonly headers: JsonObject }) =>
  Object.keys(headers).length === 0 ? null : (
    <section>
      <h3 className="border-y border-line bg-sunk px-4 py-1.5 text-xs font-semibold">{name}</h3>
      <dl className="px-4 py-2 font-mono text-xs leading-relaxed break-all">
        {Object.entries(headers).map(([header, value]) => (
          <div key={header}>
            <dt className="inline text-soft">{header}: </dt>
            <dd className="inline">{String(value)}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
