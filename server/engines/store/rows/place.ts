// The callbacks of the transaction that places a session.
import type { JsonObject } from '../../../kit/json.ts';
import type { NewHold } from './credits.ts';
import type { IdempotencyRun } from './idempotency.ts';
import type { Place } from './line.ts';

/** The configured limits of an application and its present use, read under its lock. */
export interface ApplicationUse {
  readonly configured: JsonObject;
  /** Sessions that have not ended. */
  readonly living: number;
  /** Sessions that were created after `createdAfter`. */
  readonly created: number;
  /** Bytes that the application's sessions moved over the network in the UTC day of the create, as last written. */
  readonly egressBytes: number;
  /** When the oldest of the `created` sessions was created. */
  readonly oldest?: Date;
}

export interface PlaceOptions<Admitted, Refusal> {
  readonly createdAfter: Date;
  /** Called under the lock. `expiresAt` replaces that of the row. If it throws, nothing is changed. */
  readonly decide: (
    use: ApplicationUse,
  ) => { readonly admitted: Admitted & { readonly expiresAt: Date } } | { readonly refused: Refusal };
  /**
   * What the session holds of the credit of its account, called when it is admitted and has a slot. Undefined: nothing, and
   * no credit row is locked.
   */
  readonly hold?: (expiresAt: Date) => Pick<NewHold, 'id' | 'hostId' | 'amount' | 'rates' | 'at' | 'dueAt'> | undefined;
  /** In a fleet: its place in the line of those that wait, or `{}` for a create that has none and comes after all of them. */
  readonly line?: Partial<Place>;
  /** The idempotent request of this create. Its row gets the session's id in the same transaction. */
  readonly run?: IdempotencyRun;
}
