// Records which session will save to which context, and which saves are due or running. Opening a use locks the
// context, so that concurrent calls run one after the other.
import { type Selectable, sql } from 'kysely';
import type { SessionId } from '../../../kit/ids.ts';
import type { Announcer } from '../announcer.ts';
import type { Db } from '../database.ts';
import type { ContextUse, ContextUses, OpenOutcome } from '../rows/contexts.ts';
import type { Tables } from '../schema.ts';
import { lockContext } from './contexts.ts';
import { recordAddressedEvents } from './news.ts';
import { withoutNulls } from './without-nulls.ts';

export const contextUses = (db: Db, announcer: Announcer): ContextUses => ({
  open: use => db.transaction().execute(trx => open(trx, use)),

  savingSessionOf: async (application, context) => {
    const savingUses = await db
      .selectFrom('contextUses')
      .select('sessionId')
      .where('applicationId', '=', application)
      .where('contextId', '=', context)
      .where('savingSince', 'is not', null)
      .limit(1)
      .execute();
    return savingUses[0]?.sessionId;
  },

  recordStart: async (session, fromVersion) => {
    await db.updateTable('contextUses').set({ fromVersion }).where('sessionId', '=', session).execute();
  },

  get: async session =>
    (await db.selectFrom('contextUses').selectAll().where('sessionId', '=', session).execute()).map(contextUseRow)[0],

  markForSaving: async (session, now) => {
    const update = db.updateTable('contextUses').set({ savingSince: now, dueAt: now });
    await update.where('sessionId', '=', session).where('savingSince', 'is', null).execute();
  },

  close: async session => {
    await db.deleteFrom('contextUses').where('sessionId', '=', session).execute();
  },

  due: async (host, now, batchSize) => {
    const { rows } = await sql<Selectable<Tables['contextUses']>>`
      select * from (
        select distinct on (context_id) * from context_uses where saving_since is not null
        order by context_id, saving_since, session_id
      ) as first where host_id = ${host} and due_at <= ${now} order by due_at limit ${batchSize}`.execute(db);
    return rows.map(contextUseRow);
  },

  retry: async (session, dueAt) => {
    const update = db.updateTable('contextUses').set(eb => ({ dueAt, tries: eb('tries', '+', 1) }));
    await update.where('sessionId', '=', session).execute();
  },

  fail: async event => {
    const closedUses = await db.transaction().execute(async trx => {
      const deletedUses = await trx
        .deleteFrom('contextUses')
        .where('sessionId', '=', event.session)
        .returning('applicationId')
        .execute();
      await recordAddressedEvents(trx, deletedUses.length > 0 ? [event] : []);
      return deletedUses;
    });
    announcer.announceEvents(closedUses.map(({ applicationId }) => ({ applicationId, id: event.session })));
  },

  orphans: async (host, createdBefore) => {
    const { rows } = await sql<{ sessionId: SessionId }>`
      select context_uses.session_id from context_uses left join sessions on sessions.id = context_uses.session_id
      where context_uses.host_id = ${host} and saving_since is null
        and case when sessions.id is null then context_uses.created_at < ${createdBefore}
          else sessions.status not in ('PENDING', 'RUNNING') end`.execute(db);
    return rows.map(({ sessionId }) => sessionId);
  },

  ofHost: async host => {
    const uses = await db.selectFrom('contextUses').select('sessionId').where('hostId', '=', host).execute();
    return uses.map(({ sessionId }) => sessionId);
  },
});

async function open(trx: Db, use: Parameters<ContextUses['open']>[0]): Promise<OpenOutcome> {
  if (!(await lockContext(trx, use.applicationId, use.contextId))) return { opened: false };
  const existingUses = await trx
    .selectFrom('contextUses')
    .select(['sessionId', 'savingSince', 'exclusive'])
    .where('contextId', '=', use.contextId)
    .orderBy('savingSince')
    .execute();
  const savingUse = existingUses.find(({ savingSince }) => savingSince !== null);
  if (savingUse) return { savingSession: savingUse.sessionId };
  const exclusiveUse = use.exclusive && existingUses.find(({ exclusive }) => exclusive);
  if (exclusiveUse) return { exclusiveSession: exclusiveUse.sessionId };
  const { sessionId, contextId, applicationId, hostId, exclusive, createdAt } = use;
  await trx
    .insertInto('contextUses')
    .values({ sessionId, contextId, applicationId, hostId, exclusive, createdAt })
    .execute();
  return { opened: true };
}

function contextUseRow(row: Selectable<Tables['contextUses']>): ContextUse {
  const { dueAt: _, ...rest } = row;
  return withoutNulls(rest);
}
