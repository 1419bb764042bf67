// The events of each session. Ids come from one sequence; tables/events.ts explains how readers see them without gaps.
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}

const STATEMENTS = [
  'create type session_actor as (actor_kind text, actor_id text)',
  `create table session_events (
    id bigint generated always as identity primary key,
    application_id uuid not null,
    session_id uuid not null references sessions on delete cascade,
    at timestamptz(3) not null,
    type text not null,
    actor_kind text not null check (actor_kind in ('agentKey', 'client', 'clock', 'operator', 'service', 'browser')),
    actor_id text,
    detail jsonb not null
  )`,
  'create index session_events_by_application on session_events (application_id, id)',
  'create index session_events_by_session on session_events (session_id, id)',
  `create index session_events_ended on session_events (at) where type = 'session.ended'`,

  // Called by the statement that changes the session, so that the change and the event are committed together. The
  // function must not fail where the change itself would not fail. Details that are too long are therefore replaced by
  // a marker. When a session has too many events, one event reports that, and further events are omitted, except the
  // events of the session's end. The advisory lock is shared, so writers do not wait for each other. It is taken before
  // the id is assigned, and held until the commit.
  `create function record_session_event(
    session uuid, application uuid, happened timestamptz, event text, actor text, actor_name text, facts jsonb,
    events_max integer, facts_bytes_max integer, lock_space integer
  ) returns bigint language plpgsql as $$
  declare
    known integer;
    written bigint;
  begin
    if event not in ('session.release_requested', 'session.end_decided', 'session.ended') then
      select count(*) into known
        from (select 1 from session_events where session_id = session limit events_max + 1) as counted;
      if known > events_max then
        return null;
      end if;
      if known = events_max then
        event := 'session.events_limited';
        actor := 'service';
        actor_name := null;
        facts := jsonb_build_object('limit', events_max);
      end if;
    end if;
    if octet_length(facts::text) > facts_bytes_max then
      facts := jsonb_build_object('cut', true);
    end if;
    perform pg_advisory_xact_lock_shared(lock_space, hashtext(application::text));
    insert into session_events (application_id, session_id, at, type, actor_kind, actor_id, detail)
      values (application, session, happened, event, actor, actor_name, facts)
      returning id into written;
    return written;
  end
  $$`,
];
