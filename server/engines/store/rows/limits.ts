// What an application may use.

import type { ApplicationId } from '../../../kit/ids.ts';
import type { JsonObject } from '../../../kit/json.ts';

export interface LimitsRow {
  readonly applicationId: ApplicationId;
  /** What its owner named; the domain knows the defaults. */
  readonly configured: JsonObject;
  readonly revision: number;
  readonly updatedAt: Date;
}

export interface LimitsRows {
  get(application: ApplicationId): Promise<LimitsRow | undefined>;
  /** Replaces what is configured when `revision` still stands. Waits for admissions that hold the row. */
  replace(
    application: ApplicationId,
    revision: number,
    configured: JsonObject,
    now: Date,
  ): Promise<LimitsRow | undefined>;
}
