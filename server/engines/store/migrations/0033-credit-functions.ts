// Functions that hold and settle credit. The server calls each function in one statement, and each connection caches
// the plans of the function's statements. Each function locks the balance of the account first, then the reservation.
import { type Kysely, sql } from 'kysely';

const AMOUNT_MAX = Number.MAX_SAFE_INTEGER;
const MEGABYTE = 1_000_000;

const STATEMENTS = [
  // Returns null if the credit is now held. Otherwise changes nothing and returns the amount that the account has
  // available.
  `create function hold_credit(
    reservation uuid, application uuid, host uuid, kind text, purpose uuid, agent_key uuid, operation text, sum bigint,
    browser_second bigint, egress_megabyte bigint, happened timestamptz, due timestamptz, entry uuid
  ) returns bigint language plpgsql as $$
  declare
    account uuid;
    free bigint;
  begin
    select account_id, available into account, free from credit_balances
      where account_id = (select billing_account_id from applications where id = application) for update;
    if free is null or free < sum then
      return coalesce(free, 0);
    end if;
    insert into credit_reservations (id, account_id, application_id, host_id, purpose_kind, purpose_id, key_id,
        operation_id, amount, status, rate_browser_second, rate_egress_megabyte, created_at, due_at)
      values (reservation, account, application, host, kind, purpose, agent_key, operation, sum, 'held', browser_second,
        egress_megabyte, happened, due);
    insert into credit_entries (id, account_id, application_id, type, available, reserved, reservation_id, at)
      values (entry, account, application, 'hold', -sum, sum, reservation, happened);
    return null;
  end $$`,

  // Returns the total amount that was captured. Null if nothing is held for this purpose.
  `create function settle_credit(
    purpose uuid, cost bigint, may_exceed boolean, used_seconds bigint, used_bytes bigint, is_expired boolean,
    happened timestamptz, entry uuid
  ) returns bigint language plpgsql as $$
  declare
    free bigint;
    held credit_reservations;
    total bigint;
  begin
    select available into free from credit_balances
      where account_id = (select account_id from credit_reservations where purpose_id = purpose and status = 'held')
      for update;
    if not found then
      return null;
    end if;
    -- In a statement of its own, which sees what was committed while the first one waited.
    select * into held from credit_reservations where purpose_id = purpose and status = 'held' for update;
    if not found then
      return null;
    end if;
    total := greatest(held.captured, least(cost, held.amount + case when may_exceed then free else 0 end));
    update credit_reservations
      set amount = greatest(amount, total), captured = total,
        status = case when total > 0 then 'captured' when is_expired then 'expired' else 'released' end,
        seconds = coalesce(used_seconds, seconds), bytes = coalesce(used_bytes, bytes),
        metered_at = happened, settled_at = happened, due_at = null, expires_at = null
      where id = held.id;
    if held.amount <> total or held.captured <> held.amount then
      insert into credit_entries (id, account_id, application_id, type, available, reserved, revenue, reservation_id, at)
        values (entry, held.account_id, held.application_id,
          case when is_expired then 'expire' when total > held.captured then 'capture' else 'release' end,
          held.amount - total, held.captured - held.amount, total - held.captured, held.id, happened);
    end if;
    return total;
  end $$`,

  // Settles the credit that is held for a session. The cost is calculated with the rates in the reservation, in the
  // same way as in kit/metered-cost.ts. A session with the end reason `service_restart` is charged up to its last
  // metering. Always returns true, so that it can be part of a condition.
  `create function settle_session(session uuid, ended timestamptz, entry uuid) returns boolean language plpgsql as $$
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
    counted_to := case when why = 'service_restart' then coalesce(held.metered_at, began, ended) else ended end;
    counted := greatest(0, ceil(coalesce(extract(epoch from counted_to - began), 0)::numeric));
    perform settle_credit(session,
      least(${AMOUNT_MAX}, counted * held.rate_browser_second
        + div(moved::numeric * held.rate_egress_megabyte + ${MEGABYTE - 1}, ${MEGABYTE}))::bigint,
      true, counted::bigint, moved, false, ended, entry);
    return true;
  end $$`,

  // Keeps the credit held until it is settled, or at most until this time. Always returns true, so that it can be part
  // of a condition.
  `create function keep_credit(purpose uuid, until_time timestamptz) returns boolean language plpgsql as $$
  begin
    perform 1 from credit_balances
      where account_id = (select account_id from credit_reservations where purpose_id = purpose and status = 'held')
      for update;
    if found then
      update credit_reservations set expires_at = until_time where purpose_id = purpose and status = 'held';
    end if;
    return true;
  end $$`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}
