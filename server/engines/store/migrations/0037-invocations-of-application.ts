// An index for listing the invocations by all keys of an application, newest first.
import { type Kysely, sql } from 'kysely';

const STATEMENTS = ['create index invocations_by_application on invocations (application_id, id)'];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}
