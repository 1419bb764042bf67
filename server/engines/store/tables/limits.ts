// The configured limits of applications. Every application has a row from its creation.
import type { Db } from '../database.ts';
import type { LimitsRows } from '../rows/limits.ts';

export const limits = (db: Db): LimitsRows => ({
  get: application =>
    db.selectFrom('applicationLimits').selectAll().where('applicationId', '=', application).executeTakeFirst(),

  replace: (application, revision, settings, now) =>
    db
      .updateTable('applicationLimits')
      .set({ configured: JSON.stringify(settings), revision: revision + 1, updatedAt: now })
      .where('applicationId', '=', application)
      .where('revision', '=', revision)
      .returningAll()
      .executeTakeFirst(),
});
