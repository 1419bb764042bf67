// The operations that an agent key may call.
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(`alter table keys add column grants jsonb not null default '[]'`).execute(db);
}
