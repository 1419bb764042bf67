// From whole slices to stored segments: each page in its order, a few ffmpeg at once in all. A slice is dropped only when
// its segment is durable; what does not work now is tried again until it does.
import type { Clock } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import type { Log } from '../../kit/log.ts';
import type { Closeable } from '../../kit/scope.ts';
import { EncoderMissing, type Ffmpeg } from './ffmpeg.ts';
import { type Fragment, segmentBytes } from './fmp4.ts';
import type { Size } from './matroska.ts';
import type { PageFolder, WholeSlice } from './page-folder.ts';

const RETRY_MIN_MS = 500;
const RETRY_MAX_MS = 10_000;
/** A slice that ffmpeg cannot encode so often is given up, with a note of what is missing. */
const ENCODE_TRIES = 4;

export interface Segment {
  readonly sequence: number;
  readonly startMs: number;
  readonly durationsMs: readonly number[];
  readonly sizes: readonly number[];
  readonly size: Size;
  readonly init: Buffer;
  readonly bytes: Buffer;
  /** Where in the bytes the coded frames begin. */
  readonly payloadAt: number;
}

export interface PipelineSink {
  /** Returns when it is durable. Repeated when it was not known to be. */
  keep(segment: Segment): Promise<void>;
  /** These milliseconds cannot be shown. */
  lose(fromMs: number, toMs: number, why: string): Promise<void>;
  /** All of the page is stored. */
  done(): Promise<void>;
}

interface PipelineParts {
  readonly folder: PageFolder;
  readonly ffmpeg: Ffmpeg;
  readonly sink: PipelineSink;
  readonly clock: Clock;
  readonly log: Log;
}

export class Pipeline implements Closeable {
  readonly #parts: PipelineParts;
  readonly #closing = new AbortController();
  #work: Promise<void> = Promise.resolve();
  #still: { readonly jpeg: Buffer; readonly fragment: Fragment } | undefined;
  /** Slices that are not stored yet. */
  waiting = 0;

  constructor(parts: PipelineParts) {
    this.#parts = parts;
  }

  add(slice: WholeSlice, size: Size): void {
    this.waiting++;
    this.#then(async () => {
      await this.#store(slice, size);
      this.waiting--;
    });
  }

  /** In its turn among the slices, until it works. */
  do(step: () => Promise<void>): void {
    this.#then(step);
  }

  /** Nothing follows. Resolves when everything is stored and the folder is gone, or the pipeline was closed. */
  finish(): Promise<void> {
    this.#then(async () => {
      await this.#parts.sink.done();
      await this.#parts.folder.remove();
    });
    return this.#work;
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error('the pipeline is closed'));
    await this.#work;
  }

  #then(step: () => Promise<void>): void {
    this.#work = this.#work.then(() => this.#untilDone(step));
  }

  async #untilDone(step: () => Promise<void>): Promise<void> {
    const { signal } = this.#closing;
    for (let waitMs = RETRY_MIN_MS; !signal.aborted; waitMs = Math.min(waitMs * 2, RETRY_MAX_MS))
      try {
        return await step();
      } catch (error) {
        if (signal.aborted) return;
        this.#parts.log.warn('recording.not_stored', { folder: this.#parts.folder.path, reason: reason(error) });
        await this.#parts.clock.sleep(waitMs, signal).catch(() => {});
      }
  }

  async #store(slice: WholeSlice, size: Size): Promise<void> {
    const { folder, sink } = this.#parts;
    const fragment = await this.#encode(slice, size);
    if (fragment) await sink.keep(segmentOf(slice, size, fragment));
    else await sink.lose(slice.startMs, slice.endMs, 'the frames could not be encoded');
    await folder.drop(slice);
  }

  /** A page at rest is encoded once: its next segment is the same picture at another time. */
  async #encode(slice: WholeSlice, size: Size): Promise<Fragment | undefined> {
    const isStill = slice.times.length === 1;
    const [only] = isStill ? await this.#parts.folder.frames(slice).catch(() => []) : [];
    if (only && this.#still?.jpeg.equals(only.jpeg)) return this.#still.fragment;
    const fragment = await this.#tried(slice, size);
    this.#still = only && fragment ? { jpeg: only.jpeg, fragment } : undefined;
    return fragment;
  }

  async #tried(slice: WholeSlice, size: Size): Promise<Fragment | undefined> {
    const { ffmpeg, log, clock, folder } = this.#parts;
    const { signal } = this.#closing;
    const { startMs, times } = slice;
    for (let attempt = 1; ; attempt++)
      try {
        return await ffmpeg.encode(folder.pathOf(slice), times.length, size, signal);
      } catch (error) {
        if (signal.aborted || error instanceof EncoderMissing) throw error;
        log.warn('recording.not_encoded', { folder: folder.path, startMs, attempt, reason: reason(error) });
        if (attempt === ENCODE_TRIES) return undefined;
        await clock.sleep(RETRY_MIN_MS, signal).catch(() => {});
      }
  }
}

/** The first frame is shown from the beginning, the last one to the end. */
function segmentOf(
  { sequence, startMs, endMs, times }: WholeSlice,
  size: Size,
  { init, sizes, payload }: Fragment,
): Segment {
  const starts = times.map((atMs, index) => (index === 0 ? startMs : atMs));
  const durationsMs = starts.map((at, index) => (starts[index + 1] ?? endMs) - at);
  const { bytes, payloadAt } = segmentBytes({ sequence, startMs, durationsMs, sizes, payload });
  return { sequence, startMs, durationsMs, sizes, size: even(size), init, bytes, payloadAt };
}

const even = ({ width, height }: Size): Size => ({ width: width + (width % 2), height: height + (height % 2) });
