// The page for the operator about the hosts of the fleet: the state of each host, what is running on it, and whether it
// receives new sessions.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import type { ListedHost } from '../../../contract/hosts.ts';
import { call } from '../api/call.ts';
import { isPerson } from '../api/credentials.ts';
import { applicationsQuery, hostSessionsQuery, hostsQuery } from '../api/queries.ts';
import { Button, buttonClass } from '../ui/button.tsx';
import { ConfirmDialog } from '../ui/confirm.tsx';
import { Icon } from '../ui/icon.tsx';
import { Meter } from '../ui/meter.tsx';
import { Facts, Page, Panel } from '../ui/page.tsx';
import { FormError, LoadError, LoadingRows } from '../ui/states.tsx';
import { Status } from '../ui/status.tsx';
import { Ago, TimeText } from '../ui/time.tsx';
import { ForOperator } from './for-operator.tsx';

export const HostsPage = () => (
  <Page title="Hosts" about="The servers that run browsers, their sessions, and which servers receive new sessions.">
    <ForOperator>
      <HostList />
    </ForOperator>
  </Page>
);

const isAlive = ({ state }: ListedHost): boolean => state !== 'left' && state !== 'lost';

function HostList() {
  const { data, error, refetch } = useQuery(hostsQuery);
  if (!data)
    return (
      <Panel>
        {error ? (
          <LoadError error={error} retry={() => void refetch()} />
        ) : (
          <LoadingRows contentLabel="the hosts" rows={4} />
        )}
      </Panel>
    );
  const liveHosts = data.data.filter(isAlive).toSorted((one, other) => Number(other.isThis) - Number(one.isThis));
  const goneHosts = data.data.filter(host => !isAlive(host));
  const sum = (readValue: (host: ListedHost) => number): number =>
    liveHosts.reduce((all, host) => all + readValue(host), 0);
  return (
    <div className="grid gap-6">
      <p className="text-sm">
        {data.isAlone ? (
          <>
            This is the only host.{' '}
            <a href="/docs/fleet" className="text-accent underline">
              How several hosts serve as one
            </a>
          </>
        ) : (
          `${liveHosts.length} hosts, ${sum(({ used }) => used)} sessions on ${sum(({ slots }) => slots)} slots.`
        )}
      </p>
      <ul className="grid items-start gap-4 @min-[860px]:grid-cols-2">
        {liveHosts.map(host => (
          <HostCard key={host.id} host={host} />
        ))}
      </ul>
      {goneHosts.length > 0 && (
        <section aria-labelledby="gone">
          <h2 id="gone" className="mb-3 text-base font-semibold">
            Gone ({goneHosts.length})
          </h2>
          <Panel>
            <ul className="divide-y divide-line">
              {goneHosts.map(host => (
                <li key={host.id} className="flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-2.5 text-sm">
                  <code className="font-mono text-xs break-all">{host.id}</code>
                  <State host={host} />
                  <span className="text-soft">{host.region}</span>
                  <span className="ml-auto text-xs text-soft">
                    started <Ago time={host.startedAt} />
                  </span>
                </li>
              ))}
            </ul>
          </Panel>
        </section>
      )}
    </div>
  );
}

const STATES: Readonly<Record<ListedHost['state'], readonly [word: string, dot: string]>> = {
  alone: ['Running, alone', 'bg-good'],
  up: ['Running', 'bg-good'],
  away: ['Restarting', 'bg-warn'],
  left: ['Stopped', 'bg-line-strong'],
  lost: ['Lost', 'bg-bad'],
};

const State = ({ host: { state, draining } }: { readonly host: ListedHost }) => {
  const [word, dot] = draining && state === 'up' ? ['Gets no new sessions', 'bg-warn'] : STATES[state];
  return (
    <span className="inline-flex items-center gap-2 text-sm font-medium">
      <span aria-hidden="true" className={`size-2 shrink-0 rounded-full ${dot}`} />
      {word}
    </span>
  );
};

function HostCard({ host }: { readonly host: ListedHost }) {
  const { id, isThis, region, labels, version, url, slots, used, startedAt, heardAt } = host;
  const labelEntries = Object.entries(labels);
  return (
    <li className="overflow-hidden rounded-lg border border-line bg-raised">
      <header className="flex flex-wrap items-start justify-between gap-x-4 gap-y-2 border-b border-line px-4 py-3">
        <div className="min-w-0">
          <h2 className="text-sm font-semibold break-words">
            {region} <code className="font-mono text-xs font-normal break-all text-soft">{id}</code>
          </h2>
          <p className="mt-1 flex flex-wrap items-center gap-x-3 gap-y-1">
            <State host={host} />
            {isThis && <span className="text-sm text-soft">serves this page</span>}
          </p>
        </div>
        <div className="flex flex-wrap gap-2">
          {isThis && (
            <Link to="/host" className={buttonClass()}>
              Machine
            </Link>
          )}
          <DrainControls host={host} />
        </div>
      </header>
      {slots > 0 ? (
        <Meter label="Sessions" used={used} limit={slots} />
      ) : (
        <p className="px-4 pt-3 text-sm text-soft">
          This host has no slots. It answers requests, and passes on those about browsers.
        </p>
      )}
      <Facts
        facts={[
          ['Berth', version ?? 'unknown'],
          ...(url === undefined
            ? []
            : [
                [
                  'Address',
                  <code key="url" className="font-mono text-xs">
                    {url}
                  </code>,
                ] as const,
              ]),
          ...(labelEntries.length === 0
            ? []
            : [['Labels', labelEntries.map(([name, value]) => `${name}=${value}`).join(', ')] as const]),
          ['Started', <TimeText key="started" time={startedAt} />],
          ...(heardAt === undefined ? [] : [['Last heard from', <Ago key="heard" time={heardAt} />] as const]),
        ]}
      />
      {used > 0 && <Sessions host={host} />}
    </li>
  );
}

function DrainControls({ host: { id, state, draining, used } }: { readonly host: ListedHost }) {
  const [isConfirming, setIsConfirming] = useState(false);
  const client = useQueryClient();
  const setDraining = async (shouldDrain: boolean): Promise<void> => {
    await call('drainHost', { params: { hostId: id }, body: { draining: shouldDrain } });
    await client.invalidateQueries({ queryKey: hostsQuery.queryKey });
  };
  const undrain = useMutation({ mutationFn: () => setDraining(false) });
  if (state === 'alone' || !isPerson()) return null;
  if (draining)
    return (
      <>
        <Button busy={undrain.isPending} onClick={() => undrain.mutate()}>
          Accept new sessions again
        </Button>
        <FormError error={undrain.error} />
      </>
    );
  return (
    <>
      <Button onClick={() => setIsConfirming(true)}>Drain</Button>
      {isConfirming && (
        <ConfirmDialog
          title="Drain this host?"
          action="Drain"
          close={() => setIsConfirming(false)}
          onConfirm={() => setDraining(true)}
        >
          {used === 0 ? 'No sessions are running on this host.' : `Running sessions (${used}) continue until they end.`}{' '}
          New sessions go to the other hosts. You can undo this at any time.
        </ConfirmDialog>
      )}
    </>
  );
}

function Sessions({ host: { id, used } }: { readonly host: ListedHost }) {
  const [isExpanded, setIsExpanded] = useState(false);
  return (
    <div className="border-t border-line">
      <button
        type="button"
        aria-expanded={isExpanded}
        onClick={() => setIsExpanded(!isExpanded)}
        className="flex w-full items-center justify-between gap-3 px-4 py-2.5 text-left text-sm font-medium hover:bg-sunk"
      >
        Running here ({used})
        <span className={`text-faint transition-transform ${isExpanded ? 'rotate-180' : ''}`}>
          <Icon name="down" size={16} />
        </span>
      </button>
      {isExpanded && <SessionList id={id} />}
    </div>
  );
}

function SessionList({ id }: { readonly id: string }) {
  const { data, error, refetch } = useQuery(hostSessionsQuery(id));
  const ownAppIds = new Set(useQuery(applicationsQuery).data?.data.map(application => application.id));
  if (!data)
    return error ? (
      <LoadError error={error} retry={() => void refetch()} />
    ) : (
      <LoadingRows contentLabel="the sessions" rows={2} />
    );
  return (
    <ul className="max-h-96 divide-y divide-line overflow-y-auto border-t border-line">
      {data.data.map(session => (
        <li key={session.id} className="grid grid-cols-[minmax(0,1fr)_auto] gap-x-4 gap-y-0.5 px-4 py-2 text-sm">
          <SessionName
            id={session.id}
            app={ownAppIds.has(session.applicationId) ? session.applicationId : undefined}
            name={session.applicationName}
          />
          <Status status={session.status} />
          <code className="truncate font-mono text-xs text-soft">{session.id}</code>
          <span className="text-right text-xs text-soft">
            <Ago time={session.createdAt} />
          </span>
        </li>
      ))}
    </ul>
  );
}

/** Shows the name as a link if the operator is a member of the application. */
const SessionName = ({
  id,
  app,
  name,
}: {
  readonly id: string;
  readonly app: string | undefined;
  readonly name: string;
}): ReactNode =>
  app === undefined ? (
    <span className="truncate">{name}</span>
  ) : (
    <Link to="/a/$app/sessions/$id" params={{ app, id }} className="truncate font-medium hover:text-accent">
      {name}
    </Link>
  );
