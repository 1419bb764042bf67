// People: how accounts sign in, and their human sessions. Tokens may also be issued to a device that a person approved.
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}

const STATEMENTS = [
  `alter table tokens add column kind text not null default 'personal' check (kind in ('personal', 'developer'))`,

  `alter table accounts
    add column email text,
    add column email_verified_at timestamptz(3),
    add column password_hash text,
    add column password_changed_at timestamptz(3),
    add column totp_sealed text,
    add column totp_enabled_at timestamptz(3),
    add column totp_last_step bigint`,
  'create unique index accounts_by_email on accounts (email)',

  `create table passkeys (
    id uuid primary key,
    account_id uuid not null references accounts,
    credential_id bytea not null unique,
    public_key bytea not null,
    counter bigint not null,
    transports text[] not null,
    name text not null,
    created_at timestamptz(3) not null,
    last_used_at timestamptz(3)
  )`,
  'create index passkeys_list on passkeys (account_id, id)',

  `create table recovery_codes (
    account_id uuid not null references accounts,
    hash bytea not null,
    used_at timestamptz(3),
    primary key (account_id, hash)
  )`,

  `create table human_sessions (
    id uuid primary key,
    account_id uuid not null references accounts,
    hash bytea not null unique check (length(hash) = 32),
    auth_time timestamptz(3) not null,
    acr text not null check (acr in ('berth:1', 'berth:2', 'phr')),
    created_at timestamptz(3) not null,
    expires_at timestamptz(3) not null,
    idle_expires_at timestamptz(3) not null,
    revoked_at timestamptz(3),
    last_used_at timestamptz(3),
    last_used_ip text,
    user_agent text
  )`,
  'create index human_sessions_list on human_sessions (account_id, id desc)',

  // Single-use tickets of people who are not signed in yet: codes sent by e-mail, passkey challenges, and second
  // factors.
  `create table sign_in_tickets (
    id uuid primary key,
    kind text not null check (kind in ('setup', 'email_code', 'passkey', 'second_factor', 'register')),
    account_id uuid references accounts,
    email text,
    hash bytea,
    challenge text,
    tries integer not null default 0,
    created_at timestamptz(3) not null,
    expires_at timestamptz(3) not null,
    used_at timestamptz(3)
  )`,
  'create index sign_in_tickets_expired on sign_in_tickets (expires_at)',
  'create index sign_in_tickets_by_hash on sign_in_tickets (hash) where hash is not null',
];
