// Recordings of the pages of sessions.
import type { HostId, SessionId } from '../../../kit/ids.ts';

/** A page that has a recording. */
export interface RecordedPageRow {
  readonly sessionId: SessionId;
  readonly page: number;
  /** The time of the first frame. */
  readonly startedAt: Date;
  /** Whether recording has ended and everything that was recorded is stored. */
  readonly stored: boolean;
}

export interface SegmentRow {
  readonly sessionId: SessionId;
  readonly page: number;
  readonly sequence: number;
  /** Identifies the run: the segments of the page that share one init segment. */
  readonly run: number;
  readonly startMs: number;
  readonly durationMs: number;
  readonly width: number;
  readonly height: number;
  readonly bytes: number;
  /** The offset of the coded frames in the segment, in bytes. */
  readonly payloadAt: number;
  readonly samples: { readonly durationsMs: readonly number[]; readonly sizes: readonly number[] };
}

export interface SpanRow {
  readonly page: number;
  readonly kind: 'hidden' | 'missing';
  readonly fromMs: number;
  /** Absent until the span ends. */
  readonly toMs?: number;
  readonly why?: string;
}

export type OmissionReason = 'too_many_at_once' | 'too_many_in_all';

/** A page that is not recorded. `page` is absent if the page has no number. */
export interface OmittedPage {
  readonly why: OmissionReason;
  readonly targetId: string;
  readonly page?: number;
}

export interface RecordingFileRow {
  readonly sessionId: SessionId;
  readonly page: number;
  readonly hostId: HostId;
  readonly state: 'PENDING' | 'COMPLETED' | 'FAILED';
  readonly assembly: string;
  readonly size?: number;
  readonly attempts: number;
  readonly requestedAt: Date;
  readonly completedAt?: Date;
  readonly failure?: string;
}

/**
 * Methods that take only a session id do not check its application. The caller must check it first, by reading the
 * session with its application id.
 */
export interface RecordingRows {
  /** Does not change an existing row. */
  insertPage(session: SessionId, page: number, startedAt: Date): Promise<void>;
  pages(session: SessionId): Promise<RecordedPageRow[]>;
  markStored(session: SessionId, page: number): Promise<void>;
  runOf(session: SessionId, page: number, checksum: string): Promise<number | undefined>;
  addRun(session: SessionId, page: number, checksum: string): Promise<number>;
  addSegment(row: SegmentRow): Promise<void>;
  segments(session: SessionId, page: number): Promise<SegmentRow[]>;
  addSpan(session: SessionId, page: number, span: Omit<SpanRow, 'page'>): Promise<void>;
  spans(session: SessionId): Promise<SpanRow[]>;
  /** Ends the page's open spans at `atMs`. */
  endSpans(session: SessionId, page: number, atMs: number): Promise<void>;
  /** Records that the page is not being recorded. If it is recorded later, `omissions` does not count it. */
  recordOmission(session: SessionId, page: OmittedPage): Promise<void>;
  /** The number of pages without a recording, by reason. */
  omissions(session: SessionId): Promise<ReadonlyArray<{ readonly why: OmissionReason; readonly pages: number }>>;
  /** For each page, the end of its last stored segment, in milliseconds. */
  lengths(session: SessionId): Promise<ReadonlyMap<number, number>>;
  /**
   * Requests that the host `hostId` assemble the MP4 file of the page. Does nothing if the file is complete, or if it
   * is pending on that host or on another host that is not lost.
   */
  requestFile(row: Pick<RecordingFileRow, 'sessionId' | 'page' | 'hostId' | 'assembly' | 'requestedAt'>): Promise<void>;
  files(session: SessionId): Promise<RecordingFileRow[]>;
  /** Oldest first. */
  listPending(host: HostId, batchSize: number): Promise<RecordingFileRow[]>;
  /** Updates a pending file. Records `recording.ready` or `recording.failed` if the new state is final. */
  settle(row: RecordingFileRow, now: Date): Promise<void>;
  /**
   * Deletes the rows of segments, runs and files. Call after the artifacts have been deleted. The rows of the pages are
   * kept.
   */
  forget(session: SessionId): Promise<void>;
}
