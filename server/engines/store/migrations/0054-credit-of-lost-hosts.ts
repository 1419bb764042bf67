// A session with the end reason `host_lost` is charged like a session with the end reason `service_restart`: up to its
// last metering. It is not known how long its browser ran after that.
import { type Kysely, sql } from 'kysely';

const AMOUNT_MAX = Number.MAX_SAFE_INTEGER;
const MEGABYTE = 1_000_000;

/**
 * Replaces the function of migration 0033. Sessions with the end reason `host_lost` are now also charged only up to
 * their last metering.
 */
const REPLACE_SETTLE_SESSION = `create or replace function settle_session(session uuid, ended timestamptz, entry uuid) returns boolean language plpgsql as $$
declare
  held credit_reservations;
  began timestamptz;
  why text;
  moved bigint;
  counted_to timestamptz;
  counted numeric;
begin
  perform 1 from credit_balances
    where account_id = (select account_id from credit_reservations where purpose_id = session and status = 'held')
    for update;
  if not found then
    return true;
  end if;
  select * into held from credit_reservations where purpose_id = session and status = 'held' for update;
  if not found then
    return true;
  end if;
  select started_at, end_reason, greatest(egress_bytes, coalesce(bytes_received + bytes_sent, 0))
    into began, why, moved
    from sessions left join session_usage on session_usage.session_id = sessions.id where sessions.id = session;
  counted_to := case when why in ('service_restart', 'host_lost') then coalesce(held.metered_at, began, ended) else ended end;
  counted := greatest(0, ceil(coalesce(extract(epoch from counted_to - began), 0)::numeric));
  perform settle_credit(session,
    least(${AMOUNT_MAX}, counted * held.rate_browser_second
      + div(moved::numeric * held.rate_egress_megabyte + ${MEGABYTE - 1}, ${MEGABYTE}))::bigint,
    true, counted::bigint, moved, false, ended, entry);
  return true;
end $$`;

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(REPLACE_SETTLE_SESSION).execute(db);
}
