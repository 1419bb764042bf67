// An invocation that is ready to run: everything that can be refused has been checked, and nothing has been sent.
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

interface Common {
  /** Of an HTTP call. */
  readonly upstream?: Partial<Upstream>;
}

export interface Success extends Common {
  readonly state: 'succeeded';
  readonly output: JsonObject;
  /** If it was computed already. */
  readonly outputDigest?: string;
  /** When the output is removed. */
  readonly outputUntil?: Date;
  readonly outputInvalid?: boolean;
  /** Neither the output nor its digest is written: only the caller that waits for the end gets it. */
  readonly isNotKept?: boolean;
  /** Stored as `artifact` of the output. */
  readonly file?: NewFile;
  /** Stored as `artifacts` of the output. */
  readonly files?: readonly NewFile[];
}

export interface NoSuccess extends Common {
  readonly state: 'failed' | 'ambiguous';
  readonly error: InvocationError;
}

export type Outcome = Success | NoSuccess;

export interface Prepared {
  /** Of an operation that runs in a browser. */
  readonly session?: {
    readonly id: SessionId;
    readonly recorded: boolean;
    /** When the browser was ready, if the session was created for this call. */
    readonly ownSince?: Date;
  };
  /** How long the input is kept after the end. Absent: not at all. */
  readonly inputKeptMs?: number;
  /** Called after the dispatch was committed. Rejects with the reason of the signal when that is aborted, or with what went wrong. */
  run(dispatched: InvocationRow, signal: AbortSignal): Promise<Outcome>;
  /** Called once, whether it was run or not. */
  release(): Promise<void>;
}
