// Attempts within a period. A row holds the times of all attempts with one name, in microseconds by the database's
// clock.
import { sql } from 'kysely';
import type { Db } from '../database.ts';
import type { AttemptRows } from '../rows/attempts.ts';

interface AttemptCount {
  readonly isCounted: boolean;
  readonly latest: string;
  readonly waitMs: number;
}

const NOW_MICROS = sql`(extract(epoch from clock_timestamp()) * 1000000)::bigint`;

export const attempts = (db: Db): AttemptRows => ({
  count: async ({ tally, digest }, { max, withinMs }) => {
    const withinUs = sql`${withinMs * 1000}::bigint`;
    const keptUntil = sql`clock_timestamp() + make_interval(secs => ${withinMs / 1000}::float8)`;
    const { rows } = await sql<AttemptCount>`
      insert into attempts as kept (tally, digest, times, is_counted, kept_until)
        values (${tally}, ${digest}, array[${NOW_MICROS}], true, ${keptUntil})
      on conflict (tally, digest) do update set (times, is_counted, kept_until) = (
        select coalesce(array_agg(at order by at), '{}') || case when count(*) < ${max}::int then array[${NOW_MICROS}] else '{}' end,
          count(*) < ${max}::int, ${keptUntil}
        from unnest(kept.times) as at where at > ${NOW_MICROS} - ${withinUs})
      returning is_counted, times[cardinality(times)]::text as latest,
        ((times[cardinality(times) - ${max}::int + 1] + ${withinUs} - ${NOW_MICROS}) / 1000.0)::float8 as wait_ms`.execute(
      db,
    );
    const [row] = rows;
    if (!row) throw new Error('the upsert of an attempt returned no row');
    return row.isCounted ? { at: row.latest } : { waitMs: Math.max(1, Number(row.waitMs)) };
  },

  takeBack: async ({ tally, digest }, at) =>
    void (await sql`update attempts set times = array_remove(times, ${at}::bigint)
      where tally = ${tally} and digest = ${digest}`.execute(db)),

  sweep: async rowsMax =>
    void (await sql`delete from attempts where kept_until <= clock_timestamp()
      or kept_until <= (select kept_until from attempts order by kept_until desc offset ${rowsMax} limit 1)`.execute(
      db,
    )),
});
