// Human sessions, and the strongest proof that their accounts can give.
import { sql } from 'kysely';
import type { Db } from '../database.ts';
import type { Acr, HumanSessions } from '../rows/human-sessions.ts';
import { revocationAnnouncement } from './credentials.ts';
import { withoutNulls } from './without-nulls.ts';

const strongestAcr = sql<Acr>`case
  when exists (select from passkeys where passkeys.account_id = accounts.id) then 'phr'
  when accounts.totp_enabled_at is not null then 'berth:2'
  else 'berth:1' end`;

export const humanSessions = (db: Db): HumanSessions => ({
  insert: async row => {
    await db.insertInto('humanSessions').values(row).execute();
  },

  byHash: async hash => {
    const query = db
      .selectFrom('humanSessions')
      .innerJoin('accounts', 'accounts.id', 'humanSessions.accountId')
      .selectAll('humanSessions')
      .select(strongestAcr.as('strongestAcr'))
      .where('hash', '=', hash);
    return (await query.execute()).map(withoutNulls)[0];
  },

  list: async (account, now) => {
    const query = db.selectFrom('humanSessions').selectAll().where('accountId', '=', account).where(isValid(now));
    return (await query.orderBy('id', 'desc').limit(LISTED_SESSIONS_MAX).execute()).map(withoutNulls);
  },

  renew: (account, id, now, proof) =>
    db.transaction().execute(async trx => {
      const query = trx
        .selectFrom('humanSessions')
        .select(['hash', revocationAnnouncement.as('announced')])
        .where('accountId', '=', account)
        .where('id', '=', id)
        .where(isValid(now))
        .forUpdate();
      const [lockedSession] = await query.execute();
      if (lockedSession) await trx.updateTable('humanSessions').set(proof).where('id', '=', id).execute();
      return lockedSession?.hash;
    }),

  revoke: async (account, choice, now) => {
    const update = db
      .updateTable('humanSessions')
      .set({ revokedAt: now })
      .where('accountId', '=', account)
      .where(isValid(now));
    const chosenUpdate =
      'only' in choice
        ? update.where('id', '=', choice.only)
        : update.where('id', 'is distinct from', choice.allBut ?? null);
    return hashesOf(await chosenUpdate.returning(['hash', revocationAnnouncement.as('announced')]).execute());
  },

  invalidateCaches: async account => {
    const query = db.selectFrom('humanSessions').select(['hash', revocationAnnouncement.as('announced')]);
    return hashesOf(await query.where('accountId', '=', account).where('revokedAt', 'is', null).execute());
  },

  touch: async (id, at, ip, idleExpiresAt) => {
    const update = db.updateTable('humanSessions').set({ lastUsedAt: at, lastUsedIp: ip, idleExpiresAt });
    await update
      .where('id', '=', id)
      .where(eb => eb.or([eb('lastUsedAt', 'is', null), eb('lastUsedAt', '<', at)]))
      .execute();
  },
});

/**
 * The maximum number of listed human sessions, which is more than a person needs. Human sessions beyond this number are
 * still valid. They also end when the person ends all other human sessions.
 */
const LISTED_SESSIONS_MAX = 200;

const isValid = (now: Date) => sql<boolean>`revoked_at is null and least(expires_at, idle_expires_at) > ${now}`;

const hashesOf = (rows: ReadonlyArray<{ readonly hash: Buffer }>): Buffer[] => rows.map(({ hash }) => hash);
