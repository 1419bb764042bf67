// Limits of applications, idempotency keys, and whether the response to a create was delivered.
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}

const STATEMENTS = [
  // Every application has a row. Admissions lock it.
  `create table application_limits (
    application_id uuid primary key references applications,
    configured jsonb not null default '{}',
    revision integer not null default 1 check (revision > 0),
    updated_at timestamptz(3) not null
  )`,
  'insert into application_limits (application_id, updated_at) select id, created_at from applications',

  // Contains only digests of the key and the request, so that neither can be recovered from this table. `kept` is json,
  // not jsonb: the stored response keeps the order of its fields.
  `create table idempotency (
    owner uuid not null,
    key_digest bytea not null check (length(key_digest) = 32),
    run uuid not null,
    request_digest bytea not null check (length(request_digest) = 32),
    operation text not null,
    host_id uuid not null references hosts,
    session_id uuid references sessions,
    kept json,
    created_at timestamptz(3) not null,
    expires_at timestamptz(3) not null,
    primary key (owner, key_digest)
  )`,
  'create index idempotency_expired on idempotency (expires_at)',
  'create index idempotency_by_session on idempotency (session_id) where session_id is not null',

  `alter table sessions
    add create_digest bytea check (length(create_digest) = 32),
    add answer text check (answer in ('owed', 'lost')),
    add check (answer is null or create_digest is not null)`,
  'create index sessions_unanswered on sessions (key_id, create_digest) where answer is not null',
  `create index sessions_living on sessions (application_id) where status in ('PENDING', 'RUNNING')`,
];
