// Helpers for inserts with a limit per application or account. They lock the row of the application or account, so that
// concurrent inserts together cannot exceed the limit, and count the existing rows.
import { sql } from 'kysely';
import type { AccountId, ApplicationId } from '../../../kit/ids.ts';
import type { Db } from '../database.ts';

export const lockApplication = (trx: Db, id: ApplicationId) =>
  trx.selectFrom('applications').select('id').where('id', '=', id).forNoKeyUpdate().execute();

export const lockAccount = (trx: Db, id: AccountId) =>
  trx.selectFrom('accounts').select('id').where('id', '=', id).forNoKeyUpdate().execute();

/** The number of rows, as the column `count`. */
export const countAll = sql<number>`count(*)`.as('count');
