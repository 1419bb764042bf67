// Idempotent requests and their responses.

import type { AccountId, ApplicationId, HostId, SessionId } from '../../../kit/ids.ts';
import type { JsonObject } from '../../../kit/json.ts';

/** One execution of a request with an idempotency key. */
export interface IdempotencyRun {
  readonly owner: AccountId | ApplicationId;
  readonly keyDigest: Buffer;
  /** Distinguishes this execution from an earlier one with the same key. */
  readonly run: string;
}

export interface IdempotencyRow extends IdempotencyRun {
  readonly requestDigest: Buffer;
  readonly operation: string;
  readonly hostId: HostId;
  /** The session that the request created. Written in the same transaction as the row of the session. */
  readonly sessionId?: SessionId;
  /** The response to repeat. Absent while the request is running. */
  readonly kept?: JsonObject;
  readonly createdAt: Date;
  readonly expiresAt: Date;
}

export interface IdempotencyRows {
  /** Inserts the row, or returns the existing one. A row that has expired at the new row's `createdAt` is replaced. */
  begin(row: IdempotencyRow): Promise<{ began: true } | { existing: IdempotencyRow }>;
  /** Stores the response to repeat. */
  keep(run: IdempotencyRun, stored: JsonObject): Promise<void>;
  /** Deletes the row of a request that had no effect. The key can then be used again. */
  release(run: IdempotencyRun): Promise<void>;
  /** Removes at most `batchSize` expired rows. Returns their number. */
  sweep(now: Date, batchSize: number): Promise<number>;
}
