// For inserts with a limit per application or account: locks that row, so that concurrent inserts cannot exceed the
// limit together, and counts.
import { sql } from 'kysely';
import type { AccountId, ApplicationId } from '../../../kit/ids.ts';
import type { Db } from '../database.ts';

export const lockApplication = (trx: Db, id: ApplicationId) =>
  trx.selectFrom('applications').select('id').where('id', '=', id).forNoKeyUpdate().execute();

export const lockAccount = (trx: Db, id: AccountId) =>
  trx.selectFrom('accounts').select('id').where('id', '=', id).forNoKeyUpdate().execute();

/** The number of rows, as the column `count`. */
export const countAll = sql<number>`count(*)`.as('count');
