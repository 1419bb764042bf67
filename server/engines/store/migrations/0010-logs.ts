// The log of each session, in chunks of lines. The last chunk of a session is rewritten until it is full. session_pages
// numbers the pages of each session, for both logs and recordings.
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}

const STATEMENTS = [
  `create table log_chunks (
    application_id uuid not null,
    session_id uuid not null references sessions on delete cascade,
    first bigint not null check (first > 0),
    last bigint not null check (last >= first),
    kinds jsonb not null,
    lines bytea not null,
    written_at timestamptz(3) not null,
    primary key (session_id, first)
  ) with (fillfactor = 70)`,
  // PostgreSQL need not compress the lines, because they are compressed already.
  'alter table log_chunks alter column lines set storage external',
  'create index log_chunks_by_age on log_chunks (written_at)',

  `create table session_pages (
    application_id uuid not null,
    session_id uuid not null references sessions on delete cascade,
    number integer not null check (number between 0 and 999),
    target_id text not null,
    appeared_at timestamptz(3) not null,
    primary key (session_id, number),
    unique (session_id, target_id)
  )`,
];
