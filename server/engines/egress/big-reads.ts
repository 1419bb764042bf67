// Limits how many connections of one session have a large read buffer. Large buffers make large bodies fast, but a
// hostile page can open many connections.

export class BigReads {
  #remainingCount: number;

  constructor(count: number) {
    this.#remainingCount = count;
  }

  /** Returns whether a large buffer is allowed. If so, the caller must call `release` later. */
  acquire(): boolean {
    if (this.#remainingCount === 0) return false;
    this.#remainingCount -= 1;
    return true;
  }

  release(): void {
    this.#remainingCount += 1;
  }
}
