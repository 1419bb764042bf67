// Several callers that ask for the same thing at once share one piece of work.

export class SingleFlight<Key, T> {
  readonly #running = new Map<Key, Promise<T>>();

  run(key: Key, work: () => Promise<T>): Promise<T> {
    const running = this.#running.get(key);
    if (running) return running;
    const started = work().finally(() => this.#running.delete(key));
    this.#running.set(key, started);
    return started;
  }
}
