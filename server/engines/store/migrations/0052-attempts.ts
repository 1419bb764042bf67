// Rate-limited attempts, such as sign-ins, counted across all hosts. The rows are needed only for minutes, so the table
// is unlogged, and a crash of the database empties it.
import { type Kysely, sql } from 'kysely';

const CREATE_ATTEMPTS = `create unlogged table attempts (
  tally text not null,
  digest bytea not null,
  times bigint[] not null,
  is_counted boolean not null,
  kept_until timestamptz not null,
  primary key (tally, digest)
)`;

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(CREATE_ATTEMPTS).execute(db);
}
