// Writes made-up usage history directly into the database of a server, because a test cannot wait for hours of usage.
import { queryRows } from './other-person.ts';
import type { TestServer } from './server.ts';

/**
 * Writes thirty days of sessions: more by day than at night, with a few failures, and with one agent key that created
 * most of the sessions.
 */
export async function insertUsageHistory(server: TestServer): Promise<void> {
  const from = new Date(server.now().getTime() - 30 * 24 * 3_600_000);
  const values = [server.applicationId, from, server.now()];
  await queryRows(server, `${INSERT_USAGE_HOURS} select $1, hour, null, ${HOUR_COLUMNS} from hours`, values);
  const key = '(select min(id::text)::uuid from keys where application_id = $1)';
  await queryRows(server, `${INSERT_USAGE_HOURS} select $1, hour, ${key}, ${HOUR_COLUMNS} from hours`, values);
  await queryRows(
    server,
    `insert into usage_summed (until) values (date_trunc('hour', $1::timestamptz, 'UTC'))
      on conflict (one) do update set until = excluded.until`,
    [server.now()],
  );
}

const INSERT_USAGE_HOURS = `
  with hours as (
    select hour, greatest(0, round(12 * sin((extract(hour from hour) - 6) * pi() / 12) + extract(day from hour)::int % 5))::int as n
      from generate_series(date_trunc('hour', $2::timestamptz, 'UTC'), date_trunc('hour', $3::timestamptz, 'UTC')
        - interval '1 hour', interval '1 hour') as hour)
  insert into usage_hours (application_id, hour, key_id, created, ended, failed, end_reasons, starts, peak, browser_ms, cpu_ms,
    bytes_received, bytes_sent)`;

/**
 * The values of the columns from `created` to `bytes_sent`, for an hour with `n` sessions. The array counts the starts by
 * duration: most took 50 to 75 ms, a few more than 500 ms.
 */
const HOUR_COLUMNS = `n, n, n / 9,
  jsonb_build_object('released', n - n / 9, 'crashed', n / 9),
  array[0, 0, 0, 0, 0, 0, 0, n - n / 6, 0, 0, 0, 0, 0, 0, n / 6, 0, 0, 0, 0, 0, 0, 0, 0],
  n / 2, n * 95000, n * 4100, n * 2500000::bigint, n * 90000`;

/**
 * Inserts ended sessions that started one minute apart, the last one a minute ago. Every ninth session failed. The last
 * pages of the sessions cycle through a hundred sites.
 */
export async function insertSessions(server: TestServer, count: number): Promise<void> {
  await queryRows(server, INSERT_SESSIONS, [server.applicationId, server.now(), count]);
}

const INSERT_SESSIONS = `
  insert into sessions (id, application_id, host_id, key_id, status, region, keep_alive, user_metadata, settings, created_at,
    updated_at, started_at, expires_at, ended_at, end_status, end_reason, end_decided_at, page_url, page_title)
  select (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '7' || lpad(to_hex(n % 4096), 3, '0') || '8000'
      || lpad(to_hex(n), 12, '0'))::uuid, $1, (select id from hosts limit 1),
    (select min(id::text)::uuid from keys where application_id = $1), result, 'local', false,
    jsonb_build_object('customer', n::text, 'run', 'r-' || n % 50), '{}', at, at, at, at + interval '1 hour',
    at + n % 300 * interval '1 second', result, case result when 'ERROR' then 'crashed' else 'released' end, at,
    'https://shop-' || n % 100 || '.example/orders/' || n, 'Order ' || n
  from (select n, $2::timestamptz - n * interval '1 minute' as at, case n % 9 when 0 then 'ERROR' else 'COMPLETED' end as result
    from generate_series(1, $3::int) as n) as invented`;
