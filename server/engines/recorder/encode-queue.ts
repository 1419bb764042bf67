// Slices that wait for ffmpeg. To start it costs as much as to encode half a slice (measured), so those of one session that
// wait at the same time share a process, if they are of one size; each is encoded as if it were alone.
import type { Clock } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import type { Log } from '../../kit/log.ts';
import type { Closeable } from '../../kit/scope.ts';
import { EncoderMissing, type Ffmpeg, type Footage } from './ffmpeg.ts';
import type { Fragment } from './fmp4.ts';

/** Slices that are released at one moment are told of one after the other. */
const GATHER_MS = 50;
/** Who waits for a turn waits no longer than for these. */
const TOGETHER_MAX = 8;

export interface EncodeWish {
  readonly session: string;
  readonly footage: Footage;
  /** Somebody waits for it: it goes before others. */
  readonly isUrgent: boolean;
  readonly signal: AbortSignal;
}

interface Waiting extends EncodeWish {
  readonly resolve: (fragment: Fragment) => void;
  readonly reject: (error: unknown) => void;
}

export class EncodeQueue {
  readonly #ffmpeg: Ffmpeg;
  readonly #clock: Clock;
  readonly #log: Log;
  #waiting: Waiting[] = [];

  constructor(ffmpeg: Ffmpeg, clock: Clock, log: Log) {
    this.#ffmpeg = ffmpeg;
    this.#clock = clock;
    this.#log = log;
  }

  encode(wish: EncodeWish): Promise<Fragment> {
    const { promise, resolve, reject } = Promise.withResolvers<Fragment>();
    this.#waiting.push({ ...wish, resolve, reject });
    // A turn for each: where others were taken along, theirs is over at once.
    void this.#turn();
    return promise;
  }

  async #turn(): Promise<void> {
    await this.#clock.sleep(GATHER_MS);
    await this.#ffmpeg.inTurn(() => this.#next());
  }

  async #next(): Promise<void> {
    const together = this.#take();
    if (together.length === 0) return;
    const closing = whenAll(together.map(({ signal }) => signal));
    try {
      await this.#encode(together, closing.signal);
    } finally {
      void closing.close();
    }
  }

  #take(): readonly Waiting[] {
    for (const { signal, reject } of this.#waiting) if (signal.aborted) reject(signal.reason);
    this.#waiting = this.#waiting.filter(({ signal }) => !signal.aborted);
    const first = this.#waiting.find(({ isUrgent }) => isUrgent) ?? this.#waiting[0];
    if (!first) return [];
    const others = this.#waiting.filter(one => one !== first && isAlike(one, first));
    const together = [first, ...others.slice(0, TOGETHER_MAX - 1)];
    this.#waiting = this.#waiting.filter(one => !together.includes(one));
    return together;
  }

  async #encode(together: readonly Waiting[], signal: AbortSignal): Promise<void> {
    try {
      const all = together.map(({ footage }) => footage);
      const fragments = await this.#ffmpeg.encode(all, signal);
      for (const [index, fragment] of fragments.entries()) together[index]?.resolve(fragment);
    } catch (error) {
      if (together.length > 1 && !signal.aborted && !(error instanceof EncoderMissing)) {
        // One that cannot be encoded must not cost the others.
        this.#log.warn('recording.not_encoded_together', { slices: together.length, reason: reason(error) });
        for (const one of together) await this.#encode([one], signal);
      } else for (const { reject } of together) reject(error);
    }
  }
}

const isAlike = (one: EncodeWish, other: EncodeWish): boolean =>
  one.session === other.session &&
  one.footage.size.width === other.footage.size.width &&
  one.footage.size.height === other.footage.size.height;

/** Aborts when all of them have: as long as one of them is wanted the work goes on. */
function whenAll(signals: readonly AbortSignal[]): Closeable & { readonly signal: AbortSignal } {
  const control = new AbortController();
  const heard = (): void => {
    if (signals.every(({ aborted }) => aborted)) control.abort(signals[0]?.reason);
  };
  for (const signal of signals) signal.addEventListener('abort', heard);
  heard();
  return {
    signal: control.signal,
    close: () => {
      for (const signal of signals) signal.removeEventListener('abort', heard);
    },
  };
}
