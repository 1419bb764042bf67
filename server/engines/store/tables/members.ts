// Members of applications. Changes lock the application, so that concurrent changes run one after the other.
import { sql } from 'kysely';
import type { ApplicationId, InvitationId } from '../../../kit/ids.ts';
import { type Db, inTransaction } from '../database.ts';
import type { Members, MembershipChange } from '../rows/members.ts';
import { isPending } from './invitations.ts';
import { countAll, lockApplication } from './limited-insert.ts';
import { isMember, roleOf } from './member-role.ts';
import { withoutNulls } from './without-nulls.ts';

const lastActiveAt = sql<Date | null>`greatest(
  (select max(last_used_at) from tokens where tokens.account_id = accounts.id),
  (select max(last_used_at) from human_sessions where human_sessions.account_id = accounts.id))`;

export const members = (db: Db): Members => ({
  list: async (application, { limit, before }) => {
    const membersQuery = selectMembers(db, application)
      .orderBy('members.createdAt', 'desc')
      .orderBy('members.accountId', 'desc')
      .limit(limit);
    const { joinedAt, accountId } = before ?? {};
    const isOlder = sql<boolean>`(members.created_at, members.account_id) < (${joinedAt}, ${accountId})`;
    return (await (before ? membersQuery.where(isOlder) : membersQuery).execute()).map(withoutNulls);
  },

  get: async (application, account) =>
    (await selectMembers(db, application).where('members.accountId', '=', account).execute()).map(withoutNulls)[0],

  change: (application, change) => inTransaction(db, trx => changeMember(trx, application, change)),
});

const selectMembers = (db: Db, application: ApplicationId) =>
  db
    .selectFrom('members')
    .innerJoin('accounts', 'accounts.id', 'members.accountId')
    .select(['members.accountId', 'members.role', 'members.createdAt as joinedAt', 'accounts.name', 'accounts.email'])
    .select(lastActiveAt.as('lastActiveAt'))
    .where('members.applicationId', '=', application);

async function changeMember(
  trx: Db,
  application: ApplicationId,
  { by, account, role, mayInviteTo, now, decide }: MembershipChange,
): Promise<InvitationId[]> {
  await lockApplication(trx, application);
  const [requesterRole, memberRole] = [await roleOf(trx, application, by), await roleOf(trx, application, account)];
  const ownersQuery = trx.selectFrom('members').where('applicationId', '=', application).where('role', '=', 'owner');
  const { count } = await ownersQuery.select(countAll).executeTakeFirstOrThrow();
  decide({
    ...(requesterRole ? { requesterRole } : {}),
    ...(memberRole ? { memberRole } : {}),
    owners: count,
  });
  if (role === undefined) await trx.deleteFrom('members').where(isMember(application, account)).execute();
  else await trx.updateTable('members').set({ role }).where(isMember(application, account)).execute();
  const update = trx
    .updateTable('invitations')
    .set({ revokedAt: now })
    .where('applicationId', '=', application)
    .where('invitedBy', '=', account)
    .where(eb => eb.not(eb('role', '=', eb.fn.any(eb.val([...mayInviteTo])))))
    .where(isPending(now))
    .returning('id');
  return (await update.execute()).map(({ id }) => id);
}
