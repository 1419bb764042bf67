// An index for listing an application's invocations, made with any of its keys, newest first.
import { type Kysely, sql } from 'kysely';

const STATEMENTS = ['create index invocations_by_application on invocations (application_id, id)'];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}
