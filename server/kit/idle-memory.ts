// Returns memory to the system while nobody uses the server. A start and each burst of work leave tens of MiB of garbage
// and of compiled code that is not needed again soon. V8 keeps them for as long as nothing else needs them.
import { getHeapStatistics } from 'node:v8';

const MIB = 1024 * 1024;
/** A collection blocks the event loop for up to 80 ms, so the heap must have grown by this much since the last one. */
const GROWTH_BYTES_MIN = 8 * MIB;

export interface IdleMemoryOptions {
  readonly isIdle: () => boolean;
  readonly heapBytes?: () => number;
  /** Absent without `--expose-gc`; `run` then does nothing. */
  readonly collect?: (() => void) | undefined;
}

export class IdleMemory {
  readonly #isIdle: () => boolean;
  readonly #heapBytes: () => number;
  readonly #collect: (() => void) | undefined;
  /** Undefined until the first call, which comes with the start of the server. Its first requests go first. */
  #bytesAfterCollection: number | undefined;

  constructor({ isIdle, heapBytes = totalHeapBytes, collect = fullCollection() }: IdleMemoryOptions) {
    this.#isIdle = isIdle;
    this.#heapBytes = heapBytes;
    this.#collect = collect;
  }

  release(): { readonly releasedMib: number } {
    const bytes = this.#heapBytes();
    const keptBytes = this.#bytesAfterCollection;
    this.#bytesAfterCollection ??= 0;
    if (!this.#collect || keptBytes === undefined || !this.#isIdle() || bytes - keptBytes < GROWTH_BYTES_MIN)
      return { releasedMib: 0 };
    this.#collect();
    this.#bytesAfterCollection = this.#heapBytes();
    return { releasedMib: Math.max(0, Math.round((bytes - this.#bytesAfterCollection) / MIB)) };
  }
}

const totalHeapBytes = (): number => getHeapStatistics().total_heap_size;

/** The kind of collection that V8 runs before it gives up for lack of memory. Only this kind also drops compiled code. */
function fullCollection(): (() => void) | undefined {
  const { gc } = globalThis;
  return gc && (() => gc({ type: 'major', execution: 'sync', flavor: 'last-resort' }));
}
