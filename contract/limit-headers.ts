// Headers of 429 responses to refused HTTP requests and WebSocket upgrades.

/** Error details of a request that was refused because of a limit. */
export interface LimitDetails {
  readonly limit?: number;
  readonly used?: number;
  readonly retryAfterSeconds?: number;
}

/** Returns the `x-ratelimit-*` headers, or none if `limit` or `used` is absent. */
export function limitHeaders({ limit, used }: LimitDetails, resetSeconds = 0): Record<string, string> {
  if (limit === undefined || used === undefined) return {};
  return {
    'x-ratelimit-limit': String(limit),
    'x-ratelimit-remaining': String(Math.max(0, limit - used)),
    'x-ratelimit-reset': String(resetSeconds),
  };
}
