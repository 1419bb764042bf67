// Device authorizations, with which programs request a token from a person. Codes are stored as hashes.
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}

const STATEMENTS = [
  `create table device_authorizations (
    id uuid primary key,
    device_code_hash bytea not null unique check (length(device_code_hash) = 32),
    user_code_hash bytea not null unique check (length(user_code_hash) = 32),
    client_id text not null,
    device_name text,
    scopes text[] not null,
    code_challenge text,
    status text not null check (status in ('pending', 'claimed', 'approved', 'redeemed', 'denied')),
    requested_ip text not null,
    user_agent text,
    interval_seconds integer not null,
    started_at timestamptz(3) not null,
    expires_at timestamptz(3) not null,
    polled_at timestamptz(3),
    state_read_at timestamptz(3),
    account_id uuid references accounts,
    application_ids uuid[],
    token_id uuid,
    check ((status = 'pending') = (account_id is null)),
    check ((status = 'redeemed') = (token_id is not null))
  )`,
  'create index device_authorizations_expired on device_authorizations (expires_at)',
];
