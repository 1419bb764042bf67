// Token buckets of credentials. A row stores the time at which the bucket will be full again, by the database's clock.
import { sql } from 'kysely';
import type { Db } from '../database.ts';
import type { RequestRateRows } from '../rows/request-rates.ts';

const MINUTE_MS = 60_000;

export const requestRates = (db: Db): RequestRateRows => ({
  take: async ({ id, what, perMinute }, tokens) => {
    const costMs = MINUTE_MS / perMinute;
    const requestedTokens = Math.min(tokens, perMinute);
    const durationOf = (ms: unknown) => sql`make_interval(secs => ${ms} / 1000.0)`;
    const fullAt = sql`greatest(request_rates.full_at, now())`;
    // The cost of a token is the time it takes to refill. The epsilon allows for rounding in sums of fractions.
    const availableTokens = sql`floor((${MINUTE_MS}::float8 - extract(epoch from ${fullAt} - now()) * 1000) / ${costMs}::float8 + 0.001)`;
    const grantedTokens = sql`greatest(0, least(${requestedTokens}::int, ${availableTokens}))::int`;
    const { rows } = await sql<{ granted: number; debtMs: number }>`
      insert into request_rates (credential, what, full_at, granted)
        values (${id}, ${what}, now() + ${durationOf(sql`${requestedTokens * costMs}::float8`)}, ${requestedTokens})
      on conflict (credential, what) do update
        set full_at = ${fullAt} + ${durationOf(sql`(${grantedTokens} * ${costMs}::float8)`)}, granted = ${grantedTokens}
      returning granted, (extract(epoch from full_at - now()) * 1000)::float8 as debt_ms`.execute(db);
    const [row] = rows;
    if (!row) throw new Error('the upsert of a token bucket returned no row');
    return { granted: row.granted, waitMs: row.granted > 0 ? 0 : Math.max(1, Number(row.debtMs) + costMs - MINUTE_MS) };
  },

  sweep: async () => void (await sql`delete from request_rates where full_at < now()`.execute(db)),
});
