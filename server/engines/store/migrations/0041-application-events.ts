// Events of an application that belong to no session, such as the end of an invocation or the publication of an
// operation. They and the events of the application's sessions have one common order, because both take their ids from
// the same sequence under the same lock.
import { type Kysely, sql } from 'kysely';

const STATEMENTS = [
  'alter table session_events alter column session_id drop not null',
  'alter table session_events drop constraint session_events_actor_kind_check',
  `alter table session_events add constraint session_events_actor_kind_check
    check (actor_kind in ('agentKey', 'client', 'clock', 'operator', 'service', 'browser', 'viewer', 'account'))`,
  'create index session_events_without_session on session_events (at) where session_id is null',
  // Like record_session_event, this function is called last by the statement or transaction that makes the change that
  // the event reports.
  `create function record_application_event(
    application uuid, happened timestamptz, event text, actor text, actor_name text, facts jsonb,
    facts_bytes_max integer, lock_space integer
  ) returns bigint language plpgsql as $$
  declare
    written bigint;
  begin
    if octet_length(facts::text) > facts_bytes_max then
      facts := jsonb_build_object('cut', true);
    end if;
    perform pg_advisory_xact_lock_shared(lock_space, hashtext(application::text));
    insert into session_events (application_id, session_id, at, type, actor_kind, actor_id, detail)
      values (application, null, happened, event, actor, actor_name, facts)
      returning id into written;
    return written;
  end
  $$`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}
