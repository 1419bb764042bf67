// Contexts, their versions, and the sessions that will save into a context.
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}

const STATEMENTS = [
  // A context whose key was removed counts as destroyed. Its row stays until its stored objects are deleted.
  `create table contexts (
    id uuid primary key,
    application_id uuid not null references applications,
    name text,
    wrapped_key bytea,
    version integer not null default 0 check (version >= 0),
    size_bytes bigint not null default 0,
    last_session_id uuid,
    created_at timestamptz(3) not null,
    updated_at timestamptz(3) not null
  )`,
  'create index contexts_by_application on contexts (application_id, id)',
  'create unique index contexts_named on contexts (application_id, lower(name)) where wrapped_key is not null',
  'create index contexts_destroyed on contexts (id) where wrapped_key is null',

  // The objects of a version are stored under the id of the version while its state is 'writing', so that the objects
  // of an interrupted save can be found. A later version may share the archive or the cookies of an earlier version;
  // `archive_of` and `cookies_of` contain the id of that version.
  `create table context_versions (
    id uuid primary key,
    context_id uuid not null references contexts,
    application_id uuid not null,
    state text not null check (state in ('writing', 'kept', 'gone')),
    version integer check (version > 0),
    source text not null check (source in ('session', 'restore', 'fork', 'import')),
    session_id uuid,
    partial boolean not null,
    size_bytes bigint not null default 0,
    archive_of uuid,
    archive_checksum bytea check (length(archive_checksum) = 32),
    cookies_of uuid,
    created_at timestamptz(3) not null,
    due_at timestamptz(3),
    check ((state = 'writing') = (version is null) or state = 'gone')
  )`,
  'create unique index context_versions_numbered on context_versions (context_id, version)',
  'create index context_versions_due on context_versions (due_at) where due_at is not null',

  // There is no foreign key to sessions, because this row is written before the row of the session.
  `create table context_uses (
    session_id uuid primary key,
    context_id uuid not null references contexts,
    application_id uuid not null,
    host_id uuid not null references hosts,
    exclusive boolean not null,
    from_version integer,
    created_at timestamptz(3) not null,
    saving_since timestamptz(3),
    tries integer not null default 0,
    due_at timestamptz(3)
  )`,
  'create unique index context_uses_exclusive on context_uses (context_id) where exclusive',
  'create index context_uses_by_context on context_uses (context_id)',
];
