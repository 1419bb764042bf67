// The log of each session.
import type { ApplicationId, SessionId } from '../../../kit/ids.ts';

/** How much of each kind of entry there is. */
export type LogKinds = Readonly<Record<string, { readonly entries: number; readonly bytes: number }>>;

/** Entries of a session's log that follow each other without a gap, one a line. */
export interface LogChunk {
  /** Sequence number of the first line. */
  readonly first: number;
  readonly lines: readonly string[];
  readonly kinds: LogKinds;
}

export interface LogStanding {
  readonly last: number;
  readonly written: Date;
  /** Of the whole log. */
  readonly kinds: LogKinds;
  /** Those of the last chunk. */
  readonly lines: readonly string[];
}

export interface LogRows {
  /** A chunk that begins where one stands replaces it. */
  write(application: ApplicationId, session: SessionId, chunks: readonly LogChunk[], now: Date): Promise<void>;
  /** Chunks with lines behind `after`, oldest first; with `kinds` only those that have some of these. */
  read(
    application: ApplicationId,
    session: SessionId,
    page: { readonly after: number; readonly kinds?: readonly string[]; readonly limit: number },
  ): Promise<readonly LogChunk[]>;
  /** Where a log stands that somebody else began; undefined where there is none. */
  last(application: ApplicationId, session: SessionId): Promise<LogStanding | undefined>;
  /** Forgets the logs of sessions that ended before this; how many sessions those were, at most `batch`. */
  forget(endedBefore: Date, batch: number): Promise<number>;
}
