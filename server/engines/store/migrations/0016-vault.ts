// The wrapped data keys of the vault, and the keys that sign receipts and seals.
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}

const STATEMENTS = [
  // One data key for each application, and one for the installation, which has the nil id. `master` is the id of the
  // master key that wraps the data key.
  `create table vault_keys (
    owner uuid primary key,
    master text not null,
    wrapped bytea not null,
    created_at timestamptz(3) not null
  )`,

  `create table signing_keys (
    kid text primary key,
    public_jwk jsonb not null,
    sealed bytea not null,
    created_at timestamptz(3) not null,
    retired_at timestamptz(3)
  )`,
  // At most one key is active.
  'create unique index signing_keys_active on signing_keys ((true)) where retired_at is null',
];
