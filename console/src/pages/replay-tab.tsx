// The replay of a session: a player for each recorded page, and a timeline with pages, requests, console messages,
// commands and events.
import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import type { SessionEvent } from '../../../contract/events.ts';
import type { Replay } from '../../../contract/recordings.ts';
import { ApiError } from '../api/api-error.ts';
import { call } from '../api/call.ts';
import { pictureQuery } from '../api/queries.ts';
import { useSessionLogs } from '../api/use-session-logs.ts';
import { lanesOf, pageNames } from '../logs/marks.ts';
import { CopyButton } from '../ui/copy-button.tsx';
import { useObjectUrl } from '../ui/session-picture.tsx';
import { EmptyState, LoadError, LoadingRows } from '../ui/states.tsx';
import { clockDuration } from '../ui/time.tsx';
import { Player, type Position } from './player.tsx';
import { RecordingFiles } from './recording-files.tsx';
import { linkTo, type SessionView } from './session-view.ts';
import { Timeline } from './timeline.tsx';

const POLL_INTERVAL_MS = 4_000;
/** The maximum time after the end of a session during which its last frames may still be encoded. */
const SETTLE_MS_MAX = 60_000;

const NOT_RECORDED_REASONS = {
  too_many_at_once: 'because more than 64 pages were open',
  too_many_in_all: 'because the session had already opened 1000 pages',
} as const;

const NO_REPLAY_TEXTS: Readonly<Record<string, string>> = {
  disabled: 'Recording was off for this session.',
  none: 'No page of the session was painted.',
  expired: 'The recording was deleted. Recordings are kept for 31 days after the end of a session.',
};

const noReplayWords = ({ details, message }: ApiError): string =>
  (typeof details.reason === 'string' && NO_REPLAY_TEXTS[details.reason]) || message;

const WAIT_TEXTS = {
  open: 'A page is recorded as soon as it is painted.',
  settling: 'The recording is still being stored.',
} as const;

/** `wait`: the reason why a replay may still appear. */
const NoReplay = ({ error, wait }: { readonly error: ApiError; readonly wait: keyof typeof WAIT_TEXTS | undefined }) =>
  wait && error.details.reason === 'none' ? (
    <EmptyState icon="play" title="Nothing recorded yet">
      {WAIT_TEXTS[wait]}
    </EmptyState>
  ) : (
    <EmptyState icon="play" title="No replay">
      {noReplayWords(error)}
    </EmptyState>
  );

interface Props {
  readonly app: string;
  readonly id: string;
  readonly isOpen: boolean;
  readonly hasFailed: boolean;
  readonly endedAt: string | undefined;
  readonly events: readonly SessionEvent[];
  readonly view: SessionView;
}

/** A moment in the replay of one page. */
interface ReplayMoment {
  readonly pageId: string;
  readonly seconds: number;
}

/** A moment that the player reported. */
interface ReportedMoment extends ReplayMoment {
  /** When the first page of the session was painted, in milliseconds since 1970. */
  readonly sessionStartedMs: number;
}

export function ReplayTab({ app, id, isOpen, hasFailed, endedAt, events, view }: Props) {
  const isSettling = (): boolean => endedAt !== undefined && Date.now() - Date.parse(endedAt) < SETTLE_MS_MAX;
  const { data, error, refetch } = useQuery({
    queryKey: ['replays', app, id],
    queryFn: ({ signal }) => call('listReplays', { app, params: { id }, signal }),
    refetchInterval: () => (isOpen || isSettling() ? POLL_INTERVAL_MS : false),
    retry: false,
  });
  if (error instanceof ApiError && error.code === 'replay_not_found')
    return <NoReplay error={error} wait={isOpen ? 'open' : isSettling() ? 'settling' : undefined} />;
  if (error && !data) return <LoadError error={error} retry={() => void refetch()} />;
  if (!data) return <LoadingRows contentLabel="the replay" rows={4} />;
  return data.pages.length === 0 ? (
    <EmptyState icon="play" title="Nothing was recorded" />
  ) : (
    <>
      {data.notRecorded && (
        <p className="border-b border-line px-3 py-2 text-sm text-soft">
          Not recorded: {data.notRecorded.map(({ why, pages }) => `${pages} ${NOT_RECORDED_REASONS[why]}`).join(', ')}.
        </p>
      )}
      <SessionReplay {...{ app, id, isOpen, hasFailed, events, view }} pages={data.pages} />
      {!isOpen && <RecordingFiles app={app} id={id} />}
    </>
  );
}

const Pages = ({
  pages,
  names,
  selectedPageId,
  choose,
}: {
  readonly pages: readonly Replay[];
  readonly names: ReadonlyMap<number, string>;
  readonly selectedPageId: string;
  readonly choose: (pageId: string) => void;
}) => (
  <fieldset className="flex gap-1 overflow-x-auto border-b border-line px-3 py-2">
    <legend className="sr-only">Recorded pages</legend>
    {pages.map(({ pageId, startTimeMs, endTimeMs }) => (
      <button
        key={pageId}
        type="button"
        aria-pressed={pageId === selectedPageId}
        onClick={() => choose(pageId)}
        className="flex h-8 max-w-64 shrink-0 items-center rounded-md px-2.5 text-sm text-soft hover:bg-sunk hover:text-ink aria-pressed:bg-accent-soft aria-pressed:font-medium aria-pressed:text-accent"
      >
        <span className="truncate">{names.get(Number(pageId)) ?? `Page ${pageId}`}</span>
        <span className="ml-2 text-xs tabular-nums">{clockDuration((endTimeMs - startTimeMs) / 1000)}</span>
      </button>
    ))}
  </fieldset>
);

/**
 * A player for the selected page, and one timeline for all pages. Times on the timeline are relative to the first paint
 * of the session's first page.
 */
function SessionReplay({
  app,
  id,
  isOpen,
  hasFailed,
  events,
  view,
  pages,
}: Omit<Props, 'endedAt'> & { readonly pages: readonly Replay[] }) {
  const { data } = useSessionLogs(app, id, isOpen);
  const { data: lastPicture } = useQuery({ ...pictureQuery(app, id, true), enabled: hasFailed });
  const poster = useObjectUrl(lastPicture ?? undefined);
  const [requestedMoment, setRequestedMoment] = useState<ReplayMoment | undefined>(
    view.page === undefined && view.at === undefined ? undefined : { pageId: view.page ?? '0', seconds: view.at ?? 0 },
  );
  const [reportedMoment, setReportedMoment] = useState<ReportedMoment | undefined>();
  const lanes = useMemo(() => lanesOf(data?.logs ?? [], events), [data, events]);
  const names = useMemo(() => pageNames(data?.logs ?? []), [data]);
  const page = pages.find(({ pageId }) => pageId === requestedMoment?.pageId) ?? pages[0];
  if (!page) return null;
  const pageStartSeconds = page.startTimeMs / 1000;
  const durationSeconds = Math.max(...pages.map(({ endTimeMs }) => endTimeMs)) / 1000;
  const seek = (seconds: number): void => {
    const { pageId, startTimeMs } = pageAt(pages, page, seconds * 1000);
    const moment = { pageId, seconds: Math.max(0, seconds - startTimeMs / 1000) };
    setRequestedMoment(moment);
    // The player reports the new moment after a render. If the user presses a key before that, the slider must step
    // from the new moment.
    setReportedMoment(reported => reported && { ...reported, ...moment });
  };
  const report = ({ startedMs, seconds }: Position): void =>
    setReportedMoment({ pageId: page.pageId, seconds, sessionStartedMs: startedMs - page.startTimeMs });
  // While the player of another page is being loaded, the requested time is shown.
  const seconds = reportedMoment?.pageId === page.pageId ? reportedMoment.seconds : (requestedMoment?.seconds ?? 0);
  return (
    <>
      {pages.length > 1 && (
        <Pages
          pages={pages}
          names={names}
          selectedPageId={page.pageId}
          choose={pageId => setRequestedMoment({ pageId, seconds: 0 })}
        />
      )}
      <Player
        key={page.pageId}
        app={app}
        url={page.url}
        openAt={requestedMoment?.seconds ?? (hasFailed ? 'end' : 0)}
        poster={poster}
        seekTo={requestedMoment}
        onPosition={report}
      />
      {reportedMoment && durationSeconds > 0 && (
        <Timeline
          lanes={lanes}
          position={{
            startedMs: reportedMoment.sessionStartedMs,
            seconds: pageStartSeconds + seconds,
            durationSeconds,
          }}
          seek={seek}
          more={<CopyLink page={page.pageId} seconds={seconds} />}
        />
      )}
    </>
  );
}

/**
 * Returns the current page if it was in front at the given time. If it was not, returns the page that was in front. If
 * no page was in front, returns the last page that was opened before that time.
 */
function pageAt(pages: readonly Replay[], currentPage: Replay, ms: number): Replay {
  const startedPages = pages.filter(({ startTimeMs }) => startTimeMs <= ms);
  const visiblePages = startedPages.filter(page => ms <= page.endTimeMs && !isHidden(page, ms));
  if (visiblePages.includes(currentPage)) return currentPage;
  return visiblePages.at(-1) ?? startedPages.at(-1) ?? currentPage;
}

const isHidden = ({ gaps = [] }: Replay, ms: number): boolean =>
  gaps.some(({ startTimeMs, endTimeMs, why }) => why === 'hidden' && startTimeMs <= ms && ms <= endTimeMs);

const CopyLink = ({ page, seconds }: { readonly page: string; readonly seconds: number }) => (
  <p className="mt-3 flex items-center justify-end gap-1 border-t border-line pt-2 text-xs text-soft">
    Link to {clockDuration(seconds)} of this page
    <CopyButton text={linkTo(page, seconds)} label="Copy link at this time" className="-my-1" />
  </p>
);
