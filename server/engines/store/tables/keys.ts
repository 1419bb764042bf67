// Agent keys of an application.
import { sql } from 'kysely';
import type { KeyId } from '../../../kit/ids.ts';
import { type Db, inTransaction } from '../database.ts';
import type { KeyRow, Keys } from '../rows/credentials.ts';
import { isLaterUse, isListed, isValid, revocationAnnouncement, revocationKeepingConnections } from './credentials.ts';
import { countAll, lockApplication } from './limited-insert.ts';
import { withoutNulls } from './without-nulls.ts';

export const keys = (db: Db): Keys => ({
  insert: (row, limit) => inTransaction(db, trx => insert(trx, row, limit)),

  list: async (application, now, { limit, before }) => {
    const query = db
      .selectFrom('keys')
      .selectAll()
      .where('applicationId', '=', application)
      .where(isListed(now))
      .orderBy('id', 'desc')
      .limit(limit);
    return (await (before ? query.where('id', '<', before) : query).execute()).map(withoutNulls);
  },

  get: async (application, id) => {
    const query = db.selectFrom('keys').selectAll().where('applicationId', '=', application).where('id', '=', id);
    return (await query.execute()).map(withoutNulls)[0];
  },

  byHash: async hash =>
    (await db.selectFrom('keys').selectAll().where('hash', '=', hash).execute()).map(withoutNulls)[0],

  change: async (application, id, revision, { grants, ...changedColumns }) => {
    const update = db
      .updateTable('keys')
      .set({
        ...changedColumns,
        revision: revision + 1,
        ...(grants === undefined ? {} : { grants: JSON.stringify(grants) }),
      })
      .where('applicationId', '=', application)
      .where('id', '=', id)
      .where('revision', '=', revision)
      .where('revokedAt', 'is', null)
      .returningAll()
      .returning(revocationAnnouncement.as('announced'));
    const [row] = await update.execute();
    if (!row) return undefined;
    const { announced: _, ...changedKey } = row;
    return withoutNulls(changedKey);
  },

  revoke: async (application, id, now, { shouldKeepConnections = false } = {}) => {
    const update = db
      .updateTable('keys')
      .set(eb => ({ revokedAt: now, revision: eb('revision', '+', 1) }))
      .where('applicationId', '=', application)
      .where('id', '=', id)
      .where(isValid(now))
      .returning((shouldKeepConnections ? revocationKeepingConnections : revocationAnnouncement).as('announced'));
    return (await update.execute()).length > 0;
  },

  rotate: (oldKey, successor, oldKeyExpiresAt, limit) =>
    inTransaction(db, trx => rotate(trx, oldKey, successor, oldKeyExpiresAt, limit)).catch(error => {
      if (error instanceof LimitReachedError) return 'limit_reached' as const;
      throw error;
    }),

  touch: async (id, at, ip) => {
    const update = db.updateTable('keys').set({ lastUsedAt: at, lastUsedIp: ip });
    await update.where('id', '=', id).where(isLaterUse(at)).execute();
  },
});

/**
 * Rotates a key. The expiry or revocation of the old key is written before the limit is checked. A key that is to be
 * revoked at once can therefore be rotated even when the limit is reached.
 */
async function rotate(
  trx: Db,
  oldKey: KeyId,
  successor: KeyRow,
  oldKeyExpiresAt: Date,
  limit: number,
): Promise<'rotated' | 'not_rotatable' | 'limit_reached'> {
  const now = successor.createdAt;
  const endedKeys = await trx
    .updateTable('keys')
    .set(eb => ({
      revision: eb('revision', '+', 1),
      replacedBy: successor.id,
      ...(oldKeyExpiresAt <= now
        ? { revokedAt: now }
        : { expiresAt: sql<Date>`least(expires_at, ${oldKeyExpiresAt})` }),
    }))
    .where('applicationId', '=', successor.applicationId)
    .where('id', '=', oldKey)
    .where('replacedBy', 'is', null)
    .where(isValid(now))
    .returning(revocationAnnouncement.as('announced'))
    .execute();
  if (endedKeys.length === 0) return 'not_rotatable';
  if ((await insert(trx, successor, limit)) === 'inserted') return 'rotated';
  throw new LimitReachedError();
}

/** Thrown to roll back the transaction. */
class LimitReachedError extends Error {}

async function insert(trx: Db, row: KeyRow, limit: number): Promise<'inserted' | 'limit_reached'> {
  await lockApplication(trx, row.applicationId);
  const query = trx.selectFrom('keys').where('applicationId', '=', row.applicationId).where(isValid(row.createdAt));
  if ((await query.select(countAll).executeTakeFirstOrThrow()).count >= limit) return 'limit_reached';
  await trx
    .insertInto('keys')
    .values({ ...row, grants: JSON.stringify(row.grants) })
    .execute();
  return 'inserted';
}
