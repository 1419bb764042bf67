// What the event loop does, and for whom: whoever takes bytes from outside says so before it looks at them, and when it is
// done. Two readings of the clock are all that this costs. A turn that kept all others waiting is told with its work.
import { systemClock } from './clock.ts';
import type { Closeable } from './scope.ts';

/** A turn above this is told. */
export const LONG_TURN_MS = 100;
/** A timer of so many milliseconds shows how late others get their turn. */
const TICK_MS = 50;
/** Of much that is under way at once only so much is told. */
const UNDER_WAY_MAX = 10;

/** Never with anything of what a caller or a page said. */
export interface Work {
  /** "messages of a browser", "exportContext", "clock.expire". */
  readonly what: string;
  readonly sessionId?: string;
  readonly applicationId?: string;
}

export interface LongTurn {
  readonly ms: number;
  /** Of these the thread itself computed so much; the rest of the time the machine gave to others. */
  readonly cpuMs: number;
  /** Absent: none of the entrances; what was under way then may have been it. */
  readonly ran: Work | undefined;
  readonly underWay: readonly Work[];
}

export interface LoopListener {
  /** How late a timer came, in milliseconds; many times a second. */
  delayed(ms: number): void;
  longTurn(turn: LongTurn): void;
}

/** A process has one event loop, so there is one of these. */
class LoopWatch {
  #ran: Work | undefined;
  #beganMs = 0;
  /** Of the time since the last tick so much was told already. */
  #toldMs = 0;
  #toldCpuMs = 0;
  readonly #underWay = new Set<Work>();
  #listener: LoopListener | undefined;
  #cpuSinceTick: () => number = () => 0;

  /** The work begins, and goes on until `leave` in this same turn. */
  enter(work: Work): void {
    this.#ran = work;
    this.#beganMs = systemClock.monotonicMs();
  }

  leave(): void {
    const ms = systemClock.monotonicMs() - this.#beganMs;
    if (ms > LONG_TURN_MS) this.#tell(ms, this.#ran);
    this.#ran = undefined;
  }

  /** The work goes on over many turns; the function that is given ends it. */
  begin(work: Work): () => void {
    this.#underWay.add(work);
    return () => void this.#underWay.delete(work);
  }

  listen(listener: LoopListener): Closeable {
    this.#listener = listener;
    let [seenMs, cpuMs] = [systemClock.monotonicMs(), cpuOfThreadMs()];
    const timer = setInterval(() => {
      const [nowMs, nowCpuMs] = [systemClock.monotonicMs(), cpuOfThreadMs()];
      const lateMs = Math.max(0, nowMs - seenMs - TICK_MS);
      listener.delayed(lateMs);
      const untoldMs = lateMs - this.#toldMs;
      if (untoldMs > LONG_TURN_MS) this.#tell(untoldMs, undefined);
      this.#toldMs = 0;
      this.#toldCpuMs = 0;
      [seenMs, cpuMs] = [nowMs, nowCpuMs];
    }, TICK_MS).unref();
    this.#cpuSinceTick = () => cpuOfThreadMs() - cpuMs;
    return {
      close: () => {
        clearInterval(timer);
        this.#listener = undefined;
      },
    };
  }

  #tell(ms: number, ran: Work | undefined): void {
    const cpuMs = this.#cpuSinceTick() - this.#toldCpuMs;
    this.#toldMs += ms;
    this.#toldCpuMs += cpuMs;
    const underWay = [...this.#underWay].slice(0, UNDER_WAY_MAX);
    this.#listener?.longTurn({ ms, cpuMs, ran, underWay });
  }
}

export const loopWatch = new LoopWatch();

function cpuOfThreadMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
