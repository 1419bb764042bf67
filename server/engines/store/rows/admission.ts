// Whether there is room for one more session.
import type { IdempotencyRun } from './idempotency.ts';
import type { JsonObject } from './json.ts';
import type { SessionRow } from './sessions.ts';

/** What an application may have: decided from its configured limits, while they are locked. */
export interface Terms {
  /** Sessions that have not ended. */
  readonly maxConcurrent: number;
  /** Sessions created in any 60 seconds. */
  readonly maxCreatesPerMinute: number;
  /** How long the session lives, which may depend on the limits too; stands above the row's own expiresAt. */
  readonly lifeMs: number;
}

export interface Admission {
  /** May throw: then nothing happened. */
  readonly terms: (configured: JsonObject) => Terms;
  /** The repeatable write that this belongs to; its row learns the session in the same transaction. */
  readonly run?: IdempotencyRun;
}

/** What stands against a limit, the session itself included where it was placed. */
export interface Seats {
  readonly concurrent: { readonly limit: number; readonly used: number };
  /** `oldest`: when the first of those in the window was created. */
  readonly minute: { readonly limit: number; readonly used: number; readonly oldest?: Date };
}

export type Placed =
  | { readonly placed: SessionRow; readonly seats?: Seats }
  | { readonly refused: 'concurrent' | 'minute'; readonly seats: Seats }
  | { readonly full: { readonly slots: number; readonly used: number } };
