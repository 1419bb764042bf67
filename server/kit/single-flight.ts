// Concurrent calls with the same key share one run of the work.

export class SingleFlight<Key, T> {
  readonly #currentRuns = new Map<Key, Promise<T>>();

  run(key: Key, work: () => Promise<T>): Promise<T> {
    const currentRun = this.#currentRuns.get(key);
    if (currentRun) return currentRun;
    const newRun = work().finally(() => this.#currentRuns.delete(key));
    this.#currentRuns.set(key, newRun);
    return newRun;
  }
}
