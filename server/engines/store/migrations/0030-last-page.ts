// The page that a session has shown last, for the list and its search.
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw('alter table sessions add column page_url text, add column page_title text').execute(db);
}
