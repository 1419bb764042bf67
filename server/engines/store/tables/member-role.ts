// The role of one member, for tables whose statements depend on this role.
import { sql } from 'kysely';
import type { AccountId, ApplicationId } from '../../../kit/ids.ts';
import type { Db } from '../database.ts';
import type { Role } from '../rows/accounts.ts';

export const isMember = (application: ApplicationId, account: AccountId) =>
  sql<boolean>`application_id = ${application} and account_id = ${account}`;

export async function roleOf(db: Db, application: ApplicationId, account: AccountId): Promise<Role | undefined> {
  const query = db.selectFrom('members').select('role').where(isMember(application, account));
  return (await query.executeTakeFirst())?.role;
}
