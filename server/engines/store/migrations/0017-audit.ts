// The audit log and its seals: rows are added and never changed. Rows older than 400 days may be removed.
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}

const NIL = '00000000-0000-0000-0000-000000000000';
/** Each advisory lock is identified by two keys: this one, and a hash of the chain. */
const LOCK_SPACE = 1_655_271_029;

const STATEMENTS = [
  // The entries of one chain are numbered and sealed together. A chain contains the entries of one application or, with
  // the nil id, the entries that concern no application.
  `create table audit_entries (
    id uuid primary key,
    application_id uuid,
    chain uuid not null generated always as (coalesce(application_id, '${NIL}')) stored,
    number bigint not null,
    account_id uuid,
    at timestamptz(3) not null,
    action text not null,
    actor_kind text not null check (actor_kind in ('account', 'agent_key', 'operator', 'anonymous')),
    actor_id text,
    actor_name text,
    via_kind text,
    via_id text,
    target_kind text,
    target_id text,
    outcome text not null check (outcome in ('success', 'refused')),
    ip text,
    user_agent text,
    request_id text,
    details jsonb not null check (octet_length(details::text) <= 8192)
  )`,
  'create unique index audit_entries_numbered on audit_entries (chain, number)',

  `create table audit_seals (
    chain uuid not null,
    number bigint not null check (number > 0),
    first_number bigint not null,
    last_number bigint not null check (last_number >= first_number),
    row_digests bytea[] not null,
    jws text not null,
    at timestamptz(3) not null,
    primary key (chain, number)
  )`,

  // Numbers have no gaps and follow the order of commits: an insert holds the lock of the chain until its commit.
  `create function number_audit_entry() returns trigger language plpgsql as $$
  declare
    of_chain uuid := coalesce(new.application_id, '${NIL}');
  begin
    perform pg_advisory_xact_lock(${LOCK_SPACE}, hashtext(of_chain::text));
    new.number := 1 + greatest(
      coalesce((select max(number) from audit_entries where chain = of_chain), 0),
      coalesce((select last_number from audit_seals where chain = of_chain order by number desc limit 1), 0));
    return new;
  end
  $$`,
  `create trigger audit_entries_number before insert on audit_entries
    for each row execute function number_audit_entry()`,

  `create function refuse_audit_change() returns trigger language plpgsql as $$
  begin
    if tg_op = 'DELETE' then
      if old.at < now() - interval '400 days' then
        return old;
      end if;
    end if;
    raise exception 'rows of % are never changed, and not removed before 400 days', tg_table_name
      using errcode = 'insufficient_privilege';
  end
  $$`,
  ...['audit_entries', 'audit_seals'].flatMap(table => [
    `create trigger ${table}_kept before update or delete on ${table}
      for each row execute function refuse_audit_change()`,
    `create trigger ${table}_not_truncated before truncate on ${table}
      for each statement execute function refuse_audit_change()`,
  ]),

  // A role without the DELETE privilege can remove rows only with this function, which removes only old rows. The
  // newest seal that is old enough is kept as the beginning of the chain, and entries are removed only up to it.
  `create function forget_audit(batch integer) returns integer
    language plpgsql security definer as $$
  declare
    oldest timestamptz := now() - interval '400 days';
    entries integer;
    seals integer;
  begin
    delete from audit_entries where id in (
      select old.id from audit_entries old
        join (select chain, max(last_number) as last from audit_seals where at < oldest group by chain) anchor
          on anchor.chain = old.chain and old.number <= anchor.last
        where old.at < oldest
        limit batch);
    get diagnostics entries = row_count;
    delete from audit_seals where (chain, number) in (
      select old.chain, old.number from audit_seals old
        join (select chain, max(number) as last from audit_seals where at < oldest group by chain) anchor
          on anchor.chain = old.chain and old.number < anchor.last
        limit batch);
    get diagnostics seals = row_count;
    return entries + seals;
  end
  $$`,
  'revoke execute on function forget_audit(integer) from public',
  // The function runs with the privileges of its owner, so it must not search schemas in which others may create
  // objects.
  `do $$ begin
    execute format('alter function forget_audit(integer) set search_path = %I, pg_temp', current_schema());
  end $$`,
];
