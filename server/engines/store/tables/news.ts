// Events of a session that report changes to rows other than the session's own. Each event is written in the
// transaction of the change, even after the session has ended.
import { sql } from 'kysely';
import type { ApplicationId, SessionId } from '../../../kit/ids.ts';
import type { Db } from '../database.ts';
import type { AddressedEvent } from '../rows/contexts.ts';
import { recordExpression } from './events.ts';

/**
 * Records the events, and returns their sessions. Must be the last statement of a transaction: see events.ts. Announce
 * the events after the commit.
 */
export async function recordAddressedEvents(
  trx: Db,
  addressedEvents: readonly AddressedEvent[],
): Promise<readonly { readonly id: SessionId; readonly applicationId: ApplicationId }[]> {
  const sessions: { id: SessionId; applicationId: ApplicationId }[] = [];
  for (const { session, ...event } of addressedEvents) {
    const { rows } = await sql<{ id: SessionId; applicationId: ApplicationId }>`
      with changed as (select id, application_id from sessions where id = ${session} for no key update)
      select changed.id, changed.application_id, ${recordExpression(event)} from changed`.execute(trx);
    sessions.push(...rows.map(({ id, applicationId }) => ({ id, applicationId })));
  }
  return sessions;
}
