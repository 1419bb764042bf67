// The configured limits of applications.

import type { ApplicationId } from '../../../kit/ids.ts';
import type { JsonObject } from '../../../kit/json.ts';

export interface LimitsRow {
  readonly applicationId: ApplicationId;
  /** Contains only the limits that were set. contract/limits.ts has the defaults. */
  readonly configured: JsonObject;
  readonly revision: number;
  readonly updatedAt: Date;
}

export interface LimitsRows {
  get(application: ApplicationId): Promise<LimitsRow | undefined>;
  /** Replaces the limits if their revision is still `revision`. Waits for admissions that have locked the row. */
  replace(
    application: ApplicationId,
    revision: number,
    settings: JsonObject,
    now: Date,
  ): Promise<LimitsRow | undefined>;
}
