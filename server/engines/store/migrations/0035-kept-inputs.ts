// The input of an invocation can be kept, still sealed, until `input_until`, which is after the end of the invocation.
import { type Kysely, sql } from 'kysely';

const STATEMENTS = [
  'alter table invocations add column input_until timestamptz(3)',
  'create index invocations_input on invocations (input_until) where input_until is not null',
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}
