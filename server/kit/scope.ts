// Owns resources that must be closed, and closes them in the reverse order of opening.

export interface Closeable {
  close(): Promise<void> | void;
}

export class Scope implements Closeable {
  readonly #undoSteps: Array<() => Promise<void> | void> = [];
  #closing: Promise<void> | undefined;

  own<T extends Closeable>(resource: T): T {
    this.defer(() => resource.close());
    return resource;
  }

  defer(undo: () => Promise<void> | void): void {
    if (this.#closing) throw new Error('this scope is already closed');
    this.#undoSteps.push(undo);
  }

  /** Closes everything, last opened first. Every step is attempted; failures are collected in one error. */
  close(): Promise<void> {
    this.#closing ??= this.#closeAll();
    return this.#closing;
  }

  async #closeAll(): Promise<void> {
    const failures: unknown[] = [];
    for (let undo = this.#undoSteps.pop(); undo; undo = this.#undoSteps.pop()) {
      try {
        await undo();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length === 1) throw failures[0];
    if (failures.length > 1) throw new AggregateError(failures, `${failures.length} resources could not be closed`);
  }
}
