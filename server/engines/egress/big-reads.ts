// Limits how many connections of one session have a large read buffer. Large buffers make large bodies fast, but a hostile
// page can open many connections.

export class BigReads {
  #remaining: number;

  constructor(count: number) {
    this.#remaining = count;
  }

  /** Returns whether a large buffer is allowed. If so, the caller must call `release` later. */
  acquire(): boolean {
    if (this.#remaining === 0) return false;
    this.#remaining -= 1;
    return true;
  }

  release(): void {
    this.#remaining += 1;
  }
}
