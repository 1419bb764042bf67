// Times in readable form. One timer updates all of them.
import { useSyncExternalStore } from 'react';

const TICK_INTERVAL_MS = 1_000;
const MINUTE_SECONDS = 60;
const HOUR_SECONDS = 3_600;
const DAY_SECONDS = 86_400;

let nowMs = Date.now();
const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  if (timer === undefined) nowMs = Date.now();
  timer ??= setInterval(() => {
    nowMs = Date.now();
    for (const one of listeners) one();
  }, TICK_INTERVAL_MS);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

/** The current time in milliseconds, updated every second. */
export const useNow = (): number => useSyncExternalStore(subscribe, () => nowMs);

/** Relative time such as `4 min ago`, with the exact time as a tooltip. */
export function Ago({ time }: { readonly time: string }) {
  const now = useNow();
  return (
    <time dateTime={time} title={`${fullTime(time)}\n${utcTime(time)}`} className="whitespace-nowrap">
      {agoWords((now - Date.parse(time)) / 1000)}
    </time>
  );
}

/** Remaining time such as `4 min left`, with the exact time as a tooltip. */
export function TimeLeft({ until }: { readonly until: string }) {
  const now = useNow();
  const seconds = (Date.parse(until) - now) / 1000;
  return (
    <time dateTime={until} title={`${fullTime(until)}\n${utcTime(until)}`} className="whitespace-nowrap">
      {remainingWords(seconds)}
    </time>
  );
}

/** The duration between `from` and `to`, or until now if `to` is absent. */
export function ElapsedTime({ from, to }: { readonly from: string; readonly to?: string | undefined }) {
  const now = useNow();
  const seconds = ((to ? Date.parse(to) : now) - Date.parse(from)) / 1000;
  return <span className="whitespace-nowrap tabular-nums">{clockDuration(seconds)}</span>;
}

function agoWords(seconds: number): string {
  if (seconds < 5) return 'just now';
  if (seconds < MINUTE_SECONDS) return `${Math.floor(seconds)} s ago`;
  if (seconds < HOUR_SECONDS) return `${Math.floor(seconds / MINUTE_SECONDS)} min ago`;
  if (seconds < DAY_SECONDS) return `${Math.floor(seconds / HOUR_SECONDS)} h ago`;
  return `${Math.floor(seconds / DAY_SECONDS)} d ago`;
}

function remainingWords(seconds: number): string {
  if (seconds <= 0) return 'time is up';
  if (seconds < MINUTE_SECONDS) return 'less than a minute left';
  if (seconds < HOUR_SECONDS) return `${Math.floor(seconds / MINUTE_SECONDS)} min left`;
  if (seconds < 2 * DAY_SECONDS) return `${Math.floor(seconds / HOUR_SECONDS)} h left`;
  return `${Math.floor(seconds / DAY_SECONDS)} days left`;
}

/** Formats a duration, for example as `1:02:03`, `4:05` or `0:07`. */
export function clockDuration(seconds: number): string {
  const wholeSeconds = Math.max(0, Math.floor(seconds));
  const twoDigits = (part: number): string => String(part).padStart(2, '0');
  const minutes = Math.floor((wholeSeconds % HOUR_SECONDS) / MINUTE_SECONDS);
  if (wholeSeconds >= HOUR_SECONDS)
    return `${Math.floor(wholeSeconds / HOUR_SECONDS)}:${twoDigits(minutes)}:${twoDigits(wholeSeconds % MINUTE_SECONDS)}`;
  return `${minutes}:${twoDigits(wholeSeconds % MINUTE_SECONDS)}`;
}

const FULL_FORMAT = new Intl.DateTimeFormat(undefined, {
  day: 'numeric',
  month: 'short',
  year: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
  timeZoneName: 'short',
});
const CLOCK_FORMAT = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
});

/** The time in the time zone of this browser, with the name of the time zone. */
export const fullTime = (time: string): string => FULL_FORMAT.format(new Date(time));

/**
 * Formats a time, for example as `2026-11-23 10:51:02 UTC`. Tooltips show it in this form, so that users can compare it
 * with logs.
 */
export const utcTime = (time: string): string => `${new Date(time).toISOString().slice(0, 19).replace('T', ' ')} UTC`;

/** The exact time, with UTC as a tooltip. */
export const TimeText = ({ time }: { readonly time: string }) => (
  <time dateTime={time} title={utcTime(time)}>
    {fullTime(time)}
  </time>
);
/** The time of day in the time zone of this browser, such as `10:51:02`. */
export const clockTime = (time: string): string => CLOCK_FORMAT.format(new Date(time));

const UNITS = ['B', 'KB', 'MB', 'GB', 'TB'] as const;

/** A size in multiples of 1024 bytes. */
export function bytesWords(bytes: number): string {
  let amount = bytes;
  let unit = 0;
  while (amount >= 1024 && unit < UNITS.length - 1) {
    amount /= 1024;
    unit++;
  }
  return `${amount >= 100 || unit === 0 ? Math.round(amount) : Number(amount.toFixed(1))} ${UNITS[unit]}`;
}
