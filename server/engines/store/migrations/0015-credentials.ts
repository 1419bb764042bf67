// Records which token issued a token, and which key replaced a rotated key.
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw('alter table tokens add column issued_by uuid').execute(db);
  await sql.raw('alter table keys add column replaced_by uuid').execute(db);
}
