// Events about changes to something other than the session's own row. They are written in the transaction of that
// change, even after the session has ended.
import { sql } from 'kysely';
import type { Db } from '../database.ts';
import type { AddressedEvent } from '../rows/contexts.ts';
import { recordExpression } from './events.ts';

/** Must be the last statement of a transaction: see events.ts. */
export async function recordAddressedEvents(trx: Db, addressedEvents: readonly AddressedEvent[]): Promise<void> {
  for (const { session, ...event } of addressedEvents)
    await sql`
      with changed as (select id, application_id from sessions where id = ${session} for no key update)
      select ${recordExpression(event)} from changed`.execute(trx);
}
