// Plays one recorded page. A request for the playlist requires a credential. The playlist refers to its segments by
// signed links. The player library is loaded when it is first used.
import { useEffect, useRef, useState } from 'react';
import { obtainAgentKey } from '../api/credentials.ts';
import { LoadError } from '../ui/states.tsx';

/** To show the last frame, the player seeks to the end of the replay minus this duration. */
const LAST_FRAME_MARGIN_SECONDS = 0.2;
/** The player has reached a moment if its time differs from that moment by less than this. */
const SEEK_TOLERANCE_SECONDS = 0.05;
/**
 * The maximum number of seeks to one moment. Several may be needed, because hls.js itself seeks to its start position.
 */
const SEEKS_MAX = 5;
const AUTHENTICATED_PATHS = /^\/v1\/browsers\/sessions\//;

/** A requested moment, and the state of the request. */
interface SeekRequest {
  /** Seconds, or `end` for the last frame. */
  readonly at: number | 'end';
  seeks: number;
  /** The time of the player when it first showed the requested moment. Undefined until then. */
  shownAt: number | undefined;
}

export interface Position {
  /** When the first frame was captured, in milliseconds since 1970. */
  readonly startedMs: number;
  readonly seconds: number;
  readonly durationSeconds: number;
}

export function Player({
  app,
  url,
  openAt,
  poster,
  seekTo,
  onPosition,
}: {
  readonly app: string;
  /** Path of the playlist. */
  readonly url: string;
  /** Where to start, in seconds. `end` is the last frame. */
  readonly openAt: number | 'end';
  /** Shown until the replay is loaded. */
  readonly poster: string | undefined;
  readonly seekTo: { readonly seconds: number } | undefined;
  readonly onPosition: (position: Position) => void;
}) {
  const video = useRef<HTMLVideoElement>(null);
  const startedMs = useRef(0);
  const initialOpenAt = useRef(openAt);
  const currentSeek = useRef<SeekRequest | undefined>({ at: openAt, seeks: 0, shownAt: undefined });
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    const element = video.current;
    if (!element) return;
    const unmountController = new AbortController();
    play(app, url, initialOpenAt.current, element, unmountController.signal, ms => {
      startedMs.current = ms;
    }).catch(problem => unmountController.signal.aborted || setError(problem));
    return () => unmountController.abort();
  }, [app, url]);
  const reportPosition = (): void => {
    const element = video.current;
    if (!element || !Number.isFinite(element.duration) || startedMs.current === 0) return;
    const seconds = currentSeek.current ? advanceSeek(currentSeek.current, element) : undefined;
    if (seconds === undefined) currentSeek.current = undefined;
    onPosition({
      startedMs: startedMs.current,
      seconds: seconds ?? element.currentTime,
      durationSeconds: element.duration,
    });
  };
  const latestReport = useRef(reportPosition);
  latestReport.current = reportPosition;
  // Reports the new position at once, because the next step of the slider starts from that position.
  useEffect(() => {
    if (!video.current || !seekTo) return;
    currentSeek.current = { at: seekTo.seconds, seeks: 0, shownAt: undefined };
    latestReport.current();
  }, [seekTo]);
  if (error) return <LoadError error={error} />;
  return (
    <div className="bg-code">
      <video
        ref={video}
        poster={poster}
        controls
        muted
        playsInline
        aria-label="Replay of the page"
        onTimeUpdate={reportPosition}
        onDurationChange={reportPosition}
        onCanPlay={reportPosition}
        onSeeked={reportPosition}
        className="mx-auto block max-h-[62vh] min-h-40 w-full"
      />
    </div>
  );
}

/**
 * Returns the requested moment in seconds. Returns undefined after the player has shown that moment and played past it.
 * Makes the player seek to the moment as soon as the player has frames. For a moment after the last frame, the last
 * frame is shown.
 */
function advanceSeek(seekRequest: SeekRequest, element: HTMLVideoElement): number | undefined {
  const lastFramePosition = Math.max(0, element.duration - LAST_FRAME_MARGIN_SECONDS);
  const seconds = seekRequest.at === 'end' ? lastFramePosition : seekRequest.at;
  const time = element.currentTime;
  if (seekRequest.shownAt !== undefined)
    return Math.abs(time - seekRequest.shownAt) < SEEK_TOLERANCE_SECONDS ? seconds : undefined;
  const goal = Math.min(seconds, lastFramePosition);
  const hasFrame = !element.seeking && element.readyState >= element.HAVE_CURRENT_DATA;
  const isAtGoal = hasFrame && (!element.paused || Math.abs(time - goal) < SEEK_TOLERANCE_SECONDS);
  if (isAtGoal || seekRequest.seeks === SEEKS_MAX) seekRequest.shownAt = time;
  else if (hasFrame || seekRequest.seeks === 0) {
    seekRequest.seeks += 1;
    element.currentTime = goal;
  }
  return seconds;
}

/**
 * Starts the player, unless the signal has aborted. Rejects when the replay cannot be played. Stays pending while the
 * player works, so errors that occur during playback are reported too.
 */
async function play(
  app: string,
  url: string,
  openAt: number | 'end',
  element: HTMLVideoElement,
  signal: AbortSignal,
  onStart: (ms: number) => void,
): Promise<void> {
  const { default: Hls } = await import('hls.js/light');
  if (!Hls.isSupported()) throw new Error('This browser cannot play the replay. Save the MP4 files instead.');
  if (signal.aborted) return;
  const hls = new Hls({
    // hls.js creates its worker from a string, which the content security policy forbids.
    enableWorker: false,
    startPosition: openAt === 'end' ? 0 : openAt,
    // The key is read for each request, because the playlist of a running session is loaded for longer than a key
    // lasts.
    xhrSetup: async (request, requestUrl) => {
      if (!AUTHENTICATED_PATHS.test(new URL(requestUrl, location.href).pathname)) return;
      const key = await obtainAgentKey(app);
      request.open('GET', requestUrl);
      request.setRequestHeader('authorization', `Bearer ${key}`);
    },
  });
  signal.addEventListener('abort', () => hls.destroy());
  hls.on(Hls.Events.LEVEL_LOADED, (_, { details }) => {
    const time = details.fragments[0]?.programDateTime;
    if (time) onStart(time);
  });
  const fatalErrorPromise = new Promise<never>((_, reject) => {
    hls.on(Hls.Events.ERROR, (_, { fatal, details }) => {
      if (fatal) reject(new Error(`The replay cannot be played (${details}). Reload the page to try again.`));
    });
  });
  hls.loadSource(url);
  hls.attachMedia(element);
  await fatalErrorPromise;
}
