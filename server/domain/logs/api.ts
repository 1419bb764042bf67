// The operations on logs that HTTP handlers may call. Implemented by logs.ts.
import type { SessionLog } from '../../../contract/logs.ts';
import type { AgentCaller } from '../identity/caller.ts';
import type { PeriodQuery } from '../period.ts';

export interface LogQuery extends PeriodQuery {
  /** If set, only entries with a higher number than this are returned. */
  readonly after?: string;
  /** Kinds of entries, separated by commas. */
  readonly type?: string;
  readonly pageId?: number;
}

/** An entry with its number in the log, which callers pass as `after`. */
export interface NumberedLog {
  readonly id: string;
  readonly entry: SessionLog;
}

/** Whether the log is available, and if not, why. */
export type LogState = 'on' | 'disabled' | 'expired';

export interface LogPage {
  readonly entries: readonly SessionLog[];
  /** The value to pass as `after` to read the following entries. Absent if nothing was read and `after` was not set. */
  readonly nextAfter?: string;
  readonly state: LogState;
}

export interface Logs {
  list(caller: AgentCaller, session: string, query: LogQuery & { readonly limit: number }): Promise<LogPage>;
  /**
   * Yields the stored entries, and then new entries. Yields at least every two seconds; the list is empty if there are
   * no new entries. The first `next` rejects if the caller may not follow the log. Returns without waiting if no more
   * entries will follow.
   */
  follow(
    caller: AgentCaller,
    session: string,
    query: LogQuery,
    signal: AbortSignal,
  ): AsyncGenerator<readonly NumberedLog[], void>;
  /**
   * Returns the network entries as a HAR file, in pieces of text. The promise rejects if the session does not exist.
   */
  har(
    caller: AgentCaller,
    session: string,
  ): Promise<{ readonly pieces: AsyncGenerator<string, void>; readonly state: LogState }>;
}
