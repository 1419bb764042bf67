// The interface of the event list. It is implemented in events.ts.
import type { SessionEvent } from '../../../contract/events.ts';
import type { AgentCaller } from '../identity/caller.ts';
import type { PeriodQuery } from '../period.ts';

export interface EventQuery extends PeriodQuery {
  /** Id of an event. Only later events are included. */
  readonly after?: string;
  readonly session?: string;
  /** Types separated by commas. */
  readonly type?: string;
}

export interface Events {
  list(
    caller: AgentCaller,
    query: EventQuery & { readonly limit: number },
  ): Promise<{ events: readonly SessionEvent[]; nextAfter?: string }>;
  /**
   * Yields stored events, then new ones. Yields at least every two seconds, with an empty list if nothing happened. The
   * first `next` rejects if the caller may not read the events. The generator ends at once if no further event is
   * possible.
   */
  follow(caller: AgentCaller, query: EventQuery, signal: AbortSignal): AsyncGenerator<readonly SessionEvent[], void>;
}
