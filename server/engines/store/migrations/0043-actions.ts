// Actions: calls that are executed at most once, after a person has approved them. The statement that ends an
// invocation also ends its Action.
import { type Kysely, sql } from 'kysely';

const STATES = [
  ...['awaiting_approval', 'approved', 'executing', 'succeeded', 'failed', 'ambiguous'],
  ...['refused', 'expired', 'cancelled'],
];
const OPEN_STATES = "('awaiting_approval', 'approved')";
const UNENDED_STATES = "('awaiting_approval', 'approved', 'executing')";

const STATEMENTS = [
  `create table actions (
    id uuid primary key,
    application_id uuid not null references applications (id),
    key_id uuid not null,
    operation_id text not null,
    operation_revision integer not null,
    operation_digest text not null,
    effect text not null check (effect in ('read', 'write', 'irreversible')),
    approver text not null check (approver in ('end_user', 'member', 'owner')),
    provider_id text,
    subject text,
    state text not null check (state in (${STATES.map(state => `'${state}'`).join(', ')})),
    digest text not null,
    likeness bytea not null,
    sealed_content bytea,
    content_until timestamptz(3),
    reason text,
    metadata jsonb,
    idempotency_key text not null,
    request_digest bytea not null,
    executes_on_approval boolean not null,
    not_before timestamptz(3),
    execute_at timestamptz(3),
    held_back text,
    decision jsonb,
    why text,
    invocation_id uuid,
    created_at timestamptz(3) not null,
    expires_at timestamptz(3) not null,
    ended_at timestamptz(3),
    check ((provider_id is null) = (subject is null)),
    check (approver <> 'end_user' or subject is not null),
    check ((ended_at is null) = (state in ${UNENDED_STATES})),
    check (state not in ('approved', 'executing', 'succeeded', 'failed', 'ambiguous', 'refused') or decision is not null),
    check (state not in ('executing', 'succeeded', 'failed', 'ambiguous') or invocation_id is not null),
    check (state not in ${OPEN_STATES} or (invocation_id is null and sealed_content is not null))
  )`,
  'create unique index actions_idempotent on actions (key_id, idempotency_key)',
  'create index actions_by_application on actions (application_id, id)',
  `create index actions_open on actions (application_id, operation_id) where state in ${OPEN_STATES}`,
  `create index actions_expiring on actions (expires_at) where state in ${OPEN_STATES}`,
  "create index actions_due on actions (execute_at) where state = 'approved' and execute_at is not null",
  'create index actions_content on actions (content_until) where content_until is not null',
  'create index actions_ended on actions (ended_at) where ended_at is not null',
  // The WHERE clauses of the server's statements check these conditions. The trigger protects against a statement that
  // lacks the check. If an execution is withdrawn before it starts, the Action becomes `approved` again and can be
  // executed later.
  `create function actions_guard() returns trigger language plpgsql as $$
  begin
    if (new.id, new.application_id, new.key_id, new.operation_id, new.operation_revision, new.operation_digest, new.effect,
        new.approver, new.provider_id, new.subject, new.digest, new.not_before, new.created_at, new.expires_at,
        new.executes_on_approval)
      is distinct from
       (old.id, old.application_id, old.key_id, old.operation_id, old.operation_revision, old.operation_digest, old.effect,
        old.approver, old.provider_id, old.subject, old.digest, old.not_before, old.created_at, old.expires_at,
        old.executes_on_approval)
    then raise exception 'action % cannot be changed', old.id; end if;
    if old.decision is not null and new.decision is distinct from old.decision
    then raise exception 'action % was decided', old.id; end if;
    if new.sealed_content is not null and new.sealed_content is distinct from old.sealed_content
    then raise exception 'the content of action % cannot be changed', old.id; end if;
    if old.state <> new.state then
      if not (
        (old.state = 'awaiting_approval' and new.state in ('approved', 'refused', 'expired', 'cancelled'))
        or (old.state = 'approved' and new.state in ('executing', 'expired', 'cancelled'))
        or (old.state = 'executing' and new.state in ('succeeded', 'failed', 'ambiguous', 'cancelled'))
        or (old.state = 'executing' and new.state = 'approved' and new.invocation_id is null)
      ) then raise exception 'action % cannot go from % to %', old.id, old.state, new.state; end if;
      perform pg_notify('action_changed', old.id::text);
    elsif new.invocation_id is distinct from old.invocation_id
    then raise exception 'action % has another execution', old.id; end if;
    return new;
  end $$`,
  'create trigger actions_guard before update on actions for each row execute function actions_guard()',
  'alter table invocations add column job_id uuid',
  'create unique index invocations_job on invocations (job_id) where job_id is not null',
  `create function invocations_action() returns trigger language plpgsql as $$
  begin
    if tg_op = 'DELETE' then
      update actions set state = 'approved', invocation_id = null
        where id = old.job_id and state = 'executing' and invocation_id = old.id;
      return old;
    end if;
    update actions set state = new.state, ended_at = new.ended_at, content_until = new.input_until,
        sealed_content = case when new.input_until is null then null else sealed_content end
      where id = new.job_id and state = 'executing' and invocation_id = new.id;
    return new;
  end $$`,
  `create trigger invocations_action_ended after update on invocations for each row
    when (new.job_id is not null and old.ended_at is null and new.ended_at is not null) execute function invocations_action()`,
  `create trigger invocations_action_withdrawn after delete on invocations for each row
    when (old.job_id is not null and old.state = 'accepted') execute function invocations_action()`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}
