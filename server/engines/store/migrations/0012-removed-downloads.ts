// A download that a caller deleted keeps a row without content, so that the browser's file in the box is not collected
// again.
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}

const STATEMENTS = [
  'alter table downloads drop constraint downloads_state_check',
  `alter table downloads add constraint downloads_state_check
    check (state in ('running', 'complete', 'failed', 'removed'))`,
];
