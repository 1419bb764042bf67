// An invocation that has passed all checks and can run, and the outcomes of running it. Nothing has been sent yet to the
// browser or to the server of the operation.
import type { InvocationError } from '../../../contract/invocations.ts';
import type { InvocationRow } from '../../engines/store/rows/invocations.ts';
import type { SessionId } from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';

export interface Upstream {
  readonly host: string;
  readonly status?: number;
}

/** A file that a call produced. */
export interface NewFile {
  readonly bytes: Uint8Array;
  readonly mimeType: string;
}

interface OutcomeBase {
  /** Only for an HTTP call. */
  readonly upstream?: Partial<Upstream>;
}

export interface SuccessfulOutcome extends OutcomeBase {
  readonly state: 'succeeded';
  readonly output: JsonObject;
  /** Set if the digest has already been computed. */
  readonly outputDigest?: string;
  /** When the output is removed. */
  readonly outputUntil?: Date;
  readonly outputInvalid?: boolean;
  /** If set, neither the output nor its digest is stored, and only a caller that waits for the end gets the output. */
  readonly isNotKept?: boolean;
  /** A file to store. The output describes it in `artifact`. */
  readonly file?: NewFile;
  /** Files to store. The output describes them in `artifacts`. */
  readonly files?: readonly NewFile[];
}

export interface UnsuccessfulOutcome extends OutcomeBase {
  readonly state: 'failed' | 'ambiguous';
  readonly error: InvocationError;
}

export type Outcome = SuccessfulOutcome | UnsuccessfulOutcome;

export interface PreparedCall {
  /** Only for an operation that runs in a browser. */
  readonly session?: {
    readonly id: SessionId;
    readonly recorded: boolean;
    /** When the browser was ready, if the session was created for this call. */
    readonly ownSessionSince?: Date;
  };
  /** How long the input is kept after the end of the invocation. If absent, the input is not kept. */
  readonly inputKeptMs?: number;
  /**
   * Called after the dispatch has been committed. Rejects with the reason of the signal if the signal is aborted, or
   * with the error that occurred.
   */
  run(row: InvocationRow, signal: AbortSignal): Promise<Outcome>;
  /** Called once, whether `run` was called or not. */
  release(): Promise<void>;
}
