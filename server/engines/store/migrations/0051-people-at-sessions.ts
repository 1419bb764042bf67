// A hand-off can name a consumer, and stores the consumer session under which it was claimed. An Action can name a
// session, and the host of that session executes it.
import { type Kysely, sql } from 'kysely';

const STATEMENTS = [
  'alter table handoffs add column consumer_id uuid, add column holder_session uuid',
  'alter table handoffs drop constraint handoffs_claimable_by_check',
  `alter table handoffs add constraint handoffs_claimable_by_check
    check (claimable_by in ('members', 'link', 'end_user', 'viewer'))`,
  "alter table handoffs add constraint handoffs_consumer_check check (claimable_by <> 'end_user' or consumer_id is not null)",
  'create index handoffs_by_consumer on handoffs (consumer_id, id) where consumer_id is not null',
  'alter table actions add column session_id uuid',
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}
