// Decides when recordings of ended sessions are encoded: while a processor is free, or on request. Encoding would take
// processor time from running sessions, and most recordings are never viewed. Until a recording is encoded, its frames
// stay in the data folder.
import type { Clock } from '../../kit/clock.ts';
import type { Closeable } from '../../kit/scope.ts';

const TICK_INTERVAL_MS = 500;
/** A recording waits at most this long for a free processor. */
export const ENDED_WAIT_MAX_MS = 300_000;
/** Maximum number of waiting pages. Each takes a few kilobytes of memory. */
const WAITING_PAGES_MAX = 500;

export interface EndedRecordingsOptions {
  readonly clock: Clock;
  /** Whether a processor is free. Called every half second while recordings wait. */
  readonly isQuiet: () => boolean;
  /** Returns false if too many bytes are waiting on the disk. */
  readonly mayWait: (session: string) => boolean;
}

interface WaitingPage {
  readonly session: string;
  readonly sinceMs: number;
  readonly resolve: () => void;
}

export class EndedRecordings implements Closeable {
  readonly #options: EndedRecordingsOptions;
  readonly #closeController = new AbortController();
  #waitingPages: WaitingPage[] = [];
  #tickLoop: Promise<void> | undefined;

  constructor(options: EndedRecordingsOptions) {
    this.#options = options;
  }

  /** The number of waiting pages of ended sessions. */
  get size(): number {
    return this.#waitingPages.length;
  }

  /** Resolves when a page of this session, which has ended, should be encoded. */
  whenDue(session: string): Promise<void> {
    const { clock, isQuiet, mayWait } = this.#options;
    if (this.#closeController.signal.aborted || !mayWait(session) || isQuiet()) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waitingPages.push({ session, sinceMs: clock.monotonicMs(), resolve });
    if (this.#waitingPages.length > WAITING_PAGES_MAX) this.#release(this.#waitingPages.slice(0, 1));
    this.#tickLoop ??= this.#runTicks();
    return promise;
  }

  /** Lets the waiting pages of this session be encoded now. Called when a recording of the session is requested. */
  releaseSession(session: string): void {
    this.#release(this.#waitingPages.filter(one => one.session === session));
  }

  releaseAll(): void {
    this.#release(this.#waitingPages);
  }

  async close(): Promise<void> {
    this.#closeController.abort(new Error('the recorder is closed'));
    this.releaseAll();
    await this.#tickLoop;
  }

  async #runTicks(): Promise<void> {
    const { clock, isQuiet, mayWait } = this.#options;
    const { signal } = this.#closeController;
    while (!signal.aborted && this.#waitingPages.length > 0) {
      await clock.sleep(TICK_INTERVAL_MS, signal).catch(() => {});
      const nowMs = clock.monotonicMs();
      // While a processor is free, only one session is released at a time, so that the next check takes the load of
      // encoding its recording into account.
      const sessionToRelease = isQuiet() ? this.#waitingPages[0]?.session : undefined;
      this.#release(
        this.#waitingPages.filter(
          ({ session, sinceMs }) =>
            session === sessionToRelease || nowMs - sinceMs >= ENDED_WAIT_MAX_MS || !mayWait(session),
        ),
      );
    }
    this.#tickLoop = undefined;
  }

  #release(pagesToRelease: readonly WaitingPage[]): void {
    this.#waitingPages = this.#waitingPages.filter(one => !pagesToRelease.includes(one));
    for (const { resolve } of pagesToRelease) resolve();
  }
}
