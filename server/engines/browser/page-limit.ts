// Counts the pages of a browser, and decides which new pages are refused.

/** The maximum number of pages that a browser has at once. */
export const OPEN_PAGES_MAX = 200;

export class PageLimit {
  readonly #openIds = new Set<string>();
  readonly #refusedIds = new Set<string>();
  #isActive = false;
  #pendingOwnPages = 0;
  #unreportedCount = 0;
  #listener: (() => void) | undefined;

  /** From now on, pages beyond the limit are refused. Pages that existed before are kept. */
  activate(): void {
    this.#isActive = true;
  }

  /** Calls the listener for each refused page, including those that were refused before. */
  onRefused(listener: () => void): void {
    this.#listener = listener;
    for (; this.#unreportedCount > 0; this.#unreportedCount--) listener();
  }

  /** Whether the page that was just created may stay open. If not, it must be closed. */
  admits(targetId: string): boolean {
    if (!this.#isActive || !this.isReached || this.#pendingOwnPages > 0) {
      this.#openIds.add(targetId);
      return true;
    }
    this.#refusedIds.add(targetId);
    if (this.#listener) this.#listener();
    else this.#unreportedCount++;
    return false;
  }

  /** Creates a page for the server, which is admitted in any case. A page reports its creation before the response. */
  async createOwn<T>(create: () => Promise<T>): Promise<T> {
    this.#pendingOwnPages++;
    try {
      return await create();
    } finally {
      this.#pendingOwnPages--;
    }
  }

  forget(targetId: string): void {
    this.#openIds.delete(targetId);
    this.#refusedIds.delete(targetId);
  }

  isRefused(targetId: string): boolean {
    return this.#refusedIds.has(targetId);
  }

  /** Whether a further page would be refused. */
  get isReached(): boolean {
    return this.#openIds.size >= OPEN_PAGES_MAX;
  }
}
