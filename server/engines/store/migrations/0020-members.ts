// Invitations, which make accounts members of applications.
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}

const STATEMENTS = [
  `create table invitations (
    id uuid primary key,
    application_id uuid not null references applications,
    email text not null,
    role text not null check (role in ('owner', 'admin', 'developer', 'viewer')),
    hash bytea not null unique check (length(hash) = 32),
    invited_by uuid not null references accounts,
    created_at timestamptz(3) not null,
    expires_at timestamptz(3) not null,
    accepted_at timestamptz(3),
    accepted_by uuid references accounts,
    revoked_at timestamptz(3),
    check (accepted_at is null or revoked_at is null),
    check ((accepted_at is null) = (accepted_by is null))
  )`,
  'create index invitations_list on invitations (application_id, id desc)',
];
