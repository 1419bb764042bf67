// A function that places a session. The server calls it in one statement, and each connection caches the plans of the
// function's statements. tables/place.ts describes the arguments and the result.
import { type Kysely, sql } from 'kysely';

// Each statement of the function sees everything that was committed before the statement began. Sessions are therefore
// counted after the locks have been taken, and the locks are held until the commit. The advisory lock of the event is
// taken last, because readers of events wait for it.
const CREATE_PLACE_SESSION = `create function place_session(
  new_session uuid, application uuid, host uuid, agent_key uuid, at_region text, keeps_alive boolean, metadata jsonb,
  set_to jsonb, created timestamptz, expires timestamptz, first_connect timestamptz, digest bytea,
  limits_revision integer, created_after timestamptz, first_id uuid, living_below bigint, created_below bigint,
  egress_below bigint,
  line_seconds integer, line_turn integer, line_place bigint,
  hold_id uuid, hold_sum bigint, browser_second bigint, egress_megabyte bigint, hold_due timestamptz, hold_entry uuid,
  run_owner uuid, run_key bytea, run_id uuid,
  facts jsonb, facts_bytes_max integer, lock_space integer,
  out outcome text, out living bigint, out made bigint, out oldest timestamptz, out moved bigint, out behind jsonb,
  out slots integer, out used bigint, out available bigint
) language plpgsql as $$
declare
  takes boolean;
  host_region text;
begin
  if limits_revision is not null then
    perform 1 from application_limits where application_id = application and revision = limits_revision for no key update;
    if not found then
      outcome := 'changed';
      return;
    end if;
  end if;

  select hosts.slots, not draining and state in ('up', 'alone'), region into slots, takes, host_region
    from hosts where id = host for no key update;
  if not found then
    raise exception 'there is no host %', host;
  end if;
  if not takes then
    slots := 0;
  end if;
  select count(*) into used from sessions where host_id = host and status in ('PENDING', 'RUNNING');

  if limits_revision is not null then
    select count(*), min(created_at),
        (select count(*) from sessions where application_id = application and status in ('PENDING', 'RUNNING')),
        coalesce((select bytes from egress_days
          where application_id = application and day = (created at time zone 'UTC')::date), 0)
      into made, oldest, living, moved
      from sessions where application_id = application and created_at > created_after and id >= first_id;
    if living >= living_below or made >= created_below or moved >= egress_below then
      outcome := 'over';
      return;
    end if;
  end if;

  -- Creates that wait and come first: those of the application for its limits, and all others for a slot of this host.
  if line_seconds is not null then
    select used + count(*) filter (where why = 'host' and (region is null or region = host_region)),
        (array_agg(refused order by turn, place) filter (where why <> 'host' and application_id = application))[1]
      into used, behind
      from waiting_creates
      where seen_at > now() - make_interval(secs => line_seconds)
        and (line_place is null or (turn, place) < (line_turn, line_place));
    if behind is not null then
      outcome := 'behind';
      return;
    end if;
  end if;

  if used >= slots then
    outcome := 'full';
    return;
  end if;

  if hold_id is not null then
    available := hold_credit(hold_id, application, host, 'session', new_session, agent_key, null, hold_sum, browser_second,
      egress_megabyte, created, hold_due, hold_entry);
    if available is not null then
      outcome := 'short';
      return;
    end if;
  end if;

  insert into sessions (id, application_id, host_id, key_id, status, region, keep_alive, user_metadata, settings, created_at,
      updated_at, expires_at, connect_by, create_digest, answer)
    values (new_session, application, host, agent_key, 'PENDING', at_region, keeps_alive, metadata, set_to, created, created,
      expires, first_connect, digest, case when digest is not null then 'owed' end);
  if run_id is not null then
    update idempotency set session_id = new_session where owner = run_owner and key_digest = run_key and run = run_id;
    if not found then
      raise exception 'the idempotency key was taken over by another request';
    end if;
  end if;
  if line_place is not null then
    delete from waiting_creates where place = line_place;
  end if;
  perform record_session_event(new_session, application, created, 'session.created',
    case when agent_key is null then 'service' else 'agentKey' end, agent_key::text, facts, 1, facts_bytes_max, lock_space);
  outcome := 'placed';
end $$`;

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(CREATE_PLACE_SESSION).execute(db);
}
