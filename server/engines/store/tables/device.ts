// Device authorizations. Every change of status sends a notification.
import { sql } from 'kysely';
import type { DeviceAuthorizationId } from '../../../kit/ids.ts';
import { type Db, inTransaction } from '../database.ts';
import type { DeviceAuthorizationRow, DeviceAuthorizationRows, TokenRequestEffect } from '../rows/device.ts';
import type { Channel } from '../store.ts';
import { isValid, revocationAnnouncement as tokenRevocationAnnouncement } from './credentials.ts';
import { countAll } from './limited-insert.ts';
import { insertToken } from './tokens.ts';
import { withoutNulls } from './without-nulls.ts';

const CHANGE_CHANNEL: Channel = 'device_changed';
const changeAnnouncement = sql<string>`pg_notify(${sql.lit(CHANGE_CHANNEL)}, id::text)`.as('announced');

export const deviceAuthorizations = (db: Db): DeviceAuthorizationRows => ({
  insert: async (row, unexpiredMax) => {
    const unexpiredQuery = db.selectFrom('deviceAuthorizations').where('expiresAt', '>', row.startedAt);
    if ((await unexpiredQuery.select(countAll).executeTakeFirstOrThrow()).count >= unexpiredMax) return 'limit_reached';
    const insertion = db.insertInto('deviceAuthorizations').values(row);
    const conditionalInsertion = insertion.onConflict(on => on.column('userCodeHash').doNothing()).returning('id');
    return (await conditionalInsertion.execute()).length > 0 ? 'inserted' : 'code_taken';
  },

  byDeviceCode: async hash => (await selectByDeviceCode(db, hash).execute()).map(withoutNulls)[0],

  claim: async (userCode, account, now) => {
    const update = db.updateTable('deviceAuthorizations').set({ status: 'claimed', accountId: account });
    const claimUpdate = update
      .where('userCodeHash', '=', userCode)
      .where('status', '=', 'pending')
      .where('expiresAt', '>', now)
      .returningAll()
      .returning(changeAnnouncement);
    const [claimedRow] = await claimUpdate.execute();
    if (claimedRow) {
      const { announced: _, ...row } = claimedRow;
      return { row: withoutNulls(row), isFirst: true };
    }
    const [ownRow] = await selectClaimed(db, userCode, account, now).execute();
    return ownRow && { row: withoutNulls(ownRow), isFirst: false };
  },

  getClaimed: async (userCode, account, now) =>
    (await selectClaimed(db, userCode, account, now).execute()).map(withoutNulls)[0],

  decide: async (id, account, now, decision) => {
    const update = db
      .updateTable('deviceAuthorizations')
      .set(decision)
      .where('id', '=', id)
      .where('status', '=', 'claimed')
      .where('accountId', '=', account)
      .where('expiresAt', '>', now);
    return (await update.returning(changeAnnouncement).execute()).length > 0;
  },

  recordStateRead: async (id, now, since) => {
    const update = db.updateTable('deviceAuthorizations').set({ stateReadAt: now }).where('id', '=', id);
    const conditionalUpdate = update.where(eb =>
      eb.or([eb('stateReadAt', 'is', null), eb('stateReadAt', '<=', since)]),
    );
    return (await conditionalUpdate.returning('id').execute()).length > 0;
  },

  collect: (deviceCode, now, decideEffect, tokensMax) =>
    inTransaction(db, async trx => {
      const row = (await selectByDeviceCode(trx, deviceCode).forUpdate().execute()).map(withoutNulls)[0];
      const verdict = decideEffect(row);
      if (!row) return { verdict };
      const effectOutcome = await applyEffect(trx, row, verdict, now, tokensMax);
      return { row, verdict: effectOutcome === 'limit_reached' ? effectOutcome : verdict };
    }),

  removeExpired: async before => {
    const deletion = db.deleteFrom('deviceAuthorizations').where('expiresAt', '<', before);
    return (await deletion.returning('id').execute()).length;
  },
});

const selectByDeviceCode = (db: Db, hash: Buffer) =>
  db.selectFrom('deviceAuthorizations').selectAll().where('deviceCodeHash', '=', hash);

const selectClaimed = (
  db: Db,
  userCode: Buffer,
  account: NonNullable<DeviceAuthorizationRow['accountId']>,
  now: Date,
) =>
  db
    .selectFrom('deviceAuthorizations')
    .selectAll()
    .where('userCodeHash', '=', userCode)
    .where('accountId', '=', account)
    .where('expiresAt', '>', now);

async function applyEffect(
  trx: Db,
  { id }: DeviceAuthorizationRow,
  verdict: TokenRequestEffect,
  now: Date,
  tokensMax: number,
): Promise<'done' | 'limit_reached'> {
  if (verdict.kind === 'count') await updateAuthorization(trx, id).set({ polledAt: now }).execute();
  if (verdict.kind === 'slow_down')
    await updateAuthorization(trx, id).set({ intervalSeconds: verdict.intervalSeconds }).execute();
  if (verdict.kind === 'redeem') {
    const { token } = verdict;
    if ((await insertToken(trx, token, tokensMax)) === 'limit_reached') return 'limit_reached';
    const redeemUpdate = updateAuthorization(trx, id).set({ status: 'redeemed', tokenId: token.id, polledAt: now });
    await redeemUpdate.where('status', '=', 'approved').returning(changeAnnouncement).executeTakeFirstOrThrow();
  }
  if (verdict.kind === 'revoke') {
    const update = trx.updateTable('tokens').set({ revokedAt: now }).where('id', '=', verdict.token);
    await update.where(isValid(now)).returning(tokenRevocationAnnouncement.as('announced')).execute();
  }
  return 'done';
}

const updateAuthorization = (trx: Db, id: DeviceAuthorizationId) =>
  trx.updateTable('deviceAuthorizations').where('id', '=', id);
