// Idempotency keys: one row each, written before the effect and kept for 24 hours.
import { type ExpressionBuilder, sql } from 'kysely';
import type { Db } from '../database.ts';
import type { IdempotencyRow, IdempotencyRows, IdempotencyRun } from '../rows/idempotency.ts';
import type { Tables } from '../schema.ts';
import { withoutNulls } from './without-nulls.ts';

/**
 * The maximum number of attempts. Several may be needed, because the row may be removed between the insert and the
 * read.
 */
const ATTEMPTS_MAX = 5;

export const idempotency = (db: Db): IdempotencyRows => ({
  begin: async row => {
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      if (await insert(db, row)) return { began: true };
      const existingRow = await get(db, row);
      if (existingRow) return { existing: existingRow };
    }
    throw new Error(`an idempotency row could be neither inserted nor read in ${ATTEMPTS_MAX} attempts`);
  },

  keep: async (run, stored) => {
    const update = db.updateTable('idempotency').set({ kept: JSON.stringify(stored) });
    await update.where(matchesRun(run)).execute();
  },

  release: async run => {
    await db.deleteFrom('idempotency').where(matchesRun(run)).execute();
  },

  sweep: async (now, batchSize) => {
    const query = db
      .selectFrom('idempotency')
      .select(['owner', 'keyDigest'])
      .where('expiresAt', '<=', now)
      .orderBy('expiresAt')
      .limit(batchSize);
    const deletion = db
      .deleteFrom('idempotency')
      .where(({ eb, refTuple }) => eb(refTuple('owner', 'keyDigest'), 'in', query.$asTuple('owner', 'keyDigest')))
      .where('expiresAt', '<=', now)
      .returning('keyDigest');
    return (await deletion.execute()).length;
  },
});

/** Inserts the row with one statement, so that exactly one of several concurrent requests begins. */
async function insert(db: Db, row: IdempotencyRow): Promise<boolean> {
  const { owner, keyDigest, run, requestDigest, operation, hostId, createdAt, expiresAt } = row;
  const values = { run, requestDigest, operation, hostId, createdAt, expiresAt };
  const insertion = db
    .insertInto('idempotency')
    .values({ owner, keyDigest, ...values })
    .onConflict(conflict =>
      conflict
        .columns(['owner', 'keyDigest'])
        .doUpdateSet({ ...values, sessionId: null, kept: null })
        .where('idempotency.expiresAt', '<=', createdAt),
    )
    .returning(sql<number>`1`.as('one'));
  return (await insertion.execute()).length > 0;
}

async function get(db: Db, { owner, keyDigest }: IdempotencyRow): Promise<IdempotencyRow | undefined> {
  const query = db.selectFrom('idempotency').selectAll().where('owner', '=', owner).where('keyDigest', '=', keyDigest);
  return (await query.execute()).map(withoutNulls)[0];
}

const matchesRun =
  ({ owner, keyDigest, run }: IdempotencyRun) =>
  (eb: ExpressionBuilder<Tables, 'idempotency'>) =>
    eb.and([eb('owner', '=', owner), eb('keyDigest', '=', keyDigest), eb('run', '=', run)]);
