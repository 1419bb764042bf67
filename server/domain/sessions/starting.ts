// Sessions whose browser this process is starting. A connecting client waits for the start, and a release cancels it.
import type { SessionId } from '../../kit/ids.ts';
import type { LiveSession } from './live.ts';

export class StartCancelled extends Error {
  override readonly name = 'StartCancelled';
}

interface Start {
  readonly control: AbortController;
  /** Never rejects. Undefined if the start failed or was cancelled. */
  readonly whenSettled: Promise<LiveSession | undefined>;
}

export class StartingSessions {
  readonly #starts = new Map<SessionId, Start>();
  readonly #onStartEnded: () => void;

  /** `onStartEnded` is called when a start is over, whether it succeeded or not. */
  constructor(onStartEnded: () => void) {
    this.#onStartEnded = onStartEnded;
  }

  /** Runs the start. Waiting clients get the same result. */
  async run(id: SessionId, start: (signal: AbortSignal) => Promise<LiveSession>): Promise<LiveSession> {
    const control = new AbortController();
    const startPromise = start(control.signal);
    const whenSettled = startPromise.catch(() => undefined).finally(() => this.#end(id));
    this.#starts.set(id, { control, whenSettled });
    return startPromise;
  }

  #end(id: SessionId): void {
    this.#starts.delete(id);
    this.#onStartEnded();
  }

  get size(): number {
    return this.#starts.size;
  }

  wait(id: SessionId): Promise<LiveSession | undefined> {
    return this.#starts.get(id)?.whenSettled ?? Promise.resolve(undefined);
  }

  /** Cancels the start and waits until it has been undone. */
  async cancel(id: SessionId): Promise<void> {
    const start = this.#starts.get(id);
    if (!start) return;
    start.control.abort(new StartCancelled(`the start of session ${id} was cancelled`));
    await start.whenSettled;
  }

  get ids(): readonly SessionId[] {
    return [...this.#starts.keys()];
  }
}
