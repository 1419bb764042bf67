// Bytes that sessions transferred over the network.
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table sessions add egress_bytes bigint not null default 0 check (egress_bytes >= 0)`.execute(db);
}
