// Consumers, the end users of applications: how they sign in, their consumer sessions, and the data that agents may
// remember about them.
import { type Kysely, sql } from 'kysely';

const STATEMENTS = [
  'alter table audit_entries drop constraint audit_entries_actor_kind_check',
  `alter table audit_entries add constraint audit_entries_actor_kind_check
    check (actor_kind in ('account', 'agent_key', 'consumer', 'operator', 'anonymous', 'service'))`,

  // How the consumers of an application sign in. An application without a row has the defaults: no hosted sign-in.
  `create table application_identities (
    application_id uuid primary key references applications,
    hosted_methods text[] not null,
    hosted_registration text not null check (hosted_registration in ('open', 'closed')),
    colour text,
    origins text[] not null,
    redirect_uris text[] not null,
    session_seconds integer not null,
    refresh_seconds integer not null,
    revision integer not null,
    updated_at timestamptz(3) not null
  )`,

  // OpenID providers, with values from their discovery documents.
  `create table consumer_providers (
    application_id uuid not null references applications,
    id text not null,
    title text not null,
    enabled boolean not null,
    issuer text not null,
    client_id text not null,
    auth_method text not null check (auth_method in ('client_secret_basic', 'client_secret_post', 'none')),
    secret_sealed bytea,
    scopes text[] not null,
    metadata json not null,
    revision integer not null,
    created_at timestamptz(3) not null,
    updated_at timestamptz(3) not null,
    primary key (application_id, id)
  )`,

  // A deleted consumer keeps its row, without personal data and with another subject.
  `create table consumers (
    id uuid primary key,
    application_id uuid not null references applications,
    provider_id text not null,
    subject text not null,
    email text,
    password_hash text,
    display_name text,
    locale text,
    timezone text,
    metadata json,
    memory_version bigint not null default 0,
    created_at timestamptz(3) not null,
    last_signed_in_at timestamptz(3),
    deleted_at timestamptz(3),
    unique (application_id, provider_id, subject)
  )`,
  `create unique index consumers_by_email on consumers (application_id, provider_id, email)
    where email is not null and deleted_at is null`,

  `create table consumer_passkeys (
    id uuid primary key,
    consumer_id uuid not null references consumers,
    credential_id bytea not null unique,
    public_key bytea not null,
    counter bigint not null,
    transports text[] not null,
    name text not null,
    created_at timestamptz(3) not null,
    last_used_at timestamptz(3)
  )`,
  'create index consumer_passkeys_list on consumer_passkeys (consumer_id, id)',

  // A sign-in that was started. When it is complete, it has a code, which is exchanged for a consumer session.
  `create table consumer_sign_ins (
    id uuid primary key,
    application_id uuid not null references applications,
    provider_id text not null,
    redirect_uri text not null,
    code_challenge text not null,
    state text,
    transport text not null check (transport in ('token', 'cookie')),
    login_hint text,
    max_age integer,
    upstream_state bytea unique,
    upstream_used_at timestamptz(3),
    created_at timestamptz(3) not null,
    expires_at timestamptz(3) not null,
    consumer_id uuid references consumers,
    acr text check (acr in ('berth:1', 'berth:2', 'phr')),
    auth_time timestamptz(3),
    id_token_sealed bytea,
    code_hash bytea unique check (length(code_hash) = 32),
    code_expires_at timestamptz(3),
    code_used_at timestamptz(3),
    session_id uuid
  )`,
  'create index consumer_sign_ins_expired on consumer_sign_ins (expires_at)',

  // Single-use tickets: codes sent by e-mail, and passkey challenges.
  `create table consumer_tickets (
    id uuid primary key,
    kind text not null check (kind in ('email_code', 'passkey')),
    application_id uuid not null references applications,
    sign_in_id uuid,
    consumer_id uuid references consumers,
    email text,
    password_hash text,
    display_name text,
    hash bytea,
    challenge text,
    tries integer not null default 0,
    created_at timestamptz(3) not null,
    expires_at timestamptz(3) not null,
    used_at timestamptz(3)
  )`,
  'create index consumer_tickets_expired on consumer_tickets (expires_at)',
  "create index consumer_tickets_mailed on consumer_tickets (application_id, email, created_at) where kind = 'email_code'",

  // A consumer session is a family of tokens. Each refresh replaces the hashes of both the access token and the refresh
  // token.
  `create table consumer_sessions (
    id uuid primary key,
    consumer_id uuid not null references consumers,
    application_id uuid not null references applications,
    provider_id text not null,
    hash bytea not null unique check (length(hash) = 32),
    expires_at timestamptz(3) not null,
    refresh_hash bytea unique check (length(refresh_hash) = 32),
    refresh_expires_at timestamptz(3) not null,
    auth_time timestamptz(3) not null,
    acr text not null check (acr in ('berth:1', 'berth:2', 'phr')),
    id_token_sealed bytea,
    created_at timestamptz(3) not null,
    revoked_at timestamptz(3),
    last_used_at timestamptz(3),
    last_used_ip text,
    user_agent text
  )`,
  'create index consumer_sessions_list on consumer_sessions (consumer_id, id desc)',
  'create index consumer_sessions_expired on consumer_sessions (refresh_expires_at)',
  // Used refresh tokens. If one of them is presented again, its consumer session is ended.
  `create table consumer_used_refreshes (
    hash bytea primary key check (length(hash) = 32),
    session_id uuid not null references consumer_sessions on delete cascade,
    used_at timestamptz(3) not null
  )`,
  'create index consumer_used_refreshes_of on consumer_used_refreshes (session_id)',

  `create table consumer_memory (
    consumer_id uuid not null references consumers,
    key text collate "C" not null,
    version bigint not null,
    sealed bytea not null,
    bytes integer not null,
    updated_at timestamptz(3) not null,
    updated_by_kind text not null check (updated_by_kind in ('consumer', 'agent_key')),
    updated_by_id uuid not null,
    primary key (consumer_id, key)
  )`,
  // Which agent keys may read or write which entries of the consumer's memory. A row without `key_id` applies to all
  // agent keys of the application.
  `create table consumer_consents (
    id uuid primary key,
    consumer_id uuid not null references consumers,
    key_id uuid,
    patterns text[] not null,
    access text not null check (access in ('read', 'write')),
    created_at timestamptz(3) not null,
    expires_at timestamptz(3),
    revoked_at timestamptz(3)
  )`,
  'create index consumer_consents_list on consumer_consents (consumer_id, id desc)',
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}
