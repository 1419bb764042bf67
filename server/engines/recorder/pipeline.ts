// Encodes complete raw segments and stores them. The segments of each page are stored in order. For all pages together,
// the number of ffmpeg processes is limited. While nobody is watching, segments are held back and encoded together,
// because starting ffmpeg is expensive. A raw segment is deleted only when its encoded segment is durable. Failed steps
// are repeated until they succeed.
import { reason } from '../../kit/fault.ts';
import type { Runtime } from '../../kit/runtime.ts';
import type { Closeable } from '../../kit/scope.ts';
import type { EncodeQueue } from './encode-queue.ts';
import { EncoderMissing } from './ffmpeg.ts';
import { type Fragment, segmentBytes } from './fmp4.ts';
import type { Size } from './matroska.ts';
import type { CompleteRawSegment, PageFolder } from './page-folder.ts';

const RETRY_MIN_MS = 500;
const RETRY_MAX_MS = 10_000;
/** Maximum number of attempts to encode a segment. After the last attempt, the segment is reported as missing. */
const ENCODE_ATTEMPTS_MAX = 4;
/** Maximum number of segments that are held back. */
const HELD_SEGMENTS_MAX = 5;
/** Maximum number of segments that are encoded before earlier ones are stored. Further segments wait on the disk. */
const ENCODED_AHEAD_MAX = 8;

export interface Segment {
  readonly sequence: number;
  readonly startMs: number;
  readonly durationsMs: readonly number[];
  readonly sizes: readonly number[];
  readonly size: Size;
  readonly init: Buffer;
  readonly bytes: Buffer;
  /** Offset in `bytes` at which the coded frames begin. */
  readonly payloadAt: number;
}

export interface PipelineSink {
  /**
   * Stores a segment. Resolves when the segment is durable. Is called again with the same segment after an error or a
   * restart.
   */
  keep(segment: Segment): Promise<void>;
  /** Reports a period that cannot be shown. */
  reportGap(fromMs: number, toMs: number, why: string): Promise<void>;
  /** Called when the whole page is stored. */
  done(): Promise<void>;
}

export interface PipelineOptions extends Pick<Runtime, 'clock' | 'log'> {
  readonly session: string;
  readonly folder: PageFolder;
  readonly encodeQueue: EncodeQueue;
  /**
   * Returns true if nobody is watching, and there is room on the disk and in the backlog. Segments may then be held
   * back and encoded together; otherwise they are encoded without delay.
   */
  readonly mayHoldBack: () => boolean;
  readonly sink: PipelineSink;
}

interface Job {
  readonly segment: CompleteRawSegment;
  readonly size: Size;
  readonly releaseGate: PromiseWithResolvers<void>;
  /** Resolves to undefined if the segment cannot be encoded. */
  fragmentPromise: Promise<Fragment | undefined> | undefined;
}

/** The segment whose encoding began last. `jpeg` is its picture if it has only one frame. */
interface LastSegment {
  readonly sourceJob: Job;
  readonly jpeg: Buffer | undefined;
  readonly fragmentPromise: Promise<Fragment | undefined>;
}

export class Pipeline implements Closeable {
  readonly #options: PipelineOptions;
  readonly #closeController = new AbortController();
  #storeSteps: Promise<void> = Promise.resolve();
  #orderedSteps: Promise<void> = Promise.resolve();
  #lastSegment: Promise<LastSegment | undefined> = Promise.resolve(undefined);
  #heldJobs: Job[] = [];
  readonly #releasedJobs: Job[] = [];
  /** The number of segments that are not stored yet. */
  unstoredCount = 0;

  constructor(options: PipelineOptions) {
    this.#options = options;
  }

  add(segment: CompleteRawSegment, size: Size): void {
    this.unstoredCount++;
    const job: Job = { segment, size, releaseGate: Promise.withResolvers(), fragmentPromise: undefined };
    this.#heldJobs.push(job);
    const earlierSteps = this.#orderedSteps;
    this.#storeSteps = this.#storeSteps.then(async () => {
      await Promise.all([job.releaseGate.promise, earlierSteps]);
      await this.#repeatUntilDone(() => this.#store(job));
      this.#releasedJobs.shift();
      this.unstoredCount--;
    });
    if (!this.#options.mayHoldBack()) this.release();
  }

  /** Whether segments that are held back must be encoded now. */
  get isDue(): boolean {
    return this.#heldJobs.length >= HELD_SEGMENTS_MAX || (this.#heldJobs.length > 0 && !this.#options.mayHoldBack());
  }

  /** Releases the segments that were held back. */
  release(): void {
    const jobsToRelease = this.#heldJobs.splice(0);
    this.#releasedJobs.push(...jobsToRelease);
    this.#encodeNext();
    for (const { releaseGate: gate } of jobsToRelease) gate.resolve();
  }

  /** Releases the segments that were held back. Resolves when they are stored or the pipeline is closed. */
  releaseAndStore(): Promise<void> {
    this.release();
    return this.#storeSteps;
  }

  /**
   * Runs a step after the earlier steps, and repeats it until it succeeds. Segments that are added later are stored
   * only after the step has succeeded.
   */
  runInOrder(step: () => Promise<void>): void {
    this.#orderedSteps = this.#orderedSteps.then(() => this.#repeatUntilDone(step));
  }

  /**
   * Call after the last segment. The remaining segments are encoded when `whenDue` resolves. The returned promise
   * resolves when everything is stored and the folder is removed, or when the pipeline is closed.
   */
  finish(whenDue: Promise<void>): Promise<void> {
    const whenReleased = whenDue.then(() => {
      if (!this.#closeController.signal.aborted) this.release();
    });
    const whenClosed = new Promise<void>(resolve => {
      this.#closeController.signal.addEventListener('abort', () => resolve(), { once: true });
    });
    this.#storeSteps = Promise.all([
      Promise.race([whenReleased, whenClosed]),
      this.#storeSteps,
      this.#orderedSteps,
    ]).then(() =>
      this.#repeatUntilDone(async () => {
        await this.#options.sink.done();
        await this.#options.folder.remove();
      }),
    );
    return this.#storeSteps;
  }

  async close(): Promise<void> {
    this.#closeController.abort(new Error('the pipeline is closed'));
    for (const { releaseGate: gate } of this.#heldJobs.splice(0)) gate.resolve();
    await Promise.all([this.#storeSteps, this.#orderedSteps]);
  }

  async #repeatUntilDone(step: () => Promise<void>): Promise<void> {
    const { signal } = this.#closeController;
    for (let waitMs = RETRY_MIN_MS; !signal.aborted; waitMs = Math.min(waitMs * 2, RETRY_MAX_MS))
      try {
        return await step();
      } catch (error) {
        if (signal.aborted) return;
        this.#options.log.warn('recording.not_stored', { folder: this.#options.folder.path, reason: reason(error) });
        await this.#options.clock.sleep(waitMs, signal).catch(() => {});
      }
  }

  async #store(job: Job): Promise<void> {
    const { folder, sink } = this.#options;
    const { segment, size } = job;
    const fragment = await this.#ensureEncoded(job);
    if (fragment) await sink.keep(segmentOf(segment, size, fragment));
    else await sink.reportGap(segment.startMs, segment.endMs, 'the frames could not be encoded');
    await folder.drop(segment);
  }

  /** Returns the encoded segment. If its encoding has not begun, begins it together with the next released segments. */
  async #ensureEncoded(job: Job): Promise<Fragment | undefined> {
    if (!job.fragmentPromise) this.#encodeNext();
    return job.fragmentPromise;
  }

  #encodeNext(): void {
    for (const job of this.#releasedJobs.slice(0, ENCODED_AHEAD_MAX)) job.fragmentPromise ??= this.#startEncoding(job);
  }

  /**
   * Encodes a segment. While a page does not change, all of its segments contain the same single picture, which is
   * encoded only once.
   */
  #startEncoding(job: Job): Promise<Fragment | undefined> {
    const segmentPromise = this.#lastSegment.then(async (previousSegment): Promise<LastSegment> => {
      const isStill = job.segment.times.length === 1;
      const [onlyFrame] = isStill ? await this.#options.folder.frames(job.segment).catch(() => []) : [];
      if (onlyFrame && previousSegment?.jpeg?.equals(onlyFrame.jpeg)) return previousSegment;
      const encodingAttempt = this.#encodeWithRetries(job);
      encodingAttempt.catch(() => {}); // The step that stores the segment handles the error.
      return { sourceJob: job, jpeg: onlyFrame?.jpeg, fragmentPromise: encodingAttempt };
    });
    this.#lastSegment = segmentPromise;
    const encodingPromise = segmentPromise.then(
      async one => (await one.fragmentPromise) ?? (one.sourceJob === job ? undefined : this.#encodeWithRetries(job)),
    );
    // If encoding fails, it is tried again, so the failed result must not be reused.
    const forget = (): void => {
      job.fragmentPromise = undefined;
      if (this.#lastSegment === segmentPromise) this.#lastSegment = Promise.resolve(undefined);
    };
    encodingPromise.catch(forget);
    return encodingPromise;
  }

  async #encodeWithRetries({ segment, size }: Job): Promise<Fragment | undefined> {
    const { session, encodeQueue, mayHoldBack, log, clock, folder } = this.#options;
    const { signal } = this.#closeController;
    const { startMs, times } = segment;
    const footage = { path: folder.pathOf(segment), times, size };
    for (let attempt = 1; ; attempt++)
      try {
        return await encodeQueue.encode({ session, footage, isUrgent: !mayHoldBack(), signal });
      } catch (error) {
        if (signal.aborted || error instanceof EncoderMissing) throw error;
        log.warn('recording.not_encoded', { folder: folder.path, startMs, attempt, reason: reason(error) });
        if (attempt === ENCODE_ATTEMPTS_MAX) return undefined;
        await clock.sleep(RETRY_MIN_MS, signal).catch(() => {});
      }
  }
}

/** The first frame is shown from the beginning of the segment, the last one until its end. */
function segmentOf(
  { sequence, startMs, endMs, times }: CompleteRawSegment,
  size: Size,
  { init, sizes, payload }: Fragment,
): Segment {
  const startTimes = times.map((atMs, index) => (index === 0 ? startMs : atMs));
  const durationsMs = startTimes.map((at, index) => (startTimes[index + 1] ?? endMs) - at);
  const { bytes, payloadAt } = segmentBytes({ sequence, startMs, durationsMs, sizes, payload });
  return { sequence, startMs, durationsMs, sizes, size: evenSize(size), init, bytes, payloadAt };
}

const evenSize = ({ width, height }: Size): Size => ({ width: width + (width % 2), height: height + (height % 2) });
