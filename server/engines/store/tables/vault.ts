// The wrapped data keys of the vault. An insert takes a shared lock on the installation's row, and a change of the
// master key takes an exclusive lock, so that no row stays wrapped by a key that is no longer in use.
import { type Selectable, sql } from 'kysely';
import type { Db } from '../database.ts';
import type { DataKeyRows } from '../rows/vault.ts';
import type { Tables } from '../schema.ts';

const INSTALLATION_ID = '00000000-0000-0000-0000-000000000000';

export const dataKeys = (db: Db): DataKeyRows => ({
  get: owner => get(db, owner),

  insertFirst: async row => {
    await db
      .insertInto('vaultKeys')
      .values({ ...row, owner: INSTALLATION_ID })
      .onConflict(on => on.doNothing())
      .execute();
    return (await get(db, INSTALLATION_ID)) ?? row;
  },

  insert: async ({ owner, master, wrapped, createdAt }) => {
    await sql`
      with current as (select master from vault_keys where owner = ${INSTALLATION_ID} for share)
      insert into vault_keys (owner, master, wrapped, created_at)
      select ${owner}::uuid, master, ${wrapped}::bytea, ${createdAt}::timestamptz from current where master = ${master}
      on conflict do nothing`.execute(db);
    return get(db, owner);
  },

  remove: async owner => {
    await db.deleteFrom('vaultKeys').where('owner', '=', owner).where('owner', '<>', INSTALLATION_ID).execute();
  },

  change: work =>
    db.transaction().execute(async trx => {
      const query = trx.selectFrom('vaultKeys').selectAll();
      await query.where('owner', '=', INSTALLATION_ID).forUpdate().execute();
      // A separate statement, because only a new statement sees the changes that were committed while the previous one
      // waited for the lock.
      for (const { owner, master, wrapped } of await work(await query.forUpdate().execute()))
        await trx.updateTable('vaultKeys').set({ master, wrapped }).where('owner', '=', owner).execute();
    }),
});

const get = (db: Db, owner: string): Promise<Selectable<Tables['vaultKeys']> | undefined> =>
  db.selectFrom('vaultKeys').selectAll().where('owner', '=', owner).executeTakeFirst();
