// The usage of each application in each hour, in total and by agent key. Sessions are deleted sooner than these rows.
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}

const STATEMENTS = [
  // A row without a key is the total of the whole application. `key_id` is not a foreign key, because a key may be
  // deleted later.
  `create table usage_hours (
    application_id uuid not null references applications,
    hour timestamptz(3) not null,
    key_id uuid,
    created integer not null,
    ended integer not null,
    failed integer not null,
    end_reasons jsonb not null,
    starts integer[] not null,
    peak integer not null,
    browser_ms bigint not null,
    cpu_ms bigint not null,
    bytes_received bigint not null,
    bytes_sent bigint not null
  )`,
  'create unique index usage_hours_totals on usage_hours (application_id, hour) where key_id is null',
  'create unique index usage_hours_keys on usage_hours (application_id, hour, key_id) where key_id is not null',
  'create index usage_hours_by_hour on usage_hours (hour)',
  // A table with a single row. All hours before `until` are summed in usage_hours.
  `create table usage_summed (
    one boolean primary key default true check (one),
    until timestamptz(3) not null
  )`,
  // For finding the sessions that ran in an hour: those that had not ended before the hour began.
  'create index sessions_by_end on sessions (ended_at)',
];
