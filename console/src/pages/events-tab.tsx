// The events of a session.
import type { EventType, SessionEvent } from '../../../contract/events.ts';
import type { StreamState } from '../api/event-stream.ts';
import { LiveMark } from '../ui/live-mark.tsx';
import { EmptyState, LoadError, LoadingRows } from '../ui/states.tsx';
import { clockDuration, clockTime, fullTime, utcTime } from '../ui/time.tsx';

const EVENT_TEXTS: Readonly<Partial<Record<EventType, string>>> = {
  'session.created': 'Created',
  'session.launched': 'Browser launched',
  'session.claimed': 'Warm browser claimed',
  'session.started': 'Running',
  'client.connected': 'Client connected',
  'client.disconnected': 'Client disconnected',
  'client.refused': 'Client refused',
  'session.updated': 'Changed',
  'recording.limited': 'Recording incomplete',
  'file.uploaded': 'File uploaded',
  'download.completed': 'Download complete',
  'download.failed': 'Download failed',
  'recording.ready': 'Recording file ready',
  'recording.failed': 'Recording file failed',
  'context.restored': 'Context restored',
  'context.version_skipped': 'Damaged version skipped',
  'context.saved': 'Context saved',
  'context.saved_partially': 'Context partially saved',
  'context.save_failed': 'Context not saved',
  'context.overtaken': 'Context replaced by another session',
  'network.refused': 'Host refused',
  'network.failed': 'Host failed',
  'navigation.refused': 'Navigation refused',
  'page.refused': 'Page refused: too many pages',
  'proxy.failed': 'Proxy failed',
  'session.adopted': 'Continued after a service restart',
  'session.release_requested': 'Release requested',
  'session.end_decided': 'End decided',
  'session.ended': 'Ended',
  'session.events_limited': 'Event limit reached; only the end of the session will be added',
};

const ACTOR_WORDS: Readonly<Record<SessionEvent['actor']['kind'], string>> = {
  agentKey: 'caller',
  client: 'client',
  clock: 'time limit',
  operator: 'operator',
  service: 'Berth',
  browser: 'browser',
  viewer: 'a person',
  account: 'a member',
  consumer: 'an end user',
};

export function EventsTab({
  events,
  state,
  startedAt,
}: {
  readonly events: readonly SessionEvent[];
  readonly state: StreamState;
  readonly startedAt: string;
}) {
  if (events.length === 0 && state === 'broken')
    return <LoadError error={new Error('The events could not be read. Trying again…')} />;
  if (events.length === 0 && state === 'refused')
    return (
      <LoadError
        error={
          new Error(
            'You do not have permission to read the events of this session, or the session does not exist. Sign in again, or check the address.',
          )
        }
      />
    );
  if (events.length === 0 && state === 'over')
    return (
      <EmptyState icon="sessions" title="No events">
        Events are kept for 31 days after the end of a session.
      </EmptyState>
    );
  if (events.length === 0) return <LoadingRows contentLabel="events" rows={4} />;
  return (
    <>
      <div className="flex h-10 items-center border-b border-line px-4">
        <LiveMark state={state} />
      </div>
      <ol aria-label="Events" className="py-2">
        {events.map(event => (
          <EventRow key={event.id} event={event} startedAt={startedAt} />
        ))}
      </ol>
    </>
  );
}

const EventRow = ({ event, startedAt }: { readonly event: SessionEvent; readonly startedAt: string }) => (
  <li className="grid grid-cols-[64px_minmax(0,1fr)] gap-x-4 px-4 py-1.5 md:grid-cols-[64px_52px_180px_minmax(0,1fr)]">
    <time
      dateTime={event.time}
      title={`${fullTime(event.time)}\n${utcTime(event.time)}`}
      className="font-mono text-xs leading-5 text-faint"
    >
      {clockTime(event.time)}
    </time>
    <span className="hidden text-right font-mono text-xs leading-5 text-faint md:block">
      +{clockDuration((Date.parse(event.time) - Date.parse(startedAt)) / 1000)}
    </span>
    <span className="text-sm font-medium">
      {EVENT_TEXTS[event.type] ?? event.type}
      <span className="ml-2 font-normal text-faint md:hidden">{ACTOR_WORDS[event.actor.kind]}</span>
    </span>
    <span className="col-start-2 min-w-0 text-sm break-words text-soft md:col-start-auto">
      <span className="hidden md:inline">{ACTOR_WORDS[event.actor.kind]}</span>
      {Object.entries(event.detail).map(([name, value]) => (
        <span key={name} className="mr-3 inline-block max-w-full text-xs break-words md:mr-0 md:ml-3">
          <span className="text-faint">{name}</span> {detailText(value)}
        </span>
      ))}
    </span>
  </li>
);

const detailText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));
