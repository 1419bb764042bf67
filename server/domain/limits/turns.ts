// Work that comes one after the other for each key, in the order it was asked for. Others go on meanwhile.

export class Turns<Key> {
  /** The end of the last one asked for; never rejects. */
  readonly #last = new Map<Key, Promise<void>>();

  run<T>(key: Key, work: () => Promise<T>): Promise<T> {
    const mine = (this.#last.get(key) ?? Promise.resolve()).then(work);
    const over: Promise<void> = mine.then(
      () => this.#forget(key, over),
      () => this.#forget(key, over),
    );
    this.#last.set(key, over);
    return mine;
  }

  #forget(key: Key, over: Promise<void>): void {
    if (this.#last.get(key) === over) this.#last.delete(key);
  }
}
