// Passkeys of accounts.
import type { Db } from '../database.ts';
import type { Passkeys } from '../rows/passkeys.ts';
import { countAll, lockAccount } from './limited-insert.ts';
import { withoutNulls } from './without-nulls.ts';

export const passkeys = (db: Db): Passkeys => ({
  insert: (row, limit) =>
    db.transaction().execute(async trx => {
      await lockAccount(trx, row.accountId);
      const all = trx.selectFrom('passkeys').where('accountId', '=', row.accountId);
      if ((await all.select(countAll).executeTakeFirstOrThrow()).count >= limit) return 'limit_reached';
      const inserted = trx
        .insertInto('passkeys')
        .values(row)
        .onConflict(on => on.column('credentialId').doNothing());
      return (await inserted.returning('id').execute()).length > 0 ? 'inserted' : 'exists';
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
    const removed = db.deleteFrom('passkeys').where('accountId', '=', account).where('id', '=', id);
    return (await removed.returning('id').execute()).length > 0;
  },

  used: async (id, counter, at) => {
    const used = db
      .updateTable('passkeys')
      .set({ counter, lastUsedAt: at })
      .where('id', '=', id)
      .where(eb => eb.or([eb('counter', '<', counter), eb.and([eb('counter', '=', 0), eb.val(counter === 0)])]));
    return (await used.returning('id').execute()).length > 0;
  },
});
