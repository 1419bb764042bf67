// Signing keys. No key is removed, because the signatures of a retired key must remain verifiable.
import { type Selectable, sql } from 'kysely';
import type { Db } from '../database.ts';
import type { SigningKeyRow, SigningKeyRows } from '../rows/vault.ts';
import type { Tables } from '../schema.ts';
import { withoutNulls } from './without-nulls.ts';

export const signingKeys = (db: Db): SigningKeyRows => ({
  active: async () =>
    (await db.selectFrom('signingKeys').selectAll().where('retiredAt', 'is', null).execute()).map(keyRow)[0],

  all: async () => (await db.selectFrom('signingKeys').selectAll().orderBy('createdAt', 'desc').execute()).map(keyRow),

  insertFirst: async row => {
    await insert(db, row)
      .onConflict(on => on.doNothing())
      .execute();
  },

  rotate: row =>
    db.transaction().execute(async trx => {
      await sql`lock table signing_keys in share row exclusive mode`.execute(trx);
      await trx.updateTable('signingKeys').set({ retiredAt: row.createdAt }).where('retiredAt', 'is', null).execute();
      await insert(trx, row).execute();
    }),
});

const insert = (db: Db, { kid, publicJwk, sealed, createdAt }: SigningKeyRow) =>
  db.insertInto('signingKeys').values({ kid, publicJwk: JSON.stringify(publicJwk), sealed, createdAt });

const keyRow = (row: Selectable<Tables['signingKeys']>): SigningKeyRow => withoutNulls(row);
