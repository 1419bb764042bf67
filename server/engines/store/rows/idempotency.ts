// Writes that can be repeated.

import type { AccountId, ApplicationId, HostId, SessionId } from '../../../kit/ids.ts';
import type { JsonObject } from '../../../kit/json.ts';

/** One run of a write under a key. */
export interface IdempotencyRun {
  readonly owner: AccountId | ApplicationId;
  readonly keyDigest: Buffer;
  /** Tells this run from an earlier one under the same key. */
  readonly run: string;
}

export interface IdempotencyRow extends IdempotencyRun {
  readonly requestDigest: Buffer;
  readonly operation: string;
  readonly hostId: HostId;
  /** The session it made, written together with that session. */
  readonly sessionId?: SessionId;
  /** What is answered again; absent while it runs. */
  readonly kept?: JsonObject;
  readonly createdAt: Date;
  readonly expiresAt: Date;
}

export interface IdempotencyRows {
  /** Inserts the row, or shows the one that stands. One that has expired by the new row's createdAt counts as gone. */
  begin(row: IdempotencyRow): Promise<{ began: true } | { standing: IdempotencyRow }>;
  /** Keeps what is answered again. */
  keep(run: IdempotencyRun, kept: JsonObject): Promise<void>;
  /** Nothing was done: the key is free again. */
  release(run: IdempotencyRun): Promise<void>;
  /** Removes what has expired, at most this many; returns how many. */
  sweep(now: Date, batch: number): Promise<number>;
}
