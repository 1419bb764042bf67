// The timeline below a replay: a lane for each kind of mark, a cursor, and the latest marks before the cursor as text.
// The lanes can be operated only with a pointer. The slider and the text are accessible to everyone.
import { type MouseEvent, type ReactNode, useMemo } from 'react';
import type { Lane, Mark } from '../logs/marks.ts';
import { clockDuration } from '../ui/time.tsx';
import type { Position } from './player.tsx';

const RECENT_MARKS_MAX = 6;
/** The maximum number of marks drawn in one lane. More marks could not be distinguished. */
const MARKS_DRAWN_MAX = 600;

export function Timeline({
  lanes,
  position,
  seek,
  more,
}: {
  readonly lanes: readonly Lane[];
  /** The position within the whole session. */
  readonly position: Position;
  readonly seek: (seconds: number) => void;
  /** Shown below the marks. */
  readonly more: ReactNode;
}) {
  const { startedMs, seconds, durationSeconds } = position;
  const share = (ms: number): number => (ms - startedMs) / (durationSeconds * 1000);
  const onLaneClick = (event: MouseEvent<HTMLDivElement>): void => {
    const { left, width } = event.currentTarget.getBoundingClientRect();
    seek(((event.clientX - left) / width) * durationSeconds);
  };
  return (
    <div className="border-t border-line px-4 py-3">
      <label className="mb-2 grid grid-cols-[72px_minmax(0,1fr)_84px] items-center gap-3 text-xs text-soft">
        Time
        <input
          type="range"
          min={0}
          max={durationSeconds}
          step={0.1}
          value={seconds}
          onChange={event => seek(Number(event.target.value))}
          className="w-full accent-accent"
        />
        <span className="text-right tabular-nums">
          {clockDuration(seconds)} / {clockDuration(durationSeconds)}
        </span>
      </label>
      {lanes.map(({ name, marks }) => (
        <div key={name} className="grid grid-cols-[72px_minmax(0,1fr)_84px] items-center gap-3">
          <span className="text-xs text-soft">{name}</span>
          <div aria-hidden="true" onClick={onLaneClick} className="relative h-5 cursor-pointer border-b border-line">
            {marks.slice(0, MARKS_DRAWN_MAX).map(mark => (
              <TimelineMark key={mark.key} mark={mark} share={share} />
            ))}
            <span
              className="pointer-events-none absolute inset-y-0 w-px bg-ink"
              style={{ left: `${(seconds / durationSeconds) * 100}%` }}
            />
          </div>
          <span className="text-right text-xs text-faint tabular-nums">{marks.length}</span>
        </div>
      ))}
      <RecentMarks lanes={lanes} atMs={startedMs + seconds * 1000} startedMs={startedMs} />
      {more}
    </div>
  );
}

function TimelineMark({ mark, share }: { readonly mark: Mark; readonly share: (ms: number) => number }) {
  const startShare = share(mark.atMs);
  const endShare = share(mark.untilMs ?? mark.atMs);
  if (endShare < 0 || startShare > 1) return null;
  const leftShare = Math.max(0, startShare);
  return (
    <span
      title={mark.words}
      className={`absolute top-1.5 h-2 min-w-[3px] rounded-[1px] ${mark.isBad ? 'bg-bad' : 'bg-accent opacity-70'}`}
      style={{ left: `${leftShare * 100}%`, width: `${(Math.min(1, endShare) - leftShare) * 100}%` }}
    />
  );
}

function RecentMarks({
  lanes,
  atMs,
  startedMs,
}: {
  readonly lanes: readonly Lane[];
  readonly atMs: number;
  readonly startedMs: number;
}) {
  const sortedMarks = useMemo(
    () =>
      lanes.flatMap(({ name, marks }) => marks.map(mark => ({ ...mark, lane: name }))).sort((a, b) => a.atMs - b.atMs),
    [lanes],
  );
  const recentMarks = sortedMarks.filter(mark => mark.atMs <= atMs).slice(-RECENT_MARKS_MAX);
  return (
    <section aria-label="At this moment" className="mt-3">
      {recentMarks.length > 0 && (
        <ol className="grid gap-1">
          {recentMarks.map(({ lane, key, atMs: time, words, isBad }) => (
            <li key={`${lane} ${key}`} className="grid grid-cols-[72px_minmax(0,1fr)_84px] gap-3 text-xs">
              <span className="text-faint">{lane}</span>
              <span className={`truncate ${isBad ? 'text-bad' : ''}`}>{words}</span>
              <span className="text-right text-faint tabular-nums">
                {time < startedMs ? 'before' : clockDuration((time - startedMs) / 1000)}
              </span>
            </li>
          ))}
        </ol>
      )}
    </section>
  );
}
