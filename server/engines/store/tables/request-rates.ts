// Token buckets of credentials. A row stores the time at which the bucket will be full again, by the database's clock.
import { sql } from 'kysely';
import type { Db } from '../database.ts';
import type { RequestRateRows } from '../rows/request-rates.ts';

const MINUTE_MS = 60_000;

export const requestRates = (db: Db): RequestRateRows => ({
  take: async ({ id, what, perMinute }, tokens) => {
    const costMs = MINUTE_MS / perMinute;
    const first = Math.min(tokens, perMinute);
    const after = (ms: unknown) => sql`make_interval(secs => ${ms} / 1000.0)`;
    const standing = sql`greatest(request_rates.full_at, now())`;
    // The cost of a token is the time it takes to refill. The epsilon allows for rounding in sums of fractions.
    const room = sql`floor((${MINUTE_MS}::float8 - extract(epoch from ${standing} - now()) * 1000) / ${costMs}::float8 + 0.001)`;
    const granted = sql`greatest(0, least(${first}::int, ${room}))::int`;
    const { rows } = await sql<{ granted: number; debtMs: number }>`
      insert into request_rates (credential, what, full_at, granted)
        values (${id}, ${what}, now() + ${after(sql`${first * costMs}::float8`)}, ${first})
      on conflict (credential, what) do update
        set full_at = ${standing} + ${after(sql`(${granted} * ${costMs}::float8)`)}, granted = ${granted}
      returning granted, (extract(epoch from full_at - now()) * 1000)::float8 as debt_ms`.execute(db);
    const [row] = rows;
    if (!row) throw new Error('an upsert returned no row');
    return { granted: row.granted, waitMs: row.granted > 0 ? 0 : Math.max(1, Number(row.debtMs) + costMs - MINUTE_MS) };
  },

  sweep: async () => void (await sql`delete from request_rates where full_at < now()`.execute(db)),
});
