// From whole slices to stored segments: each page in its order, a few ffmpeg at once in all. Where nobody looks, slices wait
// for others, because ffmpeg's start is dear. A slice is dropped only when its segment is durable; what does not work now is
// tried again until it does.
import type { Clock } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import type { Log } from '../../kit/log.ts';
import type { Closeable } from '../../kit/scope.ts';
import type { EncodeQueue } from './encode-queue.ts';
import { EncoderMissing } from './ffmpeg.ts';
import { type Fragment, segmentBytes } from './fmp4.ts';
import type { Size } from './matroska.ts';
import type { PageFolder, WholeSlice } from './page-folder.ts';

const RETRY_MIN_MS = 500;
const RETRY_MAX_MS = 10_000;
/** A slice that ffmpeg cannot encode so often is given up, with a note of what is missing. */
const ENCODE_TRIES = 4;
/** So many slices wait for each other at most. */
const HELD_MAX = 5;
/** So many are encoded before they can be stored: what waits for the store waits on disk. */
const AHEAD_MAX = 8;

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

export interface PipelineParts {
  readonly session: string;
  readonly folder: PageFolder;
  readonly encodes: EncodeQueue;
  /** Nobody looks, and there is room: slices may wait to be encoded together. Otherwise they are urgent. */
  readonly mayHold: () => boolean;
  readonly sink: PipelineSink;
  readonly clock: Clock;
  readonly log: Log;
}

interface Job {
  readonly slice: WholeSlice;
  readonly size: Size;
  readonly released: PromiseWithResolvers<void>;
  /** Undefined within: it cannot be encoded. */
  encoded: Promise<Fragment | undefined> | undefined;
}

/** The last slice that was encoded, and its picture if it has only one. */
interface Still {
  readonly of: Job;
  readonly jpeg: Buffer | undefined;
  readonly encoded: Promise<Fragment | undefined>;
}

export class Pipeline implements Closeable {
  readonly #parts: PipelineParts;
  readonly #closing = new AbortController();
  #work: Promise<void> = Promise.resolve();
  #notes: Promise<void> = Promise.resolve();
  #still: Promise<Still | undefined> = Promise.resolve(undefined);
  #held: Job[] = [];
  readonly #released: Job[] = [];
  #isLast = false;
  /** Slices that are not stored yet. */
  waiting = 0;

  constructor(parts: PipelineParts) {
    this.#parts = parts;
  }

  add(slice: WholeSlice, size: Size): void {
    this.waiting++;
    const job: Job = { slice, size, released: Promise.withResolvers(), encoded: undefined };
    this.#held.push(job);
    const notes = this.#notes;
    this.#work = this.#work.then(async () => {
      await Promise.all([job.released.promise, notes]);
      await this.#untilDone(() => this.#store(job));
      this.#released.shift();
      this.waiting--;
    });
    if (this.#isLast || !this.#parts.mayHold()) this.release();
  }

  /** What is held has waited for long enough. */
  get isDue(): boolean {
    return this.#held.length >= HELD_MAX || (this.#held.length > 0 && !this.#parts.mayHold());
  }

  /** What is held is encoded now. */
  release(): void {
    const held = this.#held.splice(0);
    this.#released.push(...held);
    this.#encodeNext();
    for (const { released } of held) released.resolve();
  }

  /** Releases, and resolves when all of that is stored, or the pipeline was closed. */
  stored(): Promise<void> {
    this.release();
    return this.#work;
  }

  /** In its turn among other steps, until it works, and before slices that come later are stored. */
  do(step: () => Promise<void>): void {
    this.#notes = this.#notes.then(() => this.#untilDone(step));
  }

  /** Nothing follows. Resolves when everything is stored and the folder is gone, or the pipeline was closed. */
  finish(): Promise<void> {
    this.#isLast = true;
    this.release();
    this.#work = Promise.all([this.#work, this.#notes]).then(() =>
      this.#untilDone(async () => {
        await this.#parts.sink.done();
        await this.#parts.folder.remove();
      }),
    );
    return this.#work;
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error('the pipeline is closed'));
    for (const { released } of this.#held.splice(0)) released.resolve();
    await Promise.all([this.#work, this.#notes]);
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

  async #store(job: Job): Promise<void> {
    const { folder, sink } = this.#parts;
    const { slice, size } = job;
    const fragment = await this.#encoded(job);
    if (fragment) await sink.keep(segmentOf(slice, size, fragment));
    else await sink.lose(slice.startMs, slice.endMs, 'the frames could not be encoded');
    await folder.drop(slice);
  }

  /** It is the first of those that are released; the next ones go with it. */
  async #encoded(job: Job): Promise<Fragment | undefined> {
    if (!job.encoded) this.#encodeNext();
    return job.encoded;
  }

  #encodeNext(): void {
    for (const job of this.#released.slice(0, AHEAD_MAX)) job.encoded ??= this.#encodes(job);
  }

  /** A page at rest is encoded once: its next segment is the same picture at another time. */
  #encodes(job: Job): Promise<Fragment | undefined> {
    const still = this.#still.then(async (before): Promise<Still> => {
      const isStill = job.slice.times.length === 1;
      const [only] = isStill ? await this.#parts.folder.frames(job.slice).catch(() => []) : [];
      if (only && before?.jpeg?.equals(only.jpeg)) return before;
      const encoded = this.#tried(job);
      encoded.catch(() => {}); // Whoever stores it hears of it.
      return { of: job, jpeg: only?.jpeg, encoded };
    });
    this.#still = still;
    const encoded = still.then(async one => (await one.encoded) ?? (one.of === job ? undefined : this.#tried(job)));
    // What could not be encoded is tried again, and is nothing to repeat.
    const forget = (): void => {
      job.encoded = undefined;
      if (this.#still === still) this.#still = Promise.resolve(undefined);
    };
    encoded.catch(forget);
    return encoded;
  }

  async #tried({ slice, size }: Job): Promise<Fragment | undefined> {
    const { session, encodes, mayHold, log, clock, folder } = this.#parts;
    const { signal } = this.#closing;
    const { startMs, times } = slice;
    const footage = { path: folder.pathOf(slice), times, size };
    for (let attempt = 1; ; attempt++)
      try {
        return await encodes.encode({ session, footage, isUrgent: !mayHold(), signal });
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
