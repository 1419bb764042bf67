// The log of each session.
import type { ApplicationId, SessionId } from '../../../kit/ids.ts';

/** The number of entries and bytes of each kind. */
export type LogKinds = Readonly<Record<string, { readonly entries: number; readonly bytes: number }>>;

/** Consecutive entries of a session's log, one per line. */
export interface LogChunk {
  /** Sequence number of the first line. */
  readonly first: number;
  readonly lines: readonly string[];
  readonly kinds: LogKinds;
}

export interface LogPosition {
  /** Sequence number of the last entry. */
  readonly last: number;
  /** When the last chunk was written. */
  readonly written: Date;
  /** Totals for the whole log, by kind. */
  readonly kinds: LogKinds;
  /** The entries of the last chunk. */
  readonly lines: readonly string[];
}

export interface LogRows {
  /** Writes chunks. A chunk replaces an existing one with the same first sequence number. */
  write(application: ApplicationId, session: SessionId, chunks: readonly LogChunk[], now: Date): Promise<void>;
  /**
   * Chunks that contain entries with a sequence number greater than `after`, oldest first. With `kinds`, only chunks
   * that contain entries of these kinds.
   */
  read(
    application: ApplicationId,
    session: SessionId,
    page: { readonly after: number; readonly kinds?: readonly string[]; readonly limit: number },
  ): Promise<readonly LogChunk[]>;
  /** Returns what is needed to continue a log that an earlier process began. Undefined if there is no such log. */
  lastPosition(application: ApplicationId, session: SessionId): Promise<LogPosition | undefined>;
  /** Deletes the logs of at most `batchSize` sessions that ended before this time. Returns the number of sessions. */
  forget(endedBefore: Date, batchSize: number): Promise<number>;
}
