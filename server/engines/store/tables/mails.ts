// E-mails that are to be sent or were sent recently.
import { sql } from 'kysely';
import type { Db } from '../database.ts';
import type { Mails } from '../rows/mails.ts';
import { countAll } from './limited-insert.ts';
import { withoutNulls } from './without-nulls.ts';

export const mails = (db: Db): Mails => ({
  insert: async row => {
    await db.insertInto('mails').values(row).execute();
  },

  count: async (recipient, since) => {
    const query = db.selectFrom('mails').where('recipient', '=', recipient).where('createdAt', '>', since);
    return (await query.select(countAll).executeTakeFirstOrThrow()).count;
  },

  due: async (now, batchSize) => {
    const query = db.selectFrom('mails').selectAll().where('dueAt', '<=', now).orderBy('dueAt').limit(batchSize);
    return (await query.where(isStillRelevant).execute()).map(withoutNulls);
  },

  take: async (id, now, until) => {
    const update = db.updateTable('mails').set(eb => ({ dueAt: until, attempts: eb('attempts', '+', 1) }));
    const reservation = update.where('id', '=', id).where('dueAt', '<=', now).where(isStillRelevant);
    return (await reservation.returning('id').execute()).length > 0;
  },

  markSent: async (id, now) => {
    const update = db.updateTable('mails').set({ sentAt: now, dueAt: null, failure: null, body: '' });
    await update.where('id', '=', id).execute();
  },

  recordFailure: async (id, failure, dueAt) => {
    await db
      .updateTable('mails')
      .set({ failure, dueAt: dueAt ?? null })
      .where('id', '=', id)
      .execute();
  },

  list: async limit =>
    (await db.selectFrom('mails').selectAll().orderBy('id', 'desc').limit(limit).execute()).map(withoutNulls),

  removeOlder: async before =>
    (await db.deleteFrom('mails').where('createdAt', '<', before).returning('id').execute()).length,

  withdraw: async () => {
    const deletion = db.deleteFrom('mails').where('tellsOfWaiting', '=', true).where('sentAt', 'is', null);
    return (await deletion.where(sql<boolean>`not ${isStillRelevant}`).returning('id').execute()).length;
  },
});

/**
 * Whether an e-mail is still needed: it is about an item that is still waiting, and the account has not turned off
 * e-mails about such items. Always true for other e-mails.
 */
const isStillRelevant = sql<boolean>`(not mails.tells_of_waiting or exists (
  select from told_items told join notification_settings settings using (account_id)
    where told.mail_id = mails.id and settings.mails and not told.application_id = any(settings.muted_applications)))`;
