// The price of an invocation besides its meters, as it was when the call was admitted.
import { type Kysely, sql } from 'kysely';

const STATEMENTS = [
  'alter table invocations add column price bigint not null default 0 check (price >= 0)',
  // Until now only calls without a session had a price, and held nothing else.
  `update invocations set price = reserved where ended_at is null and operation_id not like 'browser.%'`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}
