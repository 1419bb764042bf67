// The numbers of a session's pages.
import type { Db } from '../database.ts';
import type { PageRows } from '../rows/pages.ts';

export const pages = (db: Db): PageRows => ({
  list: (application, session) =>
    db
      .selectFrom('sessionPages')
      .select(['number', 'targetId', 'appearedAt'])
      .where('applicationId', '=', application)
      .where('sessionId', '=', session)
      .orderBy('number')
      .execute(),

  add: async (application, session, newPages) => {
    if (newPages.length === 0) return;
    const values = newPages.map(page => ({ ...page, applicationId: application, sessionId: session }));
    await db
      .insertInto('sessionPages')
      .values(values)
      .onConflict(conflict => conflict.doNothing())
      .execute();
  },
});
