// Accounts, to which applications belong.
import type { Db } from '../database.ts';
import type { Accounts } from '../rows/accounts.ts';

export const accounts = (db: Db): Accounts => ({
  first: () => db.selectFrom('accounts').selectAll().orderBy('createdAt').orderBy('id').limit(1).executeTakeFirst(),

  insert: async row => {
    const { id, name, createdAt } = row;
    await db.insertInto('accounts').values({ id, name, createdAt }).execute();
  },
});
