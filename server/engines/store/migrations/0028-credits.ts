// Credit: a double-entry ledger for each account, reservations, and checkouts.
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}

const BOOKS = ['funding', 'available', 'reserved', 'revenue', 'promo'];
const AMOUNT_MAX = Number.MAX_SAFE_INTEGER;
const SUM = BOOKS.join(' + ');

const STATEMENTS = [
  // The sums of an account's ledger entries. A transaction that holds or settles credit locks this row first.
  `create table credit_balances (
    account_id uuid primary key references accounts,
    ${BOOKS.map(book => `${book} bigint not null default 0 check (${book} between -${AMOUNT_MAX} and ${AMOUNT_MAX})`).join(', ')},
    is_low boolean not null default false,
    constraint credit_available check (available >= 0),
    constraint credit_reserved check (reserved >= 0),
    check (revenue >= 0 and funding <= 0 and promo <= 0),
    check (${SUM} = 0)
  )`,

  // The credit that is held for one session or invocation.
  `create table credit_reservations (
    id uuid primary key,
    account_id uuid not null references accounts,
    application_id uuid not null references applications,
    host_id uuid not null,
    purpose_kind text not null check (purpose_kind in ('session', 'invocation')),
    purpose_id uuid not null,
    key_id uuid,
    operation_id text,
    amount bigint not null check (amount between 1 and ${AMOUNT_MAX}),
    captured bigint not null default 0 check (captured between 0 and amount),
    status text not null check (status in ('held', 'captured', 'released', 'expired')),
    rate_browser_second bigint not null check (rate_browser_second >= 0),
    rate_egress_megabyte bigint not null check (rate_egress_megabyte >= 0),
    seconds bigint not null default 0,
    bytes bigint not null default 0,
    created_at timestamptz(3) not null,
    expires_at timestamptz(3),
    metered_at timestamptz(3),
    due_at timestamptz(3),
    low_at timestamptz(3),
    settled_at timestamptz(3),
    check ((settled_at is null) = (status = 'held')),
    check (captured = 0 or status in ('held', 'captured'))
  )`,
  'create unique index credit_reservations_purpose on credit_reservations (purpose_id)',
  `create index credit_reservations_due on credit_reservations (host_id, due_at) where status = 'held'`,
  `create index credit_reservations_held on credit_reservations (application_id, id desc) where status = 'held'`,

  // Each row is one ledger entry, with the amount that it adds to each book. Rows are added and never changed.
  `create table credit_entries (
    id uuid primary key,
    account_id uuid not null references credit_balances,
    application_id uuid references applications,
    type text not null check (type in ('fund', 'grant', 'hold', 'extend', 'capture', 'release', 'expire')),
    ${BOOKS.map(book => `${book} bigint not null default 0 check (${book} between -${AMOUNT_MAX} and ${AMOUNT_MAX})`).join(', ')},
    reservation_id uuid references credit_reservations,
    checkout_id uuid,
    reason text check (length(reason) <= 200),
    at timestamptz(3) not null,
    constraint credit_legs check (${SUM} = 0)
  )`,
  'create index credit_entries_list on credit_entries (application_id, id desc)',
  'create index credit_entries_account on credit_entries (account_id, id desc)',
  'create index credit_entries_reservation on credit_entries (reservation_id)',
  'create unique index credit_entries_checkout on credit_entries (checkout_id) where checkout_id is not null',

  // A balance is the sum of the account's entries. Only this trigger changes it.
  `create function post_credit_entry() returns trigger language plpgsql as $$
  begin
    update credit_balances set ${BOOKS.map(book => `${book} = ${book} + new.${book}`).join(', ')}
      where account_id = new.account_id;
    return null;
  end $$`,
  `create trigger credit_entries_post after insert on credit_entries
    for each row execute function post_credit_entry()`,
  `create function credit_balances_guard() returns trigger language plpgsql as $$
  begin
    if tg_op = 'INSERT' and (${BOOKS.map(book => `new.${book}`).join(', ')}) is distinct from (0, 0, 0, 0, 0) then
      raise exception 'a balance begins with 0' using errcode = 'insufficient_privilege';
    end if;
    if tg_op = 'DELETE' or (tg_op = 'UPDATE' and pg_trigger_depth() < 2 and
        (new.account_id, ${BOOKS.map(book => `new.${book}`).join(', ')}) is distinct from
        (old.account_id, ${BOOKS.map(book => `old.${book}`).join(', ')})) then
      raise exception 'a balance is changed by entries only' using errcode = 'insufficient_privilege';
    end if;
    return new;
  end $$`,
  `create trigger credit_balances_guard before insert or update or delete on credit_balances
    for each row execute function credit_balances_guard()`,

  `create function refuse_credit_change() returns trigger language plpgsql as $$
  begin
    raise exception 'rows of % are never changed or removed', tg_table_name using errcode = 'insufficient_privilege';
  end $$`,
  `create trigger credit_entries_kept before update or delete on credit_entries
    for each row execute function refuse_credit_change()`,
  ...['credit_entries', 'credit_balances', 'credit_reservations'].map(
    table => `create trigger ${table}_not_truncated before truncate on ${table}
      for each statement execute function refuse_credit_change()`,
  ),

  // held -> captured | released | expired, once. Nothing that was captured is given back.
  `create function credit_reservations_guard() returns trigger language plpgsql as $$
  begin
    if tg_op = 'DELETE' then
      raise exception 'reservations are never removed' using errcode = 'insufficient_privilege';
    end if;
    if old.status <> 'held' then
      raise exception 'the reservation % was settled', old.id using errcode = 'insufficient_privilege';
    end if;
    if new.captured < old.captured or new.amount < old.amount or
        (new.id, new.account_id, new.application_id, new.purpose_id) is distinct from
        (old.id, old.account_id, old.application_id, old.purpose_id) then
      raise exception 'the reservation % never shrinks', old.id using errcode = 'insufficient_privilege';
    end if;
    return new;
  end $$`,
  `create trigger credit_reservations_guard before update or delete on credit_reservations
    for each row execute function credit_reservations_guard()`,

  `create table credit_checkouts (
    id uuid primary key,
    account_id uuid not null references accounts,
    application_id uuid not null references applications,
    opened_by uuid not null references accounts,
    provider text not null,
    pack_id text not null,
    amount bigint not null check (amount between 1 and ${AMOUNT_MAX}),
    bonus bigint not null check (bonus between 0 and ${AMOUNT_MAX}),
    price bigint not null check (price >= 0),
    currency text not null,
    reference text not null unique,
    status text not null check (status in ('open', 'credited', 'cancelled', 'expired')),
    created_at timestamptz(3) not null,
    expires_at timestamptz(3) not null,
    ended_at timestamptz(3),
    check ((ended_at is null) = (status = 'open'))
  )`,
  'create index credit_checkouts_list on credit_checkouts (application_id, id desc)',
  `create index credit_checkouts_open on credit_checkouts (expires_at) where status = 'open'`,
  `create function credit_checkouts_guard() returns trigger language plpgsql as $$
  begin
    if old.status <> 'open' then
      raise exception 'the checkout % has ended', old.id;
    end if;
    return new;
  end $$`,
  `create trigger credit_checkouts_guard before update on credit_checkouts
    for each row execute function credit_checkouts_guard()`,

  'alter table invocations add column max_cost bigint check (max_cost >= 0)',
  'alter table invocations add column reserved bigint not null default 0',
  'alter table invocations add column captured bigint not null default 0',
];
