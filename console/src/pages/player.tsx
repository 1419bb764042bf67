// Plays one recorded page. The playlist requires a credential, its segments are signed links. The player library is loaded on
// first use.
import { useEffect, useRef, useState } from 'react';
import { agentKey } from '../api/credentials.ts';
import { Failed } from '../ui/states.tsx';

/** To show the last picture, seek this far before the end. */
const LAST_PICTURE_SECONDS = 0.2;
/** A seek ends at the picture before the time. */
const NEAR_SECONDS = 0.5;
const GUARDED = /^\/v1\/browsers\/sessions\//;

export interface Position {
  /** When the first picture was taken, in milliseconds since 1970. Undefined until the playlist is loaded. */
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
  /** Where to start, in seconds; `end` is the last picture. */
  readonly openAt: number | 'end';
  /** Shown until the replay is loaded. */
  readonly poster: string | undefined;
  readonly seekTo: { readonly seconds: number } | undefined;
  readonly onPosition: (position: Position) => void;
}) {
  const video = useRef<HTMLVideoElement>(null);
  const startedMs = useRef(0);
  const firstAt = useRef(openAt);
  /** Until the first picture is shown, the position is where the replay will start. */
  const isOpened = useRef(false);
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    const element = video.current;
    if (!element) return;
    const gone = new AbortController();
    play(app, url, firstAt.current, element, gone.signal, ms => {
      startedMs.current = ms;
    }).catch(problem => gone.signal.aborted || setError(problem));
    return () => gone.abort();
  }, [app, url]);
  const tell = (): void => {
    const element = video.current;
    if (!element || !Number.isFinite(element.duration) || startedMs.current === 0) return;
    const last = Math.max(0, element.duration - LAST_PICTURE_SECONDS);
    const first = firstAt.current === 'end' ? last : Math.min(firstAt.current, last);
    isOpened.current ||= element.currentTime + NEAR_SECONDS >= first;
    const seconds = isOpened.current ? element.currentTime : first;
    onPosition({ startedMs: startedMs.current, seconds, durationSeconds: element.duration });
  };
  const newest = useRef(tell);
  newest.current = tell;
  // The new position is told at once: the next step of the slider counts from it.
  useEffect(() => {
    if (!video.current || !seekTo || startedMs.current === 0) return;
    isOpened.current = true;
    video.current.currentTime = seekTo.seconds;
    newest.current();
  }, [seekTo]);
  if (error) return <Failed error={error} />;
  return (
    <div className="bg-code">
      <video
        ref={video}
        poster={poster}
        controls
        muted
        playsInline
        aria-label="Replay of the page"
        onTimeUpdate={tell}
        onDurationChange={tell}
        onSeeked={tell}
        className="mx-auto block max-h-[62vh] min-h-40 w-full"
      />
    </div>
  );
}

/** Resolves when the replay can be played; rejects if it cannot. */
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
  const authorization = `Bearer ${await agentKey(app)}`;
  if (signal.aborted) return;
  const hls = new Hls({
    // hls.js creates its worker from a string, which the content security policy forbids.
    enableWorker: false,
    startPosition: openAt === 'end' ? 0 : openAt,
    xhrSetup: (request, asked) => {
      if (GUARDED.test(new URL(asked, location.href).pathname))
        request.setRequestHeader('authorization', authorization);
    },
  });
  signal.addEventListener('abort', () => hls.destroy());
  hls.on(Hls.Events.LEVEL_LOADED, (_, { details }) => {
    const time = details.fragments[0]?.programDateTime;
    if (time) onStart(time);
    if (openAt !== 'end' || element.currentTime > 0) return;
    element.currentTime = Math.max(0, details.totalduration - LAST_PICTURE_SECONDS);
  });
  const failed = new Promise<never>((_, reject) => {
    hls.on(Hls.Events.ERROR, (_, { fatal, details }) => {
      if (fatal) reject(new Error(`The replay cannot be played (${details}). Reload the page to try again.`));
    });
  });
  hls.loadSource(url);
  hls.attachMedia(element);
  await failed;
}
