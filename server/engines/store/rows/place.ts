// What decides whether a session is placed.
import type { JsonObject } from '../../../kit/json.ts';
import type { NewHold } from './credits.ts';
import type { IdempotencyRun } from './idempotency.ts';
import type { Place } from './line.ts';

export interface Counts {
  /** Sessions that have not ended. */
  readonly living: number;
  /** Sessions that were created after `createdAfter`. */
  readonly created: number;
  /** Bytes that the application's sessions moved over the network in the UTC day of the create, as last written. */
  readonly egressBytes: number;
}

/** The configured limits of an application and its use, counted under its lock before the session was placed. */
export interface ApplicationUse extends Counts {
  readonly configured: JsonObject;
  /** When the oldest of the `created` sessions was created. */
  readonly oldest?: Date;
}

/** What a session holds of the credit of its account. */
export type Hold = Pick<NewHold, 'id' | 'amount' | 'rates' | 'dueAt'>;

/** What the limits of an application mean for one create. */
export interface Terms {
  readonly expiresAt: Date;
  /** The session is placed only while each count is below this. */
  readonly below: Counts;
}

export interface PlaceOptions {
  readonly createdAfter: Date;
  /** Called with the limits that the session is placed under. `expiresAt` replaces that of the row. If it throws, nothing is changed. */
  readonly terms: (configured: JsonObject) => Terms;
  /** Undefined: nothing is held, and no credit row is locked. */
  readonly hold?: (expiresAt: Date) => Hold | undefined;
  /** In a fleet: the create's place in the line, or `{}` for a create that has no place and comes after all others. */
  readonly line?: Partial<Place>;
  /** The idempotent request of this create. Its row gets the session's id in the same transaction. */
  readonly run?: IdempotencyRun;
}
