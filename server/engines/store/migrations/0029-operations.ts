// Operations that applications configure, and the credentials that they use.
import { type Kysely, sql } from 'kysely';

const STATEMENTS = [
  // A deleted operation keeps its row, so that a revision number is never used twice.
  `create table operations (
    application_id uuid not null references applications (id),
    id text not null,
    kind text not null check (kind in ('managed', 'http')),
    status text not null check (status in ('draft', 'published', 'withdrawn', 'deleted')),
    revision integer not null,
    published_revision integer,
    created_at timestamptz(3) not null,
    updated_at timestamptz(3) not null,
    primary key (application_id, id)
  )`,
  // In the name of an operation's tool, the dots of the id are replaced by `_`. No two operations may have the same
  // tool name.
  `create unique index operations_tool_names on operations (application_id, replace(id, '.', '_')) where status <> 'deleted'`,
  // The type is json, not jsonb, because json keeps the order of members.
  `create table operation_revisions (
    application_id uuid not null,
    operation_id text not null,
    revision integer not null,
    digest text not null,
    definition json not null,
    credential_id text,
    created_at timestamptz(3) not null,
    primary key (application_id, operation_id, revision),
    foreign key (application_id, operation_id) references operations (application_id, id)
  )`,
  'create index operation_revisions_credentials on operation_revisions (application_id, credential_id) where credential_id is not null',
  'alter table invocations add column output_invalid boolean',
  // A deleted credential keeps its row, so that a version number is never used twice.
  `create table stored_credentials (
    application_id uuid not null references applications (id),
    id text not null,
    version integer not null,
    revision integer not null,
    created_at timestamptz(3) not null,
    rotated_at timestamptz(3) not null,
    last_used_at timestamptz(3),
    deleted_at timestamptz(3),
    primary key (application_id, id)
  )`,
  `create table stored_credential_versions (
    application_id uuid not null,
    credential_id text not null,
    version integer not null,
    type text not null,
    label text,
    hosts text[] not null,
    origins text[] not null,
    expires_at timestamptz(3),
    fingerprint text not null,
    sealed bytea not null,
    created_at timestamptz(3) not null,
    destroy_at timestamptz(3),
    primary key (application_id, credential_id, version),
    foreign key (application_id, credential_id) references stored_credentials (application_id, id)
  )`,
  'create index stored_credential_versions_due on stored_credential_versions (destroy_at) where destroy_at is not null',
  // The number of calls per day with a stored credential. A row is deleted when the audit log gets an entry about these
  // calls.
  `create table stored_credential_uses (
    application_id uuid not null,
    credential_id text not null,
    operation_id text not null,
    key_id uuid not null,
    day date not null,
    calls integer not null,
    primary key (day, application_id, credential_id, operation_id, key_id)
  )`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}
