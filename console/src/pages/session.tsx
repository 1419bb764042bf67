// One session, with tabs for the features that the service has.
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import type { Session } from '../../../contract/sessions.ts';
import { call, isOffered } from '../api/call.ts';
import { offersLiveView } from '../api/live-address.ts';
import { sessionQuery } from '../api/queries.ts';
import { useSessionEvents } from '../api/use-session-events.ts';
import { Button } from '../ui/button.tsx';
import { ConfirmDialog } from '../ui/confirm.tsx';
import { CopyButton } from '../ui/copy-button.tsx';
import { endReasonWords } from '../ui/end-reasons.ts';
import { Facts, Page, Panel } from '../ui/page.tsx';
import { LoadError, LoadingRows } from '../ui/states.tsx';
import { isOpen, Status } from '../ui/status.tsx';
import { type Tab, Tabs } from '../ui/tabs.tsx';
import { Ago, clockDuration, ElapsedTime, TimeText, useNow } from '../ui/time.tsx';
import { ChangeSession } from './change-session.tsx';
import { ConnectTab } from './connect-tab.tsx';
import { ConsoleTab } from './console-tab.tsx';
import { EndBanner } from './end-banner.tsx';
import { EventsTab } from './events-tab.tsx';
import { FilesTab } from './files-tab.tsx';
import { LiveTab } from './live-tab.tsx';
import { metadataPairs } from './metadata-pairs.ts';
import { NetworkTab } from './network-tab.tsx';
import { BackLink } from './new-session.tsx';
import { ReplayTab } from './replay-tab.tsx';
import { settingRows } from './session-settings.ts';
import { usageRows } from './session-usage.ts';
import type { SessionView } from './session-view.ts';

/** The session is polled only to update its usage. Other changes arrive as events. */
const USAGE_INTERVAL_MS = 10_000;

export function SessionPage({
  app,
  id,
  view,
}: {
  readonly app: string;
  readonly id: string;
  readonly view: SessionView;
}) {
  const { data, error, refetch } = useQuery({
    ...sessionQuery(app, id),
    refetchInterval: ({ state }) => state.data !== undefined && isOpen(state.data) && USAGE_INTERVAL_MS,
  });
  return (
    <Page
      title="Session"
      above={<BackLink app={app} />}
      mark={data && <Status status={data.status} />}
      about={
        <span className="inline-flex max-w-full items-center gap-1 align-top">
          <code className="truncate font-mono text-xs">{id}</code>
          <CopyButton text={id} label="Copy the session's id" />
        </span>
      }
      actions={data && isOpen(data) && <Actions app={app} session={data} />}
    >
      {data ? (
        <SessionDetails app={app} session={data} view={view} />
      ) : (
        <Panel>
          {error ? (
            <LoadError error={error} retry={() => void refetch()} />
          ) : (
            <LoadingRows contentLabel="the session" />
          )}
        </Panel>
      )}
    </Page>
  );
}

function SessionDetails({
  app,
  session,
  view,
}: {
  readonly app: string;
  readonly session: Session;
  readonly view: SessionView;
}) {
  const { events, state } = useSessionEvents(app, session.id);
  const navigate = useNavigate();
  const isSessionOpen = isOpen(session);
  const tabProps = { app, id: session.id, isOpen: isSessionOpen };
  const hasLiveView = isSessionOpen && offersLiveView();
  const tabs: Tab[] = [
    ...(hasLiveView
      ? [{ id: 'live', name: 'Live', needs: 'readSession', panel: <LiveTab app={app} id={session.id} /> }]
      : []),
    {
      id: 'replay',
      name: 'Replay',
      needs: 'listReplays',
      panel: (
        <ReplayTab
          {...{ ...tabProps, events, view }}
          hasFailed={session.status === 'ERROR'}
          endedAt={session.endedAt}
        />
      ),
    },
    { id: 'console', name: 'Console', needs: 'listSessionLogs', panel: <ConsoleTab {...tabProps} /> },
    { id: 'network', name: 'Network', needs: 'listSessionLogs', panel: <NetworkTab {...tabProps} /> },
    {
      id: 'files',
      name: 'Files',
      needs: 'listDownloads',
      panel: <FilesTab app={app} session={session} isOpen={isSessionOpen} />,
    },
    {
      id: 'events',
      name: 'Events',
      needs: 'listSessionEvents',
      panel: <EventsTab events={events} state={state} startedAt={session.createdAt} />,
    },
    ...(isSessionOpen
      ? [{ id: 'connect', name: 'Connect', needs: 'connectSession', panel: <ConnectTab session={session} /> }]
      : []),
  ].filter(({ needs }) => isOffered(needs));
  const selectedTab = tabs.find(one => one.id === view.tab) ?? tabs[0];
  return (
    <>
      <EndBanner app={app} session={session} />
      <div className="grid gap-5 @min-[1060px]:grid-cols-[minmax(0,1fr)_320px] @min-[1060px]:items-start">
        <Panel>
          <Tabs
            label="Views of the session"
            tabs={tabs}
            value={selectedTab?.id ?? ''}
            onChange={next =>
              void navigate({
                to: '/a/$app/sessions/$id',
                params: { app, id: session.id },
                search: { tab: next },
                replace: true,
              })
            }
          />
        </Panel>
        <Summary app={app} session={session} />
      </div>
    </>
  );
}

const Summary = ({ app, session }: { readonly app: string; readonly session: Session }) => {
  const pairs = metadataPairs(session.userMetadata);
  return (
    <div className="grid gap-5">
      <Panel>
        <Facts
          facts={[
            ...(session.endReason ? [['End reason', <EndReasonWords key="reason" session={session} />] as const] : []),
            ['Created', <MomentAndAge key="created" time={session.createdAt} />],
            ...(session.endedAt
              ? [['Ended', <MomentAndAge key="ended" time={session.endedAt} />] as const]
              : [['Ends in', <TimeLeft key="left" until={session.expiresAt} />] as const]),
            ['Duration', <ElapsedTime key="lasted" from={session.createdAt} to={session.endedAt} />],
          ]}
        />
      </Panel>
      {session.usage && (
        <Panel title={isOpen(session) ? 'Used so far' : 'Used'}>
          <Facts facts={usageRows(session.usage)} />
        </Panel>
      )}
      <Panel title="Settings">
        <Facts facts={settingRows(session)} />
      </Panel>
      {session.keyId && (
        <Panel title="Created by">
          <Facts
            facts={[
              [
                'Agent key',
                <span key="key" className="flex items-center gap-1">
                  <code className="truncate font-mono text-xs" title={session.keyId}>
                    {session.keyId}
                  </code>
                  <CopyButton text={session.keyId} label="Copy the id of the agent key" className="-my-1" />
                </span>,
              ],
              [
                'Its sessions',
                <Link
                  key="sessions"
                  to="/a/$app/sessions"
                  params={{ app }}
                  search={{ key: session.keyId }}
                  className="text-accent underline underline-offset-2"
                >
                  Show all sessions of this key
                </Link>,
              ],
            ]}
          />
        </Panel>
      )}
      {pairs.length > 0 && (
        <Panel title="Metadata">
          <Facts facts={pairs.map(([name, value]) => [name, <code key={name}>{value}</code>] as const)} />
        </Panel>
      )}
    </div>
  );
};

const EndReasonWords = ({ session }: { readonly session: Session }) =>
  session.endReason ? (
    <>
      {endReasonWords(session.endReason)}
      <code className="block font-mono text-xs text-soft">{session.endReason}</code>
    </>
  ) : null;

const MomentAndAge = ({ time }: { readonly time: string }) => (
  <>
    <TimeText time={time} />
    <span className="block text-xs text-soft">
      <Ago time={time} />
    </span>
  </>
);

function TimeLeft({ until }: { readonly until: string }) {
  const now = useNow();
  return <span className="tabular-nums">{clockDuration((Date.parse(until) - now) / 1000)}</span>;
}

function Actions({ app, session }: { readonly app: string; readonly session: Session }) {
  const [openDialog, setOpenDialog] = useState<'release' | 'change' | undefined>();
  const client = useQueryClient();
  const close = (): void => setOpenDialog(undefined);
  return (
    <>
      <Button onClick={() => setOpenDialog('change')}>Change</Button>
      <Button look="danger" onClick={() => setOpenDialog('release')}>
        Release
      </Button>
      {openDialog === 'change' && <ChangeSession app={app} session={session} close={close} />}
      {openDialog === 'release' && (
        <ConfirmDialog
          title="Release this session?"
          action="Release"
          close={close}
          onConfirm={async () => {
            await call('updateSession', { app, params: { id: session.id }, body: { status: 'REQUEST_RELEASE' } });
            await client.invalidateQueries({ queryKey: ['session', app, session.id] });
          }}
        >
          The browser is closed and its clients are disconnected. Stored data of the session is kept.
        </ConfirmDialog>
      )}
    </>
  );
}
