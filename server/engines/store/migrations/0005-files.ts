// Files of sessions: uploads by callers, downloads by browsers, and staged files that are to be stored. Sessions get
// the times at which their files, and later their rows, are due for deletion.
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}

const CHECKSUM_TYPE = 'text check (length(checksum) = 64)';

const STATEMENTS = [
  // A file that a host has staged, and that is to be stored under `key`. The file is created before the row and removed
  // after it, so that no row is without its file.
  `create table outbox (
    id uuid primary key,
    application_id uuid not null references applications,
    host_id uuid not null references hosts,
    key text not null,
    staged text not null,
    content_type text,
    attempts integer not null default 0,
    due_at timestamptz(3) not null,
    created_at timestamptz(3) not null
  )`,
  'create index outbox_due on outbox (host_id, due_at)',
  'create index outbox_by_key on outbox (application_id, key text_pattern_ops)',

  `create table uploads (
    id uuid primary key,
    application_id uuid not null references applications,
    session_id uuid not null references sessions on delete cascade,
    name text not null,
    size bigint not null check (size >= 0),
    checksum ${CHECKSUM_TYPE} not null,
    created_at timestamptz(3) not null,
    unique (session_id, name)
  )`,

  // Callers see only downloads in the state `complete`. The server has the files of these downloads.
  `create table downloads (
    id uuid primary key,
    application_id uuid not null references applications,
    session_id uuid not null references sessions on delete cascade,
    host_id uuid not null references hosts,
    guid text not null,
    state text not null check (state in ('running', 'complete', 'failed')),
    filename text not null,
    mime_type text,
    size bigint check (size >= 0),
    checksum ${CHECKSUM_TYPE},
    failure text,
    created_at timestamptz(3) not null,
    finished_at timestamptz(3),
    unique (session_id, guid),
    check (state <> 'complete' or (mime_type is not null and size is not null and checksum is not null))
  )`,
  `create index downloads_list on downloads (session_id, created_at, id) where state = 'complete'`,
  `create index downloads_unfinished on downloads (host_id) where state = 'running'`,

  `alter table sessions
    add files_due_at timestamptz(3),
    add forget_due_at timestamptz(3)`,
  `update sessions set files_due_at = ended_at + interval '31 days', forget_due_at = ended_at + interval '90 days'
    where ended_at is not null`,
  'create index sessions_files_due on sessions (files_due_at) where files_due_at is not null',
  'create index sessions_forget_due on sessions (forget_due_at) where forget_due_at is not null',
];
