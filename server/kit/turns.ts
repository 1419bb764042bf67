// Runs work with the same key one at a time, in order of arrival. Work with different keys runs concurrently.

export class TurnQueue<Key> {
  readonly #lastTurns = new Map<Key, Promise<unknown>>();

  async run<T>(key: Key, work: () => Promise<T>): Promise<T> {
    const previousTurn = this.#lastTurns.get(key) ?? Promise.resolve();
    const ownTurn = previousTurn.then(work, work);
    const settledTurn = ownTurn.catch(() => {});
    this.#lastTurns.set(key, settledTurn);
    try {
      return await ownTurn;
    } finally {
      if (this.#lastTurns.get(key) === settledTurn) this.#lastTurns.delete(key);
    }
  }
}
