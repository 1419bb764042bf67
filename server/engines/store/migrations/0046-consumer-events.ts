// Consumers as actors of events.
import { type Kysely, sql } from 'kysely';

const STATEMENTS = [
  'alter table session_events drop constraint session_events_actor_kind_check',
  `alter table session_events add constraint session_events_actor_kind_check
    check (actor_kind in ('agentKey', 'client', 'clock', 'operator', 'service', 'browser', 'viewer', 'account', 'consumer'))`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}
