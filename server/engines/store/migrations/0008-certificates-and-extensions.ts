// Certificate authorities and extensions that applications uploaded for their sessions.
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}

const STATEMENTS = [
  `create table certificates (
    id uuid primary key,
    application_id uuid not null references applications,
    ders bytea[] not null check (cardinality(ders) > 0),
    subjects text[] not null check (cardinality(subjects) = cardinality(ders)),
    fingerprints text[] not null check (cardinality(fingerprints) = cardinality(ders)),
    not_after timestamptz(3) not null,
    created_at timestamptz(3) not null
  )`,
  'create index certificates_by_application on certificates (application_id, id)',

  // One row for each stored file. It is written before the file and deleted after it.
  `create table extension_files (
    application_id uuid not null references applications,
    checksum text not null check (checksum ~ '^[0-9a-f]{64}$'),
    used_at timestamptz(3) not null,
    primary key (application_id, checksum)
  )`,
  `create table extensions (
    id uuid primary key,
    application_id uuid not null,
    checksum text not null,
    file_name text not null,
    size bigint not null check (size > 0),
    name text not null,
    version text not null,
    manifest_version integer not null,
    own_id text,
    created_at timestamptz(3) not null,
    used_at timestamptz(3) not null,
    foreign key (application_id, checksum) references extension_files
  )`,
  'create index extensions_by_application on extensions (application_id, id)',
  'create index extensions_by_file on extensions (application_id, checksum)',
  'create index extensions_by_use on extensions (used_at)',
];
