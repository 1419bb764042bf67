// Passkeys of accounts.
import type { Db } from '../database.ts';
import type { Passkeys } from '../rows/passkeys.ts';
import { countAll, lockAccount } from './limited-insert.ts';
import { withoutNulls } from './without-nulls.ts';

export const passkeys = (db: Db): Passkeys => ({
  insert: (row, limit) =>
    db.transaction().execute(async trx => {
      await lockAccount(trx, row.accountId);
      const query = trx.selectFrom('passkeys').where('accountId', '=', row.accountId);
      if ((await query.select(countAll).executeTakeFirstOrThrow()).count >= limit) return 'limit_reached';
      const insertion = trx
        .insertInto('passkeys')
        .values(row)
        .onConflict(on => on.column('credentialId').doNothing());
      return (await insertion.returning('id').execute()).length > 0 ? 'inserted' : 'exists';
    }),

  list: async account =>
    (await db.selectFrom('passkeys').selectAll().where('accountId', '=', account).orderBy('id').execute()).map(
      withoutNulls,
    ),

  byCredential: async credentialId =>
    (await db.selectFrom('passkeys').selectAll().where('credentialId', '=', credentialId).execute()).map(
      withoutNulls,
    )[0],

  remove: async (account, id) => {
    const deletion = db.deleteFrom('passkeys').where('accountId', '=', account).where('id', '=', id);
    return (await deletion.returning('id').execute()).length > 0;
  },

  recordUse: async (id, counter, at) => {
    const update = db
      .updateTable('passkeys')
      .set({ counter, lastUsedAt: at })
      .where('id', '=', id)
      .where(eb => eb.or([eb('counter', '<', counter), eb.and([eb('counter', '=', 0), eb.val(counter === 0)])]));
    return (await update.returning('id').execute()).length > 0;
  },
});
