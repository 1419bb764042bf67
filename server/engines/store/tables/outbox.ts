// Staged files that are waiting to be stored. Code that inserts a row about such a file also calls `insertIntoOutbox`
// in the same transaction.
import type { Db } from '../database.ts';
import type { OutboxRow, OutboxRows } from '../rows/outbox.ts';
import { withoutNulls } from './without-nulls.ts';

export const outbox = (db: Db): OutboxRows => ({
  add: rows => insertIntoOutbox(db, rows),

  due: async (host, now, batchSize) => {
    const query = db
      .selectFrom('outbox')
      .selectAll()
      .where('hostId', '=', host)
      .where('dueAt', '<=', now)
      .orderBy('dueAt')
      .orderBy('id')
      .limit(batchSize);
    return (await query.execute()).map(withoutNulls);
  },

  postpone: async (id, dueAt) => {
    const update = db.updateTable('outbox').set(eb => ({ dueAt, attempts: eb('attempts', '+', 1) }));
    await update.where('id', '=', id).execute();
  },

  remove: async id => (await db.deleteFrom('outbox').where('id', '=', id).returning('id').execute()).length > 0,

  byKey: async (application, key) => {
    const query = db
      .selectFrom('outbox')
      .selectAll()
      .where('applicationId', '=', application)
      .where('key', '=', key)
      .orderBy('id', 'desc')
      .limit(1);
    return (await query.execute()).map(withoutNulls)[0];
  },

  waitingKeys: async (application, keys) => {
    if (keys.length === 0) return new Set();
    const query = db.selectFrom('outbox').select('key').where('applicationId', '=', application);
    const foundRows = await query.where(eb => eb('key', '=', eb.fn.any(eb.val([...keys])))).execute();
    return new Set(foundRows.map(({ key }) => key));
  },

  removeKeys: async (application, keys) => {
    if (keys.length === 0) return [];
    const deletion = db.deleteFrom('outbox').where('applicationId', '=', application);
    const rows = await deletion
      .where(eb => eb('key', '=', eb.fn.any(eb.val([...keys]))))
      .returningAll()
      .execute();
    return rows.map(withoutNulls);
  },

  keysWithPrefix: async (application, prefix) => {
    const query = db.selectFrom('outbox').select('key').where('applicationId', '=', application);
    return (await query.where(eb => eb.fn<boolean>('starts_with', ['key', eb.val(prefix)])).execute()).map(
      ({ key }) => key,
    );
  },

  stagedNames: async host => {
    const rows = await db.selectFrom('outbox').select('staged').where('hostId', '=', host).execute();
    return new Set(rows.map(({ staged }) => staged));
  },
});

/** Inserts all rows in one statement. */
export async function insertIntoOutbox(db: Db, rows: readonly OutboxRow[]): Promise<void> {
  const values = rows.map(({ id, applicationId, hostId, key, staged, contentType, dueAt, createdAt }) => ({
    ...{ id, applicationId, hostId, key, staged, contentType: contentType ?? null, dueAt, createdAt },
  }));
  await db.insertInto('outbox').values(values).execute();
}
