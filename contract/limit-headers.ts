// Headers of a 429 answer, over HTTP and in the refusal of an upgrade.

/** The details of refusals by a limit. */
export interface LimitDetails {
  readonly limit?: number;
  readonly used?: number;
  readonly retryAfterSeconds?: number;
}

/** Empty if the refusal has no number. */
export function limitHeaders({ limit, used }: LimitDetails, resetSeconds = 0): Record<string, string> {
  if (limit === undefined || used === undefined) return {};
  return {
    'x-ratelimit-limit': String(limit),
    'x-ratelimit-remaining': String(Math.max(0, limit - used)),
    'x-ratelimit-reset': String(resetSeconds),
  };
}
