// Invitations to applications. Creating or accepting an invitation locks the application, as do changes to the members
// of the application.
import { sql } from 'kysely';
import type { AccountId } from '../../../kit/ids.ts';
import { type Db, inTransaction } from '../database.ts';
import type { Role } from '../rows/accounts.ts';
import type { InvitationRow, Invitations, InvitingState } from '../rows/invitations.ts';
import { countAll, lockApplication } from './limited-insert.ts';
import { roleOf } from './member-role.ts';
import { withoutNulls } from './without-nulls.ts';

const endedAt = sql<Date>`coalesce(accepted_at, revoked_at, expires_at)`;

export const isPending = (now: Date) =>
  sql<boolean>`accepted_at is null and revoked_at is null and expires_at > ${now}`;

export const invitations = (db: Db): Invitations => ({
  insert: (row, countedSince, decide) =>
    inTransaction(db, async trx => {
      await lockApplication(trx, row.applicationId);
      decide(await invitingState(trx, row, countedSince));
      await trx.insertInto('invitations').values(row).execute();
    }),

  list: async (application, endedSince, { limit, before }) => {
    const query = db
      .selectFrom('invitations')
      .selectAll()
      .where('applicationId', '=', application)
      .where(endedAt, '>', endedSince)
      .orderBy('id', 'desc')
      .limit(limit);
    return (await (before ? query.where('id', '<', before) : query).execute()).map(withoutNulls);
  },

  byHash: async hash =>
    (await db.selectFrom('invitations').selectAll().where('hash', '=', hash).execute()).map(withoutNulls)[0],

  revoke: async (application, id, now) => {
    const update = db.updateTable('invitations').set({ revokedAt: now }).where('applicationId', '=', application);
    return (await update.where('id', '=', id).where(isPending(now)).returning('id').execute()).length > 0;
  },

  accept: (row, account, now, roleFor) => inTransaction(db, trx => accept(trx, row, account, now, roleFor)),

  removeEnded: async before =>
    (await db.deleteFrom('invitations').where(endedAt, '<', before).returning('id').execute()).length,
});

async function invitingState(trx: Db, row: InvitationRow, countedSince: Date): Promise<InvitingState> {
  const role = await roleOf(trx, row.applicationId, row.invitedBy);
  const query = trx.selectFrom('invitations').where('applicationId', '=', row.applicationId);
  const { count } = await query.where(isPending(row.createdAt)).select(countAll).executeTakeFirstOrThrow();
  const recentRows = await query
    .where('createdAt', '>', countedSince)
    .select('createdAt')
    .orderBy('createdAt')
    .execute();
  return { ...(role ? { role } : {}), pending: count, recent: recentRows.map(({ createdAt }) => createdAt) };
}

async function accept(
  trx: Db,
  { id, applicationId }: Pick<InvitationRow, 'id' | 'applicationId'>,
  accountId: AccountId,
  now: Date,
  roleFor: (currentRole: Role | undefined) => Role,
): Promise<Role | undefined> {
  await lockApplication(trx, applicationId);
  const update = trx.updateTable('invitations').set({ acceptedAt: now, acceptedBy: accountId }).where('id', '=', id);
  if ((await update.where(isPending(now)).returning('id').execute()).length === 0) return undefined;
  const role = roleFor(await roleOf(trx, applicationId, accountId));
  await trx
    .insertInto('members')
    .values({ applicationId, accountId, role, createdAt: now })
    .onConflict(conflict => conflict.columns(['accountId', 'applicationId']).doUpdateSet({ role }))
    .execute();
  return role;
}
