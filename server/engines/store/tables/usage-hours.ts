// Sums sessions by hour. One statement counts the sessions of given hours. It fills the table, and also computes hours
// that are not in the table yet.
import { type RawBuilder, sql } from 'kysely';
import type { ApplicationId } from '../../../kit/ids.ts';
import type { Db } from '../database.ts';
import type { KeyUsage, UsageHour, UsageHours, UsagePeriod } from '../rows/usage-hours.ts';
import { withoutNulls } from './without-nulls.ts';

const HOUR_MS = 3_600_000;
/** The stored values depend on these bounds, so the bounds must never change. */
const START_BOUNDS_MS = [
  ...[5, 10, 15, 20, 30, 40, 50, 75, 100, 150, 200, 300, 400, 500],
  ...[750, 1000, 1500, 2000, 3000, 5000, 10_000, 30_000],
];

export const usageHours = (db: Db): UsageHours => ({
  startBoundsMs: START_BOUNDS_MS,

  ofApplication: async (application, period) => {
    const { rows } = await sql<UsageHour>`
      select hour, ${SUMS}, end_reasons, starts, peak
        from (${await allHoursQuery(db, application, period)}) as hours where key_id is null order by hour`.execute(db);
    return rows;
  },

  byKey: async (application, period, limit) => {
    const { rows } = await sql<KeyUsage & { readonly name: string | null }>`
      select hours.key_id, keys.name, sum(created)::bigint as created, sum(ended)::bigint as ended,
          sum(failed)::bigint as failed, sum(browser_ms)::bigint as browser_ms, sum(cpu_ms)::bigint as cpu_ms,
          sum(bytes_received)::bigint as bytes_received, sum(bytes_sent)::bigint as bytes_sent
        from (${await allHoursQuery(db, application, period)}) as hours
          left join keys on keys.id = hours.key_id and keys.application_id = ${application}
        where hours.key_id is not null
        group by hours.key_id, keys.name
        order by sum(browser_ms) desc, hours.key_id
        limit ${limit}`.execute(db);
    return rows.map(withoutNulls);
  },

  sum: (before, batchSize) =>
    db.transaction().execute(async trx => {
      const firstHour = await lockNextHour(trx);
      if (!firstHour) return 0;
      const endHour = new Date(Math.min(before.getTime(), firstHour.getTime() + batchSize * HOUR_MS));
      if (endHour <= firstHour) return 0;
      await sql`
        insert into usage_hours (application_id, hour, key_id, ${SUMS}, end_reasons, starts, peak)
          ${usageQuery({ from: firstHour, to: endHour, now: endHour })} on conflict do nothing`.execute(trx);
      await trx.updateTable('usageSummed').set({ until: endHour }).execute();
      return (endHour.getTime() - firstHour.getTime()) / HOUR_MS;
    }),

  forget: async before => {
    const { numDeletedRows } = await db.deleteFrom('usageHours').where('hour', '<', before).executeTakeFirstOrThrow();
    return Number(numDeletedRows);
  },
});

const SUMS = sql.raw('created, ended, failed, browser_ms, cpu_ms, bytes_received, bytes_sent');

/**
 * Locks and returns the next hour to sum. If no hour has been summed, this is the hour of the first session. Undefined
 * if there has been no session.
 */
async function lockNextHour(trx: Db): Promise<Date | undefined> {
  await sql`
    insert into usage_summed (until)
      select date_trunc('hour', min(created_at), 'UTC') from sessions having min(created_at) is not null
      on conflict do nothing`.execute(trx);
  return (await trx.selectFrom('usageSummed').select('until').forUpdate().executeTakeFirst())?.until;
}

/** The rows of the table, and computed rows for the hours that are not in the table yet. */
async function allHoursQuery(
  db: Db,
  application: ApplicationId,
  { from, to, now }: UsagePeriod,
): Promise<RawBuilder<unknown>> {
  const { until = from } = (await db.selectFrom('usageSummed').select('until').executeTakeFirst()) ?? {};
  const firstUnsummedHour = new Date(Math.min(Math.max(from.getTime(), until.getTime()), to.getTime()));
  return sql`
    select application_id, hour, key_id, ${SUMS}, end_reasons, starts, peak from usage_hours
      where application_id = ${application} and hour >= ${from} and hour < ${firstUnsummedHour}
    union all (${usageQuery({ from: firstUnsummedHour, to, now }, application)})`;
}

/**
 * Computes, for each application and hour with sessions, one row without a key and one for each of the application's
 * keys.
 */
function usageQuery({ from, to, now }: UsagePeriod, application?: ApplicationId): RawBuilder<unknown> {
  const isSelected = application === undefined ? sql`true` : sql`application_id = ${application}`;
  const bucketIndexes = START_BOUNDS_MS.map((_, at) => at).concat(START_BOUNDS_MS.length);
  return sql`
    with touched as (
      select hour, application_id, key_id, status, end_reason, started_at, ended_at,
          created_at >= hour and created_at < hour + interval '1 hour' as is_created,
          started_at >= hour and started_at < hour + interval '1 hour' as is_started,
          coalesce(ended_at < hour + interval '1 hour', false) as is_ended,
          width_bucket(extract(epoch from started_at - created_at) * 1000, ${START_BOUNDS_MS}::numeric[]) as bound,
          case when started_at is null then 0 else
            greatest(0, extract(epoch from least(coalesce(ended_at, ${now}::timestamptz), hour + interval '1 hour')
              - greatest(started_at, hour)) * 1000) end as ran_ms,
          session_usage.cpu_ms, session_usage.bytes_received, session_usage.bytes_sent
        from generate_series(${from}::timestamptz, ${to}::timestamptz - interval '1 hour', interval '1 hour') as hour
          join sessions on created_at < hour + interval '1 hour' and (ended_at is null or ended_at >= hour)
          left join session_usage on session_usage.session_id = sessions.id
        where created_at < ${to} and (ended_at is null or ended_at >= ${from}) and ${isSelected}),
    reasons as (
      select hour, application_id, jsonb_object_agg(end_reason, ends) as end_reasons
        from (select hour, application_id, end_reason, count(*) as ends from touched where is_ended
          group by hour, application_id, end_reason) as each_reason
        group by hour, application_id),
    changes as (
      select hour, application_id, greatest(started_at, hour) as at, 1 as change from touched
        where started_at < hour + interval '1 hour'
      union all
      select hour, application_id, ended_at, -1 from touched where is_ended and started_at is not null),
    peaks as (
      select hour, application_id, max(running) as peak
        from (select hour, application_id, sum(change) over
          (partition by hour, application_id order by at, change rows unbounded preceding) as running from changes) as each_change
        group by hour, application_id),
    sums as (
      select hour, application_id, key_id,
          count(*) filter (where is_created) as created,
          count(*) filter (where is_ended) as ended,
          count(*) filter (where is_ended and status = 'ERROR') as failed,
          round(sum(ran_ms))::bigint as browser_ms,
          coalesce(sum(cpu_ms) filter (where is_ended), 0)::bigint as cpu_ms,
          coalesce(sum(bytes_received) filter (where is_ended), 0)::bigint as bytes_received,
          coalesce(sum(bytes_sent) filter (where is_ended), 0)::bigint as bytes_sent,
          array[${sql.join(bucketIndexes.map(at => sql`count(*) filter (where is_started and bound = ${sql.lit(at)})`))}]::integer[] as starts
        from touched
        group by grouping sets ((hour, application_id), (hour, application_id, key_id))
        having grouping(key_id) = 1 or key_id is not null)
    select application_id, hour, key_id, ${SUMS},
        case when key_id is null then coalesce(end_reasons, '{}') else '{}' end as end_reasons, starts,
        case when key_id is null then coalesce(peak, 0) else 0 end as peak
      from sums left join reasons using (hour, application_id) left join peaks using (hour, application_id)`;
}
