// Consumer sessions. Each refresh replaces the tokens of the consumer session and records which refresh token was used.
import { sql } from 'kysely';
import type { Db } from '../database.ts';
import type { ConsumerSessions } from '../rows/consumers.ts';
import type { Acr } from '../rows/human-sessions.ts';
import { revocationAnnouncement } from './credentials.ts';
import { withoutNulls } from './without-nulls.ts';

const strongestAcr = sql<Acr>`case
  when exists (select from consumer_passkeys where consumer_passkeys.consumer_id = consumers.id) then 'phr'
  else 'berth:1' end`;

export const consumerSessions = (db: Db): ConsumerSessions => ({
  insert: async row => {
    await db.insertInto('consumerSessions').values(row).execute();
  },

  byHash: async hash => {
    const query = db
      .selectFrom('consumerSessions')
      .innerJoin('consumers', 'consumers.id', 'consumerSessions.consumerId')
      .selectAll('consumerSessions')
      .select(strongestAcr.as('strongestAcr'))
      .where('consumers.deletedAt', 'is', null)
      .where('consumers.linkedTo', 'is', null)
      .where('hash', '=', hash);
    return (await query.execute()).map(withoutNulls)[0];
  },

  get: async (application, id) =>
    (
      await db
        .selectFrom('consumerSessions')
        .selectAll()
        .where('applicationId', '=', application)
        .where('id', '=', id)
        .execute()
    ).map(withoutNulls)[0],

  listActive: async (consumer, now, limit) => {
    const query = db
      .selectFrom('consumerSessions')
      .selectAll()
      .where('consumerId', '=', consumer)
      .where('revokedAt', 'is', null)
      .where(eb =>
        eb.or([
          eb('expiresAt', '>', now),
          eb.and([eb('refreshHash', 'is not', null), eb('refreshExpiresAt', '>', now)]),
        ]),
      );
    return (await query.orderBy('id', 'desc').limit(limit).execute()).map(withoutNulls);
  },

  byRefreshHash: async hash => {
    const query = db.selectFrom('consumerSessions').selectAll().where('refreshHash', '=', hash);
    const [row] = (await query.execute()).map(withoutNulls);
    if (row) return { row, isCurrent: true };
    const earlierSessionQuery = db
      .selectFrom('consumerSessions')
      .innerJoin('consumerUsedRefreshes', 'consumerUsedRefreshes.sessionId', 'consumerSessions.id')
      .selectAll('consumerSessions')
      .where('consumerUsedRefreshes.hash', '=', hash);
    const [earlierRow] = (await earlierSessionQuery.execute()).map(withoutNulls);
    return earlierRow && { row: earlierRow, isCurrent: false };
  },

  refresh: (id, hash, tokens, now) =>
    db.transaction().execute(async trx => {
      const query = trx
        .selectFrom('consumerSessions')
        .select(revocationAnnouncement.as('announced'))
        .where('id', '=', id)
        .where('refreshHash', '=', hash)
        .where('revokedAt', 'is', null)
        .where('refreshExpiresAt', '>', now)
        .forUpdate();
      if ((await query.execute()).length === 0) return false;
      await trx.insertInto('consumerUsedRefreshes').values({ hash, sessionId: id, usedAt: now }).execute();
      await trx.updateTable('consumerSessions').set(tokens).where('id', '=', id).execute();
      return true;
    }),

  recordProof: (id, proof, now) =>
    db.transaction().execute(async trx => {
      const query = trx
        .selectFrom('consumerSessions')
        .select(revocationAnnouncement.as('announced'))
        .where('id', '=', id)
        .where('revokedAt', 'is', null)
        .where('expiresAt', '>', now)
        .forUpdate();
      if ((await query.execute()).length === 0) return false;
      await trx.updateTable('consumerSessions').set(proof).where('id', '=', id).execute();
      return true;
    }),

  revoke: async (consumer, choice, now) => {
    const update = db
      .updateTable('consumerSessions')
      .set({ revokedAt: now })
      .where('consumerId', '=', consumer)
      .where('revokedAt', 'is', null);
    const chosenUpdate =
      'only' in choice
        ? update.where('id', '=', choice.only)
        : update.where('id', 'is distinct from', choice.allBut ?? null);
    return hashesOf(await chosenUpdate.returning(['hash', revocationAnnouncement.as('announced')]).execute());
  },

  invalidateCaches: async consumer => {
    const query = db.selectFrom('consumerSessions').select(['hash', revocationAnnouncement.as('announced')]);
    return hashesOf(await query.where('consumerId', '=', consumer).where('revokedAt', 'is', null).execute());
  },

  touch: async (id, at, ip) => {
    const update = db.updateTable('consumerSessions').set({ lastUsedAt: at, lastUsedIp: ip }).where('id', '=', id);
    await update.where(eb => eb.or([eb('lastUsedAt', 'is', null), eb('lastUsedAt', '<', at)])).execute();
  },

  removeExpired: async before => {
    const deletion = db.deleteFrom('consumerSessions').where('refreshExpiresAt', '<', before);
    return (await deletion.returning('id').execute()).length;
  },
});

const hashesOf = (rows: ReadonlyArray<{ readonly hash: Buffer }>): Buffer[] => rows.map(({ hash }) => hash);
