// A download that its owner removed keeps a row without anything of it: the browser's file still stands in the box, and
// whoever looks there must know that it is not to be taken in again.
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}

const STATEMENTS = [
  'alter table downloads drop constraint downloads_state_check',
  `alter table downloads add constraint downloads_state_check
    check (state in ('running', 'complete', 'failed', 'removed'))`,
];
