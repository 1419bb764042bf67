// Limits how many connections of one session have a large read buffer. Large buffers make large bodies fast, but a hostile
// page can open many connections.

export class BigReads {
  #left: number;

  constructor(count: number) {
    this.#left = count;
  }

  /** Returns whether a large buffer is allowed. If so, the caller must call `release` later. */
  acquire(): boolean {
    if (this.#left === 0) return false;
    this.#left -= 1;
    return true;
  }

  release(): void {
    this.#left += 1;
  }
}
