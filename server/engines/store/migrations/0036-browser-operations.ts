// Adds operations of the kind `browser`. An invocation now stores the kind of its operation, because only some kinds
// have files.
import { type Kysely, sql } from 'kysely';

const STATEMENTS = [
  'alter table operations drop constraint operations_kind_check',
  "alter table operations add constraint operations_kind_check check (kind in ('managed', 'http', 'browser'))",
  'alter table invocations add column kind text',
  "update invocations set kind = case when operation_id like 'browser.%' then 'managed' else 'http' end",
  'alter table invocations alter column kind set not null',
  "alter table invocations add constraint invocations_kind_check check (kind in ('managed', 'http', 'browser'))",
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}
