// Single-use tickets for people who are not signed in yet.
import type { Db } from '../database.ts';
import type { SignInTickets, TicketKind } from '../rows/sign-in-tickets.ts';
import { countAll } from './limited-insert.ts';
import { withoutNulls } from './without-nulls.ts';

export const signInTickets = (db: Db): SignInTickets => ({
  insert: async row => {
    await db.insertInto('signInTickets').values(row).execute();
  },

  attempt: async (id, kind, now, triesMax) => {
    const update = db
      .updateTable('signInTickets')
      .set(eb => ({ tries: eb('tries', '+', 1) }))
      .where('id', '=', id)
      .where('kind', '=', kind)
      .where('usedAt', 'is', null)
      .where('expiresAt', '>', now)
      .where('tries', '<', triesMax);
    return (await update.returningAll().execute()).map(withoutNulls)[0];
  },

  byHash: async (hash, kind, now) =>
    (await selectUsable(db, kind, now).where('hash', '=', hash).execute()).map(withoutNulls)[0],

  use: async (id, now) => {
    const update = db
      .updateTable('signInTickets')
      .set({ usedAt: now })
      .where('id', '=', id)
      .where('usedAt', 'is', null);
    return (await update.returning('id').execute()).length > 0;
  },

  count: async (kind, { email, accountId }, since) => {
    let query = db.selectFrom('signInTickets').where('kind', '=', kind).where('createdAt', '>', since);
    if (email !== undefined) query = query.where('email', '=', email);
    if (accountId !== undefined) query = query.where('accountId', '=', accountId);
    return (await query.select(countAll).executeTakeFirstOrThrow()).count;
  },

  removeExpired: async before => {
    const deletion = db.deleteFrom('signInTickets').where('expiresAt', '<', before);
    return (await deletion.returning('id').execute()).length;
  },
});

const selectUsable = (db: Db, kind: TicketKind, now: Date) =>
  db
    .selectFrom('signInTickets')
    .selectAll()
    .where('kind', '=', kind)
    .where('usedAt', 'is', null)
    .where('expiresAt', '>', now);
