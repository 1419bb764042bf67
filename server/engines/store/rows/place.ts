// What the transaction that places a session asks of its caller.
import type { JsonObject } from '../../../kit/json.ts';
import type { IdempotencyRun } from './idempotency.ts';

/** What an application has configured, and what it uses of it, while both are locked. */
export interface ApplicationUse {
  readonly configured: JsonObject;
  /** Sessions that have not ended. */
  readonly living: number;
  /** Sessions that were created after `createdAfter`. */
  readonly created: number;
  /** Bytes that its sessions moved over the network in the UTC day of the create, as far as they are counted. */
  readonly egressBytes: number;
  /** When the first of those was created. */
  readonly oldest?: Date;
}

export interface PlaceOptions<Admitted, Refusal> {
  readonly createdAfter: Date;
  /** Decides under the lock. `expiresAt` replaces the row's own. May throw: then nothing happened. */
  readonly decide: (
    use: ApplicationUse,
  ) => { readonly admitted: Admitted & { readonly expiresAt: Date } } | { readonly refused: Refusal };
  /** The idempotent request that this belongs to; its row learns the session in the same transaction. */
  readonly run?: IdempotencyRun;
}
