// Accounts, which own applications, and how people sign in to them.

import type { AccountId } from '../../../kit/ids.ts';
import type { Db } from '../database.ts';
import type { AccountChange, Accounts } from '../rows/accounts.ts';
import { countAll } from './limited-insert.ts';
import { withoutNulls } from './without-nulls.ts';

const UNIQUE_VIOLATION = '23505';

export const accounts = (db: Db): Accounts => ({
  first: async () =>
    (await selectAccounts(db).orderBy('createdAt').orderBy('id').limit(1).execute()).map(withoutNulls)[0],

  insert: async row => {
    const insertion = db.insertInto('accounts').values(row);
    const insertedRows = await insertion
      .onConflict(on => on.column('email').doNothing())
      .returning('id')
      .execute();
    return insertedRows.length > 0 ? 'inserted' : 'email_taken';
  },

  get: async id => (await selectAccounts(db).where('id', '=', id).execute()).map(withoutNulls)[0],

  byEmail: async email => (await selectAccounts(db).where('email', '=', email).execute()).map(withoutNulls)[0],

  canAnyoneSignIn: async () =>
    (await db.selectFrom('accounts').select('id').where('email', 'is not', null).limit(1).execute()).length > 0,

  change: (id, change) => changeAccount(db, id, change),

  spendTotpStep: async (id, step) => {
    const update = db.updateTable('accounts').set({ totpLastStep: step }).where('id', '=', id);
    const conditionalUpdate = update.where(eb =>
      eb.or([eb('totpLastStep', 'is', null), eb('totpLastStep', '<', step)]),
    );
    return (await conditionalUpdate.returning('id').execute()).length > 0;
  },

  replaceRecoveryCodes: (id, hashes) =>
    db.transaction().execute(async trx => {
      await trx.deleteFrom('recoveryCodes').where('accountId', '=', id).execute();
      if (hashes.length === 0) return;
      await trx
        .insertInto('recoveryCodes')
        .values(hashes.map(hash => ({ accountId: id, hash })))
        .execute();
    }),

  spendRecoveryCode: async (id, hash, now) => {
    const update = db.updateTable('recoveryCodes').set({ usedAt: now }).where('accountId', '=', id);
    const unusedCodeUpdate = update.where('hash', '=', hash).where('usedAt', 'is', null);
    return (await unusedCodeUpdate.returning('hash').execute()).length > 0;
  },

  countRecoveryCodes: async id => {
    const query = db.selectFrom('recoveryCodes').where('accountId', '=', id).where('usedAt', 'is', null);
    return (await query.select(countAll).executeTakeFirstOrThrow()).count;
  },
});

const selectAccounts = (db: Db) => db.selectFrom('accounts').selectAll();

async function changeAccount(db: Db, id: AccountId, change: AccountChange): Promise<'changed' | 'email_taken'> {
  const values = Object.fromEntries(Object.entries(change).map(([name, value]) => [name, value ?? null]));
  try {
    await db.updateTable('accounts').set(values).where('id', '=', id).execute();
    return 'changed';
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === UNIQUE_VIOLATION) return 'email_taken';
    throw error;
  }
}
