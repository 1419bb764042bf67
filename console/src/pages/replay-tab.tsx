// The replay of a session: a player for each recorded page, and a timeline with pages, requests, console messages, commands
// and events.
import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import type { SessionEvent } from '../../../contract/events.ts';
import type { Replay } from '../../../contract/recordings.ts';
import { ApiError } from '../api/api-error.ts';
import { call } from '../api/call.ts';
import { pictureQuery } from '../api/queries.ts';
import { useSessionLogs } from '../api/use-session-logs.ts';
import { lanesOf } from '../logs/marks.ts';
import { useObjectUrl } from '../ui/session-picture.tsx';
import { Empty, Failed, Loading } from '../ui/states.tsx';
import { durationWords } from '../ui/time.tsx';
import { Player, type Position } from './player.tsx';
import { RecordingFiles } from './recording-files.tsx';
import { Timeline } from './timeline.tsx';

const LOOK_MS = 4_000;
/** After the end of a session, its last pictures are still being encoded for this long. */
const SETTLES_MS = 60_000;

const NOT_RECORDED = {
  too_many_at_once: 'because more than 64 pages were open',
  too_many_in_all: 'because the session had already opened 1000 pages',
} as const;

const NO_REPLAY: Readonly<Record<string, string>> = {
  disabled: 'Recording was off for this session.',
  none: 'No page of the session was painted.',
  expired: 'The recording was deleted. Recordings are kept for 31 days after the end of a session.',
};

const noReplayWords = ({ details, message }: ApiError): string =>
  (typeof details.reason === 'string' && NO_REPLAY[details.reason]) || message;

const WAIT = {
  open: 'A page is recorded as soon as it is painted.',
  settling: 'The recording is still being stored.',
} as const;

/** `wait`: why a replay may appear later. */
const NoReplay = ({ error, wait }: { readonly error: ApiError; readonly wait: keyof typeof WAIT | undefined }) =>
  wait && error.details.reason === 'none' ? (
    <Empty icon="play" title="Nothing recorded yet">
      {WAIT[wait]}
    </Empty>
  ) : (
    <Empty icon="play" title="No replay">
      {noReplayWords(error)}
    </Empty>
  );

interface Props {
  readonly app: string;
  readonly id: string;
  readonly isOpen: boolean;
  readonly failed: boolean;
  readonly endedAt: string | undefined;
  readonly events: readonly SessionEvent[];
}

export function ReplayTab({ app, id, isOpen, failed, endedAt, events }: Props) {
  const isSettling = (): boolean => endedAt !== undefined && Date.now() - Date.parse(endedAt) < SETTLES_MS;
  const { data, error, refetch } = useQuery({
    queryKey: ['replays', app, id],
    queryFn: ({ signal }) => call('listReplays', { app, params: { id }, signal }),
    refetchInterval: () => (isOpen || isSettling() ? LOOK_MS : false),
    retry: false,
  });
  const [chosen, setChosen] = useState('0');
  if (error instanceof ApiError && error.code === 'replay_not_found')
    return <NoReplay error={error} wait={isOpen ? 'open' : isSettling() ? 'settling' : undefined} />;
  if (error && !data) return <Failed error={error} retry={() => void refetch()} />;
  if (!data) return <Loading what="the replay" rows={4} />;
  const page = data.pages.find(({ pageId }) => pageId === chosen) ?? data.pages[0];
  if (!page) return <Empty icon="play" title="Nothing was recorded" />;
  return (
    <>
      {data.notRecorded && (
        <p className="border-b border-line px-3 py-2 text-sm text-soft">
          Not recorded: {data.notRecorded.map(({ why, pages }) => `${pages} ${NOT_RECORDED[why]}`).join(', ')}.
        </p>
      )}
      {data.pages.length > 1 && <Pages pages={data.pages} chosen={page.pageId} choose={setChosen} />}
      <PageReplay key={page.pageId} app={app} id={id} isOpen={isOpen} failed={failed} events={events} page={page} />
      {!isOpen && <RecordingFiles app={app} id={id} />}
    </>
  );
}

const Pages = ({
  pages,
  chosen,
  choose,
}: {
  readonly pages: readonly Replay[];
  readonly chosen: string;
  readonly choose: (pageId: string) => void;
}) => (
  <fieldset className="flex gap-1 overflow-x-auto border-b border-line px-3 py-2">
    <legend className="sr-only">Recorded pages</legend>
    {pages.map(({ pageId, startTimeMs, endTimeMs }) => (
      <button
        key={pageId}
        type="button"
        aria-pressed={pageId === chosen}
        onClick={() => choose(pageId)}
        className="h-8 shrink-0 rounded-md px-2.5 text-sm text-soft hover:bg-sunk hover:text-ink aria-pressed:bg-accent-soft aria-pressed:font-medium aria-pressed:text-accent"
      >
        Page {pageId}
        <span className="ml-2 text-xs tabular-nums">{durationWords((endTimeMs - startTimeMs) / 1000)}</span>
      </button>
    ))}
  </fieldset>
);

function PageReplay({ app, id, isOpen, failed, events, page }: Omit<Props, 'endedAt'> & { readonly page: Replay }) {
  const { data } = useSessionLogs(app, id, isOpen);
  const { data: lastPicture } = useQuery({ ...pictureQuery(app, id, true), enabled: failed });
  const poster = useObjectUrl(lastPicture ?? undefined);
  const [position, setPosition] = useState<Position | undefined>();
  const [seekTo, setSeekTo] = useState<{ readonly seconds: number } | undefined>();
  const lanes = useMemo(() => lanesOf(data?.logs ?? [], events, Number(page.pageId)), [data, events, page.pageId]);
  return (
    <>
      <Player app={app} url={page.url} openAtEnd={failed} poster={poster} seekTo={seekTo} onPosition={setPosition} />
      {position && position.durationSeconds > 0 && (
        <Timeline lanes={lanes} position={position} seek={seconds => setSeekTo({ seconds })} />
      )}
    </>
  );
}
