// Hosts: the server processes that own browsers.
import type { Db } from '../database.ts';
import type { Hosts } from '../rows/hosts.ts';

export const hosts = (db: Db): Hosts => ({
  announce: async ({ id, region, slots, startedAt }) => {
    await db
      .insertInto('hosts')
      .values({ id, region, slots, startedAt })
      .onConflict(conflict => conflict.column('id').doUpdateSet({ region, slots, startedAt }))
      .execute();
  },
});
