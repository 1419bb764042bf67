// The price that is charged for an invocation in addition to its metered use. It is set when the call is admitted.
import { type Kysely, sql } from 'kysely';

const STATEMENTS = [
  'alter table invocations add column price bigint not null default 0 check (price >= 0)',
  // Before this migration, only calls without a session had a price. The amount reserved for such a call was its price.
  `update invocations set price = reserved where ended_at is null and operation_id not like 'browser.%'`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}
