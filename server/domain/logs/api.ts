// What the rest of the server may ask about logs; logs.ts keeps the promise.
import type { SessionLog } from '../../../contract/logs.ts';
import type { AgentCaller } from '../identity/caller.ts';

export interface LogQuery {
  /** Only entries behind this one. */
  readonly after?: string;
  /** Kinds separated by commas, as the caller wrote them. */
  readonly type?: string;
}

/** An entry with its place in the log. */
export interface NumberedLog {
  readonly id: string;
  readonly entry: SessionLog;
}

/** Why a log has nothing to show. */
export type LogState = 'on' | 'disabled' | 'expired';

export interface LogPage {
  readonly entries: readonly SessionLog[];
  /** To go on from here; absent where nothing was read and nothing named. */
  readonly nextAfter?: string;
  readonly state: LogState;
}

export interface Logs {
  list(caller: AgentCaller, session: string, query: LogQuery & { readonly limit: number }): Promise<LogPage>;
  /**
   * What was, and then what happens. Yields at least every two seconds, nothing where nothing happened; rejects at its
   * first step where it may not be followed, and is done at once where nothing will come any more.
   */
  follow(
    caller: AgentCaller,
    session: string,
    query: LogQuery,
    signal: AbortSignal,
  ): AsyncGenerator<readonly NumberedLog[], void>;
  /** The network part as a HAR file, in pieces of text. Rejects before its first piece where there is none to give. */
  har(
    caller: AgentCaller,
    session: string,
  ): Promise<{ readonly pieces: AsyncGenerator<string, void>; readonly state: LogState }>;
}
