// The name that the requester of a hand-off chose for the events of the hand-off.
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw('alter table handoffs add column callback_event text').execute(db);
}
