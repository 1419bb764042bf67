// The conditions under which a session is placed.
import type { JsonObject } from '../../../kit/json.ts';
import type { NewHold } from './credits.ts';
import type { IdempotencyRun } from './idempotency.ts';
import type { QueuePosition } from './line.ts';

export interface Counts {
  /** The number of sessions that have not ended. */
  readonly living: number;
  /** The number of sessions that were created after `createdAfter`. */
  readonly created: number;
  /**
   * The number of bytes that the application's sessions have transferred on the UTC day on which the session is created.
   * Bytes that have not been saved to the database yet are not included.
   */
  readonly egressBytes: number;
}

/** The configured limits of an application, and its use, counted under a lock before the session was placed. */
export interface ApplicationUse extends Counts {
  readonly configured: JsonObject;
  /** When the oldest of the `created` sessions was created. */
  readonly oldest?: Date;
}

/** The credit that is held on the account for a session. */
export type Hold = Pick<NewHold, 'id' | 'amount' | 'rates' | 'dueAt'>;

/** The conditions that the limits of an application set for one create. */
export interface PlacementTerms {
  readonly expiresAt: Date;
  /** The session is placed only if each count is below the number given here. */
  readonly below: Counts;
}

export interface PlaceOptions {
  readonly createdAfter: Date;
  /**
   * Called with the limits under which the session is placed. The returned `expiresAt` replaces that of the row. If the
   * function throws, nothing is changed.
   */
  readonly terms: (configured: JsonObject) => PlacementTerms;
  /** Returns undefined if no credit is to be held; then no credit row is locked. */
  readonly hold?: (expiresAt: Date) => Hold | undefined;
  /**
   * In a fleet: the create's position in the queue, or `{}` for a create that has no position and comes after all
   * waiting creates.
   */
  readonly line?: Partial<QueuePosition>;
  /** The idempotent request of this create. Its row gets the session's id in the same transaction. */
  readonly run?: IdempotencyRun;
}
