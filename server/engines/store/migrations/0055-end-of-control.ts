// The time when a person gave back control of a session while the hand-off stayed open.
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw('alter table handoffs add column control_until timestamptz(3)').execute(db);
}
