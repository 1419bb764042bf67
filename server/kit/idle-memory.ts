// Returns memory to the system while the server is idle. A start and each burst of work leave tens of MiB of garbage
// and of compiled code that is not needed again soon. V8 keeps them for as long as nothing else needs the memory.
import { performance } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';

const MIB = 1024 * 1024;
/** A collection blocks the event loop for up to 80 ms, so the heap must have grown by this much since the last one. */
const GROWTH_BYTES_MIN = 8 * MIB;
/**
 * The maximum share of the time for which the event loop may have been busy since the previous call. At rest the share
 * is 0.006.
 */
const LOOP_SHARE_MAX = 0.02;

export interface IdleMemoryOptions {
  readonly hasSessions: () => boolean;
  /** The share of the time (0 to 1) for which the event loop was busy since the previous call. */
  readonly loopShare?: () => number;
  readonly heapBytes?: () => number;
  /** Absent without `--expose-gc`, in which case `release` does nothing. */
  readonly collect?: (() => void) | undefined;
}

export class IdleMemory {
  readonly #options: Required<IdleMemoryOptions>;
  #bytesAfterCollection = 0;

  constructor({
    hasSessions,
    loopShare = loopShareMeter(),
    heapBytes = totalHeapBytes,
    collect = fullCollector(),
  }: IdleMemoryOptions) {
    this.#options = { hasSessions, loopShare, heapBytes, collect };
  }

  release(): { readonly releasedMib: number } {
    const { hasSessions, loopShare, heapBytes, collect } = this.#options;
    const isLoopIdle = loopShare() <= LOOP_SHARE_MAX;
    const bytesBefore = heapBytes();
    if (!collect || !isLoopIdle || hasSessions() || bytesBefore - this.#bytesAfterCollection < GROWTH_BYTES_MIN)
      return { releasedMib: 0 };
    collect();
    this.#bytesAfterCollection = heapBytes();
    return { releasedMib: Math.max(0, Math.round((bytesBefore - this.#bytesAfterCollection) / MIB)) };
  }
}

const totalHeapBytes = (): number => getHeapStatistics().total_heap_size;

function loopShareMeter(): () => number {
  let previousUtilization: ReturnType<typeof performance.eventLoopUtilization> | undefined;
  return () => {
    const currentUtilization = performance.eventLoopUtilization();
    const { utilization } = previousUtilization
      ? performance.eventLoopUtilization(currentUtilization, previousUtilization)
      : currentUtilization;
    previousUtilization = currentUtilization;
    return utilization;
  };
}

/**
 * The kind of collection that V8 runs as a last resort before it runs out of memory. Only this kind also drops compiled
 * code.
 */
function fullCollector(): (() => void) | undefined {
  const { gc } = globalThis;
  return gc && (() => gc({ type: 'major', execution: 'sync', flavor: 'last-resort' }));
}
