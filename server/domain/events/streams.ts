// Counts the open streams of each application, and ends all streams when the service stops.
import type { ApplicationId } from '../../kit/ids.ts';
import type { Closeable } from '../../kit/scope.ts';
import { fault } from '../faults.ts';

const STREAMS_PER_APPLICATION_MAX = 20;

export class Streams implements Closeable {
  readonly #openCounts = new Map<ApplicationId, number>();
  readonly #closeController = new AbortController();

  get closingSignal(): AbortSignal {
    return this.#closeController.signal;
  }

  /** Counts a new stream. Throws 429 if the application has too many streams. Call `leave` when the stream ends. */
  enter(application: ApplicationId): { leave(): void } {
    const openCount = this.#openCounts.get(application) ?? 0;
    if (openCount >= STREAMS_PER_APPLICATION_MAX)
      throw fault('stream_limit', `The application has ${openCount} event streams open, which is the limit.`, {
        advice:
          'Close one of these streams. A single stream can deliver the events of all sessions of the application.',
        details: { limit: STREAMS_PER_APPLICATION_MAX, used: openCount },
      });
    this.#openCounts.set(application, openCount + 1);
    return { leave: () => this.#closeStream(application) };
  }

  close(): void {
    this.#closeController.abort(new Error('the service is stopping'));
  }

  #closeStream(application: ApplicationId): void {
    const remainingCount = (this.#openCounts.get(application) ?? 1) - 1;
    if (remainingCount > 0) this.#openCounts.set(application, remainingCount);
    else this.#openCounts.delete(application);
  }
}
