// The last page that a session showed, for the list of sessions and its search.
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw('alter table sessions add column page_url text, add column page_title text').execute(db);
}
