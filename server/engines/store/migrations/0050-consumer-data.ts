// Consumers can list the receipts that name them: receipts of Actions that are for them, and of reads and writes of
// their memory. Two consumers that are the same person can be linked.
import { type Kysely, sql } from 'kysely';

const STATEMENTS = [
  'alter table invocations add column consumer_id uuid',
  `update invocations set consumer_id = consumers.id
    from actions join consumers on (consumers.application_id, consumers.provider_id, consumers.subject)
      = (actions.application_id, actions.provider_id, actions.subject)
    where actions.id = invocations.job_id`,
  'create index invocations_by_consumer on invocations (consumer_id, id) where consumer_id is not null',
  'create index actions_by_end_user on actions (application_id, provider_id, subject, id) where subject is not null',

  // Whoever signs in as a linked consumer acts as the consumer in `linked_to`.
  'alter table consumers add column linked_to uuid references consumers',
  'create index consumers_linked on consumers (linked_to) where linked_to is not null',
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}
