// Counts the open streams of each application, and ends all streams when the service stops.
import type { ApplicationId } from '../../kit/ids.ts';
import type { Closeable } from '../../kit/scope.ts';
import { fault } from '../faults.ts';

const STREAMS_PER_APPLICATION_MAX = 20;

export class Streams implements Closeable {
  readonly #open = new Map<ApplicationId, number>();
  readonly #closing = new AbortController();

  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** Counts a new stream. Throws 429 if the application has too many. Call `leave` when the stream ends. */
  enter(application: ApplicationId): { leave(): void } {
    const open = this.#open.get(application) ?? 0;
    if (open >= STREAMS_PER_APPLICATION_MAX)
      throw fault('stream_limit', `The application has ${open} event streams open, which is the limit.`, {
        advice: 'Close one. A single stream can deliver the events of all sessions of the application.',
        details: { limit: STREAMS_PER_APPLICATION_MAX, used: open },
      });
    this.#open.set(application, open + 1);
    return { leave: () => this.#closeStream(application) };
  }

  close(): void {
    this.#closing.abort(new Error('the service is stopping'));
  }

  #closeStream(application: ApplicationId): void {
    const left = (this.#open.get(application) ?? 1) - 1;
    if (left > 0) this.#open.set(application, left);
    else this.#open.delete(application);
  }
}
