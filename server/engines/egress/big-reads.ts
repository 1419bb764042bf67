// How many connections of one session read in large pieces at once: large pieces are what makes a large body fast, and
// memory for all connections that a hostile page can open would have no bound worth the name.

export class BigReads {
  #left: number;

  constructor(count: number) {
    this.#left = count;
  }

  /** Says whether there is room; whoever got it gives it back. */
  take(): boolean {
    if (this.#left === 0) return false;
    this.#left -= 1;
    return true;
  }

  giveBack(): void {
    this.#left += 1;
  }
}
