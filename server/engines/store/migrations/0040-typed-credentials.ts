// A browser operation can refer to any number of stored credentials. The older column `credential_id`, which contains
// the only credential of an HTTP operation, is no longer written.
import { type Kysely, sql } from 'kysely';

const STATEMENTS = [
  "alter table operation_revisions add column credential_ids text[] not null default '{}'",
  'update operation_revisions set credential_ids = array[credential_id] where credential_id is not null',
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}
