// The name that who requests a hand-off gives to its events.
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw('alter table handoffs add column callback_event text').execute(db);
}
