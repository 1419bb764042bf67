// Hand-offs: who has control of a session, or is asked to take control. They replace the column `holder` of
// session_controls. The fence stays in that table. In the audit log, the service itself can now be the actor of an
// entry.
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}

const STATEMENTS = [
  `create table handoffs (
    id uuid primary key,
    application_id uuid not null,
    session_id uuid not null references sessions on delete cascade,
    key_id uuid,
    origin text not null check (origin in ('api', 'cdp', 'operation', 'viewer')),
    status text not null check (status in
      ('requested', 'claimed', 'completed', 'declined', 'failed', 'cancelled', 'expired', 'session_ended')),
    instructions text not null,
    reason text not null,
    claimable_by text not null check (claimable_by in ('members', 'link', 'viewer')),
    record text not null check (record in ('mask', 'keep', 'pause')),
    page_id text,
    allowed_origins text[],
    lease_seconds integer not null,
    fence bigint not null,
    requester_kind text not null,
    requester_id text,
    created_at timestamptz(3) not null,
    expires_at timestamptz(3) not null,
    claim_hash bytea,
    claim_tries integer not null default 0,
    claim_browser bytea,
    holder uuid,
    holder_kind text,
    holder_id text,
    lease_hash bytea,
    lease_expires_at timestamptz(3),
    claimed_at timestamptz(3),
    ended_at timestamptz(3),
    note text,
    evidence jsonb,
    url text,
    check ((status = 'claimed') = (lease_expires_at is not null)),
    check ((status in ('requested', 'claimed')) = (ended_at is null))
  )`,
  "create unique index handoffs_open on handoffs (session_id) where status in ('requested', 'claimed')",
  'create index handoffs_of_application on handoffs (application_id, id)',
  'create index handoffs_of_session on handoffs (session_id)',
  'create index handoffs_ended on handoffs (ended_at) where ended_at is not null',
  'create unique index handoffs_lease on handoffs (lease_hash) where lease_hash is not null',
  // Control that was taken before this migration continues as a hand-off.
  `insert into handoffs (id, application_id, session_id, origin, status, instructions, reason, claimable_by, record, lease_seconds,
      fence, requester_kind, created_at, expires_at, holder, holder_kind, lease_expires_at, claimed_at)
    select gen_random_uuid(), application_id, session_id, 'viewer', 'claimed', '', 'other', 'viewer', 'keep', 30,
      fence, 'viewer', expires_at, expires_at, holder, 'viewer', expires_at, expires_at
    from session_controls where holder is not null`,
  'update session_controls set holder = null, expires_at = null where holder is not null',
  'alter table audit_entries drop constraint audit_entries_actor_kind_check',
  `alter table audit_entries add constraint audit_entries_actor_kind_check
    check (actor_kind in ('account', 'agent_key', 'consumer', 'operator', 'anonymous', 'service'))`,
];
