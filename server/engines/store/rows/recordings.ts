// What was recorded of the pages of a session.
import type { HostId, SessionId } from '../../../kit/ids.ts';

/** A page of which something was recorded. */
export interface RecordedPageRow {
  readonly sessionId: SessionId;
  readonly page: number;
  /** When its first frame was seen. */
  readonly startedAt: Date;
  /** All that was recorded is stored, and nothing more comes. */
  readonly stored: boolean;
}

export interface SegmentRow {
  readonly sessionId: SessionId;
  readonly page: number;
  readonly sequence: number;
  /** The run of segments with one init segment. */
  readonly run: number;
  readonly startMs: number;
  readonly durationMs: number;
  readonly width: number;
  readonly height: number;
  readonly bytes: number;
  /** Where in the segment the coded frames begin. */
  readonly payloadAt: number;
  readonly samples: { readonly durationsMs: readonly number[]; readonly sizes: readonly number[] };
}

export interface SpanRow {
  readonly page: number;
  readonly kind: 'hidden' | 'missing';
  readonly fromMs: number;
  /** Missing while it is not over. */
  readonly toMs?: number;
  readonly why?: string;
}

export type OmissionWhy = 'too_many_at_once' | 'too_many_in_all';

/** A page that is not recorded; without a number where it has none. */
export interface OmittedPage {
  readonly why: OmissionWhy;
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

/** Whoever asks by session alone has the session's row, read under its application. */
export interface RecordingRows {
  /** What is there already stays. */
  began(session: SessionId, page: number, startedAt: Date): Promise<void>;
  pages(session: SessionId): Promise<RecordedPageRow[]>;
  stored(session: SessionId, page: number): Promise<void>;
  runOf(session: SessionId, page: number, checksum: string): Promise<number | undefined>;
  addRun(session: SessionId, page: number, checksum: string): Promise<number>;
  addSegment(row: SegmentRow): Promise<void>;
  segments(session: SessionId, page: number): Promise<SegmentRow[]>;
  addSpan(session: SessionId, page: number, span: Omit<SpanRow, 'page'>): Promise<void>;
  spans(session: SessionId): Promise<SpanRow[]>;
  /** Those that have no end yet. */
  endSpans(session: SessionId, page: number, atMs: number): Promise<void>;
  /** This page is not recorded, or not yet. */
  omit(session: SessionId, page: OmittedPage): Promise<void>;
  /** Pages of which nothing was recorded, by why. */
  omissions(session: SessionId): Promise<ReadonlyArray<{ readonly why: OmissionWhy; readonly pages: number }>>;
  /** Where the stored part of each page ends. */
  lengths(session: SessionId): Promise<ReadonlyMap<number, number>>;
  /** To be assembled, by this host. One that is whole already stays so. */
  ask(row: Pick<RecordingFileRow, 'sessionId' | 'page' | 'hostId' | 'assembly' | 'requestedAt'>): Promise<void>;
  files(session: SessionId): Promise<RecordingFileRow[]>;
  /** Oldest first. */
  pending(host: HostId, batch: number): Promise<RecordingFileRow[]>;
  settle(row: RecordingFileRow): Promise<void>;
  /** After their artifacts are gone. The pages stay. */
  forget(session: SessionId): Promise<void>;
}
