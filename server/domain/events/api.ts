// What the rest of the server may ask about events; events.ts keeps the promise.
import type { SessionEvent } from '../../../contract/events.ts';
import type { AgentCaller } from '../identity/caller.ts';

export interface EventQuery {
  /** Only events behind this one. */
  readonly after?: string;
  readonly session?: string;
  /** Words separated by commas, as the caller wrote them. */
  readonly type?: string;
}

export interface Events {
  list(
    caller: AgentCaller,
    query: EventQuery & { readonly limit: number },
  ): Promise<{ events: readonly SessionEvent[]; nextAfter?: string }>;
  /**
   * What was, and then what happens. Yields at least every two seconds, nothing where nothing happened; rejects at its
   * first step where it may not be followed, and is done at once where nothing will come any more.
   */
  follow(caller: AgentCaller, query: EventQuery, signal: AbortSignal): AsyncGenerator<readonly SessionEvent[], void>;
}
