// Work with the same key runs one after the other, in order of arrival. Other keys do not wait for it.

export class TurnQueue<Key> {
  readonly #lastTurns = new Map<Key, Promise<unknown>>();

  async take<T>(key: Key, work: () => Promise<T>): Promise<T> {
    const previousTurn = this.#lastTurns.get(key) ?? Promise.resolve();
    const ownTurn = previousTurn.then(work, work);
    const settled = ownTurn.catch(() => {});
    this.#lastTurns.set(key, settled);
    try {
      return await ownTurn;
    } finally {
      if (this.#lastTurns.get(key) === settled) this.#lastTurns.delete(key);
    }
  }
}
