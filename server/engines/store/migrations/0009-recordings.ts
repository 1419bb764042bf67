// Recordings of the pages of sessions, in segments, and the files assembled from them.
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}

const PAGE = 'foreign key (session_id, page) references recording_pages on delete cascade';

const STATEMENTS = [
  // `stored`: the recording of the page has ended, and all of it is stored.
  `create table recording_pages (
    session_id uuid not null references sessions on delete cascade,
    page integer not null check (page between 0 and 999),
    started_at timestamptz(3) not null,
    stored boolean not null default false,
    primary key (session_id, page)
  )`,
  `create table recording_segments (
    session_id uuid not null,
    page integer not null,
    sequence integer not null,
    run integer not null,
    start_ms integer not null,
    duration_ms integer not null check (duration_ms > 0),
    width integer not null,
    height integer not null,
    bytes integer not null,
    payload_at integer not null,
    samples jsonb not null,
    primary key (session_id, page, sequence),
    ${PAGE}
  )`,
  // A run consists of the segments that share an init segment. `checksum` identifies the init segment.
  `create table recording_runs (
    session_id uuid not null,
    page integer not null,
    run integer not null,
    checksum text not null,
    primary key (session_id, page, run),
    unique (session_id, page, checksum),
    ${PAGE}
  )`,
  `create table recording_spans (
    session_id uuid not null,
    page integer not null,
    kind text not null check (kind in ('hidden', 'missing')),
    from_ms integer not null,
    to_ms integer not null,
    why text,
    primary key (session_id, page, kind, from_ms),
    ${PAGE}
  )`,
  `create table recording_files (
    session_id uuid not null,
    page integer not null,
    host_id uuid not null references hosts,
    state text not null check (state in ('PENDING', 'COMPLETED', 'FAILED')),
    assembly uuid not null,
    size bigint,
    attempts integer not null default 0,
    requested_at timestamptz(3) not null,
    completed_at timestamptz(3),
    failure text,
    primary key (session_id, page),
    ${PAGE}
  )`,
  `create index recording_files_pending on recording_files (host_id, requested_at) where state = 'PENDING'`,
];
