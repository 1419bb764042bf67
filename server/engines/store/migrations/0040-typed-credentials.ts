// A browser operation names any number of credentials. The former column holds the one of an HTTP operation, and is not written any more.
import { type Kysely, sql } from 'kysely';

const STATEMENTS = [
  "alter table operation_revisions add column credential_ids text[] not null default '{}'",
  'update operation_revisions set credential_ids = array[credential_id] where credential_id is not null',
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}
