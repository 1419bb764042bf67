// Segments that are waiting for ffmpeg. Starting ffmpeg costs as much as encoding half a segment (measured), so waiting
// segments of one session that have the same size share a process. Each is encoded as if it were alone.
import type { Clock } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import type { Log } from '../../kit/log.ts';
import type { Closeable } from '../../kit/scope.ts';
import { EncoderMissing, type Ffmpeg, type Footage } from './ffmpeg.ts';
import type { Fragment } from './fmp4.ts';

/**
 * How long segments are gathered for one process. Segments that are released together arrive shortly after one another.
 */
const GATHER_DELAY_MS = 50;
/** Maximum number of segments in one process. It bounds how long the next segment waits. */
const SEGMENTS_PER_PROCESS_MAX = 8;

export interface EncodeRequest {
  readonly session: string;
  readonly footage: Footage;
  /**
   * Whether the segment must not wait, for example because the recording is watched. Such a segment is encoded before
   * segments that may wait.
   */
  readonly isUrgent: boolean;
  readonly signal: AbortSignal;
}

interface QueuedSegment extends EncodeRequest {
  readonly resolve: (fragment: Fragment) => void;
  readonly reject: (error: unknown) => void;
}

export class EncodeQueue {
  readonly #ffmpeg: Ffmpeg;
  readonly #clock: Clock;
  readonly #log: Log;
  #queue: QueuedSegment[] = [];

  constructor(ffmpeg: Ffmpeg, clock: Clock, log: Log) {
    this.#ffmpeg = ffmpeg;
    this.#clock = clock;
    this.#log = log;
  }

  encode(request: EncodeRequest): Promise<Fragment> {
    const { promise, resolve, reject } = Promise.withResolvers<Fragment>();
    this.#queue.push({ ...request, resolve, reject });
    // There is one turn for each segment. A turn encodes the next batch, and does nothing if the queue is empty.
    void this.#runTurn();
    return promise;
  }

  async #runTurn(): Promise<void> {
    await this.#clock.sleep(GATHER_DELAY_MS);
    await this.#ffmpeg.inTurn(() => this.#encodeNextBatch());
  }

  async #encodeNextBatch(): Promise<void> {
    const batch = this.#takeBatch();
    if (batch.length === 0) return;
    const abortWatch = allAbortedSignal(batch.map(({ signal }) => signal));
    try {
      await this.#encode(batch, abortWatch.signal);
    } finally {
      void abortWatch.close();
    }
  }

  #takeBatch(): readonly QueuedSegment[] {
    for (const { signal, reject } of this.#queue) if (signal.aborted) reject(signal.reason);
    this.#queue = this.#queue.filter(({ signal }) => !signal.aborted);
    const firstSegment = this.#queue.find(({ isUrgent }) => isUrgent) ?? this.#queue[0];
    if (!firstSegment) return [];
    const similarSegments = this.#queue.filter(one => one !== firstSegment && isSimilar(one, firstSegment));
    const batchSegments = [firstSegment, ...similarSegments.slice(0, SEGMENTS_PER_PROCESS_MAX - 1)];
    this.#queue = this.#queue.filter(one => !batchSegments.includes(one));
    return batchSegments;
  }

  async #encode(batch: readonly QueuedSegment[], signal: AbortSignal): Promise<void> {
    try {
      const footages = batch.map(({ footage }) => footage);
      const fragments = await this.#ffmpeg.encode(footages, signal);
      for (const [index, fragment] of fragments.entries()) batch[index]?.resolve(fragment);
    } catch (error) {
      if (batch.length > 1 && !signal.aborted && !(error instanceof EncoderMissing)) {
        // A segment that cannot be encoded must not affect the others.
        this.#log.warn('recording.not_encoded_together', { segments: batch.length, reason: reason(error) });
        for (const one of batch) await this.#encode([one], signal);
      } else for (const { reject } of batch) reject(error);
    }
  }
}

const isSimilar = (one: EncodeRequest, other: EncodeRequest): boolean =>
  one.session === other.session &&
  one.footage.size.width === other.footage.size.width &&
  one.footage.size.height === other.footage.size.height;

/**
 * Returns a signal that aborts when all of the given signals have aborted. A process therefore keeps running as long as
 * the result for any of its segments is needed.
 */
function allAbortedSignal(signals: readonly AbortSignal[]): Closeable & { readonly signal: AbortSignal } {
  const controller = new AbortController();
  const onAbort = (): void => {
    if (signals.every(({ aborted }) => aborted)) controller.abort(signals[0]?.reason);
  };
  for (const signal of signals) signal.addEventListener('abort', onAbort);
  onAbort();
  return {
    signal: controller.signal,
    close: () => {
      for (const signal of signals) signal.removeEventListener('abort', onAbort);
    },
  };
}
