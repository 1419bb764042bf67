// Which person, if any, has taken control of a session. The fence increases each time control changes. Increasing the
// epoch revokes the links that were issued.
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}

const STATEMENTS = [
  `create table session_controls (
    session_id uuid primary key references sessions on delete cascade,
    application_id uuid not null,
    fence bigint not null default 0,
    link_epoch integer not null default 0,
    holder uuid,
    expires_at timestamptz(3),
    check ((holder is null) = (expires_at is null))
  )`,
  'alter table session_events drop constraint session_events_actor_kind_check',
  `alter table session_events add constraint session_events_actor_kind_check
    check (actor_kind in ('agentKey', 'client', 'clock', 'operator', 'service', 'browser', 'viewer'))`,
];
