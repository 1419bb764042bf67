// Sessions of people, and the strongest proof that their accounts are able to give.
import { sql } from 'kysely';
import type { AccountId } from '../../../kit/ids.ts';
import type { Db } from '../database.ts';
import type { Acr, HumanSessions } from '../rows/human-sessions.ts';
import { announced } from './credentials.ts';
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
    const one = db
      .selectFrom('humanSessions')
      .innerJoin('accounts', 'accounts.id', 'humanSessions.accountId')
      .selectAll('humanSessions')
      .select(strongestAcr.as('strongestAcr'))
      .where('hash', '=', hash);
    return (await one.execute()).map(withoutNulls)[0];
  },

  list: async (account, now) => {
    const listed = db.selectFrom('humanSessions').selectAll().where('accountId', '=', account).where(isValid(now));
    return (await listed.orderBy('id', 'desc').limit(LISTED_MAX).execute()).map(withoutNulls);
  },

  renew: (account, id, now, proof) =>
    db.transaction().execute(async trx => {
      const old = trx
        .selectFrom('humanSessions')
        .select(announced.as('announced'))
        .where('accountId', '=', account)
        .where('id', '=', id)
        .where(isValid(now))
        .forUpdate();
      if ((await old.execute()).length === 0) return false;
      await trx.updateTable('humanSessions').set(proof).where('id', '=', id).execute();
      return true;
    }),

  revoke: async (account, id, now) => {
    const revoked = revoking(db, account, now).where('id', '=', id).returning(announced.as('announced'));
    return (await revoked.execute()).length > 0;
  },

  revokeOthers: async (account, kept, now) => {
    const others = revoking(db, account, now);
    const revoked = kept === undefined ? others : others.where('id', '!=', kept);
    return (await revoked.returning(announced.as('announced')).execute()).length;
  },

  announce: async account => {
    await db.selectFrom('humanSessions').select(announced.as('announced')).where('accountId', '=', account).execute();
  },

  touch: async (id, at, ip, idleExpiresAt) => {
    const used = db.updateTable('humanSessions').set({ lastUsedAt: at, lastUsedIp: ip, idleExpiresAt });
    await used
      .where('id', '=', id)
      .where(eb => eb.or([eb('lastUsedAt', 'is', null), eb('lastUsedAt', '<', at)]))
      .execute();
  },
});

/** More than one person has; older ones are still valid and can be ended all at once. */
const LISTED_MAX = 200;

const isValid = (now: Date) => sql<boolean>`revoked_at is null and least(expires_at, idle_expires_at) > ${now}`;

const revoking = (db: Db, account: AccountId, now: Date) =>
  db.updateTable('humanSessions').set({ revokedAt: now }).where('accountId', '=', account).where(isValid(now));
