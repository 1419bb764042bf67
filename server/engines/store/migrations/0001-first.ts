// The first tables: accounts, applications and their members, credentials, hosts, sessions.
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}

const CREDENTIAL_COLUMNS = `
  name text not null,
  prefix text not null,
  hash bytea not null unique check (length(hash) = 32),
  scopes text[] not null,
  cidr_allow text[] not null,
  created_at timestamptz(3) not null,
  expires_at timestamptz(3),
  revoked_at timestamptz(3),
  last_used_at timestamptz(3),
  last_used_ip text`;

const STATEMENTS = [
  `create table accounts (
    id uuid primary key,
    name text not null,
    created_at timestamptz(3) not null
  )`,

  `create table applications (
    id uuid primary key,
    name text not null,
    slug text not null unique,
    billing_account_id uuid not null references accounts,
    revision integer not null check (revision > 0),
    created_at timestamptz(3) not null,
    updated_at timestamptz(3) not null
  )`,
  'create index applications_by_name on applications (name)',
  'create index applications_by_billing on applications (billing_account_id)',

  `create table members (
    application_id uuid not null references applications,
    account_id uuid not null references accounts,
    role text not null check (role in ('owner', 'admin', 'developer', 'viewer')),
    created_at timestamptz(3) not null,
    primary key (account_id, application_id)
  )`,
  'create index members_by_application on members (application_id)',

  `create table tokens (
    id uuid primary key,
    account_id uuid not null references accounts,
    application_ids uuid[],
    ${CREDENTIAL_COLUMNS}
  )`,
  'create index tokens_list on tokens (account_id, id desc)',

  `create table keys (
    id uuid primary key,
    application_id uuid not null references applications,
    revision integer not null check (revision > 0),
    ${CREDENTIAL_COLUMNS}
  )`,
  'create index keys_list on keys (application_id, id desc)',

  `create table hosts (
    id uuid primary key,
    region text not null,
    slots integer not null check (slots >= 0),
    started_at timestamptz(3) not null
  )`,

  // The end of a session is decided once (end_*), and then carried out (status, ended_at). sessions_guard prevents
  // later changes to either.
  `create table sessions (
    id uuid primary key,
    application_id uuid not null references applications,
    host_id uuid not null references hosts,
    key_id uuid references keys,
    status text not null check (status in ('PENDING', 'RUNNING', 'COMPLETED', 'TIMED_OUT', 'ERROR')),
    region text not null,
    keep_alive boolean not null,
    user_metadata jsonb not null,
    settings jsonb not null,
    proxy_bytes bigint not null default 0 check (proxy_bytes >= 0),
    created_at timestamptz(3) not null,
    updated_at timestamptz(3) not null,
    started_at timestamptz(3),
    expires_at timestamptz(3) not null,
    ended_at timestamptz(3),
    end_status text check (end_status in ('COMPLETED', 'TIMED_OUT', 'ERROR')),
    end_reason text,
    end_detail text,
    end_decided_at timestamptz(3),
    connect_by timestamptz(3),
    release_at timestamptz(3),
    due_at timestamptz(3) not null generated always as
      (least(end_decided_at, expires_at, connect_by, release_at)) stored,
    attached boolean not null default false,
    box jsonb,
    check ((end_status is null) = (end_reason is null) and (end_status is null) = (end_decided_at is null)),
    check ((status in ('PENDING', 'RUNNING')) = (ended_at is null)),
    check (status in ('PENDING', 'RUNNING') or (end_status is not null and status = end_status))
  )`,
  'create index sessions_list on sessions (application_id, id desc)',
  `create index sessions_due on sessions (host_id, due_at) where status in ('PENDING', 'RUNNING')`,
  'create index sessions_by_host on sessions (host_id, status)',
  'create index sessions_by_metadata on sessions using gin (user_metadata jsonb_path_ops)',

  // The WHERE clauses of the server's statements check these conditions. The trigger protects against a statement that
  // lacks the check.
  `create function sessions_guard() returns trigger language plpgsql as $$
  begin
    if old.status not in ('PENDING', 'RUNNING') and
       (new.status, new.ended_at) is distinct from (old.status, old.ended_at) then
      raise exception 'session % has ended as %, which is final', old.id, old.status using errcode = 'restrict_violation';
    end if;
    if old.status = 'RUNNING' and new.status = 'PENDING' then
      raise exception 'session % runs and cannot be pending again', old.id using errcode = 'restrict_violation';
    end if;
    if old.end_status is not null and
       (new.end_status, new.end_reason, new.end_detail) is distinct from (old.end_status, old.end_reason, old.end_detail) then
      raise exception 'the end of session % is decided', old.id using errcode = 'restrict_violation';
    end if;
    return new;
  end
  $$`,
  'create trigger sessions_guard before update on sessions for each row execute function sessions_guard()',
];
