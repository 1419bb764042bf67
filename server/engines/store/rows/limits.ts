// The configured limits of applications.

import type { ApplicationId } from '../../../kit/ids.ts';
import type { JsonObject } from '../../../kit/json.ts';

export interface LimitsRow {
  readonly applicationId: ApplicationId;
  /** Only the limits that were set; the domain has the defaults. */
  readonly configured: JsonObject;
  readonly revision: number;
  readonly updatedAt: Date;
}

export interface LimitsRows {
  get(application: ApplicationId): Promise<LimitsRow | undefined>;
  /** Replaces the limits if the revision is still `revision`. Waits for admissions that hold the row. */
  replace(
    application: ApplicationId,
    revision: number,
    configured: JsonObject,
    now: Date,
  ): Promise<LimitsRow | undefined>;
}
