// Finds the work that blocks the event loop. Code that handles bytes from outside marks where its work begins and ends,
// which costs two readings of the clock. The report of a long turn names the work that was done in it.
import { systemClock } from './clock.ts';
import type { Closeable } from './scope.ts';

/** Turns that take longer are reported. */
export const LONG_TURN_MS = 100;
/** Interval of the timer that measures the delay of the loop. */
const TICK_MS = 50;
/** The maximum number of pieces of concurrent work that a report names. */
const UNDER_WAY_MAX = 10;

/** Never contains data from a caller or a page. */
export interface Work {
  /** The name of the work, for example "messages of a browser", "exportContext" or "clock.expire". */
  readonly what: string;
  readonly sessionId?: string;
  readonly applicationId?: string;
}

export interface LongTurn {
  readonly ms: number;
  /** Processor time of the thread. For the rest of `ms`, the thread did not run. */
  readonly cpuMs: number;
  /**
   * The work that was marked with `enter` and `leave`. Absent if the turn was spent outside of such work. Work in
   * `underWay` may then have caused it.
   */
  readonly markedWork: Work | undefined;
  readonly underWay: readonly Work[];
}

export interface LoopListener {
  /** Reports the delay of the loop in milliseconds, many times a second. */
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
  readonly #underWay = new Set<Work>();
  #listener: LoopListener | undefined;
  #cpuSinceTick: () => number = () => 0;

  /** Begins work that ends with `leave` in the same turn. */
  enter(work: Work): void {
    this.#runningWork = work;
    this.#beganMs = systemClock.monotonicMs();
  }

  leave(): void {
    const ms = systemClock.monotonicMs() - this.#beganMs;
    if (ms > LONG_TURN_MS) this.#notify(ms, this.#runningWork);
    this.#runningWork = undefined;
  }

  /** Begins work over many turns; the returned function ends it. */
  begin(work: Work): () => void {
    this.#underWay.add(work);
    return () => void this.#underWay.delete(work);
  }

  listen(listener: LoopListener): Closeable {
    this.#listener = listener;
    let [lastTickMs, cpuMs] = [systemClock.monotonicMs(), cpuOfThreadMs()];
    const timer = setInterval(() => {
      const [nowMs, nowCpuMs] = [systemClock.monotonicMs(), cpuOfThreadMs()];
      const delayMs = Math.max(0, nowMs - lastTickMs - TICK_MS);
      listener.onDelay(delayMs);
      const unreportedMs = delayMs - this.#reportedMs;
      if (unreportedMs > LONG_TURN_MS) this.#notify(unreportedMs, undefined);
      this.#reportedMs = 0;
      this.#reportedCpuMs = 0;
      [lastTickMs, cpuMs] = [nowMs, nowCpuMs];
    }, TICK_MS).unref();
    this.#cpuSinceTick = () => cpuOfThreadMs() - cpuMs;
    return {
      close: () => {
        clearInterval(timer);
        this.#listener = undefined;
      },
    };
  }

  #notify(ms: number, runningWork: Work | undefined): void {
    const cpuMs = this.#cpuSinceTick() - this.#reportedCpuMs;
    this.#reportedMs += ms;
    this.#reportedCpuMs += cpuMs;
    const underWay = [...this.#underWay].slice(0, UNDER_WAY_MAX);
    this.#listener?.onLongTurn({ ms, cpuMs, markedWork: runningWork, underWay });
  }
}

export const loopWatch = new LoopWatch();

function cpuOfThreadMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
