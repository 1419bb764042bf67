// Invocations of operations, with their receipts.
import { type Kysely, sql } from 'kysely';

const STATEMENTS = [
  `create table invocations (
    id uuid primary key,
    application_id uuid not null references applications (id),
    key_id uuid not null,
    host_id uuid not null,
    operation_id text not null,
    operation_revision integer not null,
    operation_digest text not null,
    effect text not null check (effect in ('read', 'write', 'irreversible')),
    state text not null check (state in ('accepted', 'dispatched', 'succeeded', 'failed', 'ambiguous', 'cancelled')),
    idempotency_key text,
    request_digest bytea not null,
    sealed_input bytea,
    input_digest text not null,
    output jsonb,
    output_digest text,
    output_until timestamptz(3),
    error jsonb,
    meters jsonb not null default '{}',
    metadata jsonb,
    attempts integer not null default 0,
    session_id uuid,
    receipt_id uuid,
    receipt text,
    created_at timestamptz(3) not null,
    started_at timestamptz(3),
    ended_at timestamptz(3),
    check ((ended_at is null) = (state in ('accepted', 'dispatched'))),
    check ((receipt is null) = (ended_at is null))
  )`,
  'create unique index invocations_idempotent on invocations (key_id, idempotency_key) where idempotency_key is not null',
  'create index invocations_by_key on invocations (application_id, key_id, id)',
  'create index invocations_counted on invocations (key_id, operation_id, created_at)',
  `create index invocations_open on invocations (host_id, id) where state in ('accepted', 'dispatched')`,
  'create unique index invocations_receipts on invocations (receipt_id) where receipt_id is not null',
  'create index invocations_output on invocations (output_until) where output_until is not null',
  'create index invocations_ended on invocations (ended_at) where ended_at is not null',
  // The state, the receipt and the end time of an invocation that has ended never change.
  `create function invocations_guard() returns trigger language plpgsql as $$
  begin
    if old.ended_at is not null and (new.state, new.receipt, new.ended_at) is distinct from (old.state, old.receipt, old.ended_at) then
      raise exception 'invocation % has ended', old.id;
    end if;
    return new;
  end $$`,
  'create trigger invocations_guard before update on invocations for each row execute function invocations_guard()',
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}
