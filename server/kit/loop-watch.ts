// Finds the work that blocks the event loop. Code that handles bytes from outside marks where its work begins and ends,
// which costs two readings of the clock. The report of a long turn names the work that was done in it.
import { systemClock } from './clock.ts';
import type { Closeable } from './scope.ts';

/** Turns of the event loop that take longer are reported. */
export const LONG_TURN_MS = 100;
/** Interval of the timer that measures the delay of the loop. */
const TICK_INTERVAL_MS = 50;
/**
 * Interval of the timer while the process is unused. When the process is used, the timer returns to TICK_INTERVAL_MS at
 * once.
 */
const UNUSED_TICK_INTERVAL_MS = 1_000;
/** The maximum number of pieces of concurrent work that a report names. */
const REPORTED_WORK_MAX = 10;

/** Never contains data from a caller or a page. */
export interface Work {
  /** The name of the work, for example "messages of a browser", "exportContext" or "clock.expire". */
  readonly what: string;
  readonly sessionId?: string;
  readonly applicationId?: string;
}

export interface LongTurn {
  readonly ms: number;
  /** Processor time of the thread. In the remaining part of `ms`, the thread did not run. */
  readonly cpuMs: number;
  /**
   * The work that was marked with `enter` and `leave`. Absent if the turn was spent outside of such work. In that case,
   * the work in `underWay` may have caused the long turn.
   */
  readonly markedWork: Work | undefined;
  readonly underWay: readonly Work[];
}

export interface LoopListener {
  /** Whether the process has no session and serves no client. */
  isUnused(): boolean;
  /**
   * Called with the delay of the loop in milliseconds: twenty times a second while the process is used, otherwise once
   * a second.
   */
  onDelay(ms: number): void;
  onLongTurn(turn: LongTurn): void;
}

/** A process has one event loop, so there is one instance of this class. */
class LoopWatch {
  #runningWork: Work | undefined;
  #beganMs = 0;
  /** How much of the delay since the last tick has already been reported. */
  #reportedMs = 0;
  #reportedCpuMs = 0;
  readonly #workInProgress = new Set<Work>();
  #usesInProgress = 0;
  #lastUsedMs = 0;
  #listener: LoopListener | undefined;
  #timer: NodeJS.Timeout | undefined;
  #tickMs = TICK_INTERVAL_MS;
  #lastTickMs = 0;
  #cpuAtTickMs = 0;

  /**
   * Begins work that ends with `leave` in the same turn. Background work, and requests that only read the state of the
   * process, do not count as a use of the process.
   */
  enter(work: Work, isUse = true): void {
    this.#runningWork = work;
    this.#beganMs = systemClock.monotonicMs();
    if (isUse) this.#noteUse(this.#beganMs);
  }

  leave(): void {
    const ms = systemClock.monotonicMs() - this.#beganMs;
    if (ms > LONG_TURN_MS) this.#notify(ms, this.#runningWork);
    this.#runningWork = undefined;
  }

  /** Begins work over many turns; the returned function ends it. */
  begin(work: Work, isUse = true): () => void {
    this.#workInProgress.add(work);
    if (!isUse) return () => void this.#workInProgress.delete(work);
    this.#usesInProgress++;
    this.#noteUse(systemClock.monotonicMs());
    return () => {
      if (!this.#workInProgress.delete(work)) return;
      this.#usesInProgress--;
      this.#lastUsedMs = systemClock.monotonicMs();
    };
  }

  /** How long the process has been unused, in milliseconds. */
  get unusedMs(): number {
    return this.#usesInProgress > 0 ? 0 : systemClock.monotonicMs() - this.#lastUsedMs;
  }

  listen(listener: LoopListener): Closeable {
    this.#listener = listener;
    this.#startTicking(TICK_INTERVAL_MS);
    return {
      close: () => {
        clearInterval(this.#timer);
        this.#listener = undefined;
      },
    };
  }

  #startTicking(tickMs: number): void {
    clearInterval(this.#timer);
    this.#tickMs = tickMs;
    [this.#lastTickMs, this.#cpuAtTickMs] = [systemClock.monotonicMs(), threadCpuMs()];
    [this.#reportedMs, this.#reportedCpuMs] = [0, 0];
    this.#timer = setInterval(() => this.#tick(), tickMs).unref();
  }

  #tick(): void {
    const [nowMs, cpuMs] = [systemClock.monotonicMs(), threadCpuMs()];
    const delayMs = Math.max(0, nowMs - this.#lastTickMs - this.#tickMs);
    this.#listener?.onDelay(delayMs);
    const unreportedMs = delayMs - this.#reportedMs;
    if (unreportedMs > LONG_TURN_MS) this.#notify(unreportedMs, undefined);
    [this.#reportedMs, this.#reportedCpuMs] = [0, 0];
    [this.#lastTickMs, this.#cpuAtTickMs] = [nowMs, cpuMs];
    if (this.#tickMs === TICK_INTERVAL_MS && this.#listener?.isUnused()) this.#startTicking(UNUSED_TICK_INTERVAL_MS);
  }

  #noteUse(nowMs: number): void {
    this.#lastUsedMs = nowMs;
    if (this.#tickMs === TICK_INTERVAL_MS || !this.#listener) return;
    this.#tick(); // Reports the delay up to now.
    this.#startTicking(TICK_INTERVAL_MS);
  }

  #notify(ms: number, runningWork: Work | undefined): void {
    const cpuMs = threadCpuMs() - this.#cpuAtTickMs - this.#reportedCpuMs;
    this.#reportedMs += ms;
    this.#reportedCpuMs += cpuMs;
    const underWay = [...this.#workInProgress].slice(0, REPORTED_WORK_MAX);
    this.#listener?.onLongTurn({ ms, cpuMs, markedWork: runningWork, underWay });
  }
}

export const loopWatch = new LoopWatch();

function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
