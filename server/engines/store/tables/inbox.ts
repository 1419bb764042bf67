// Items that are waiting for members. Triggers delete the rows of `told_items` as soon as an item is no longer waiting
// (0048-inbox.ts), so an e-mail without such rows has nothing more to report.
import { type RawBuilder, sql } from 'kysely';
import type { AccountId } from '../../../kit/ids.ts';
import { type Db, inTransaction } from '../database.ts';
import type {
  InboxCount,
  InboxRoles,
  InboxRows,
  NotificationSettings,
  NotifyConditions,
  WaitingRow,
} from '../rows/inbox.ts';

const DEFAULT_SETTINGS: NotificationSettings = { mails: true, mutedApplications: [] };

export const inbox = (db: Db): InboxRows => ({
  counts: async (account, roles, now) => {
    const { rows } = await sql<InboxCount>`
      with waiting as (
        select a.application_id, a.id, 1 as approval from ${decidableActions(roles, now)} and m.account_id = ${account}
        union all
        select h.application_id, h.id, 0 from ${claimableHandoffs(roles, now)} and m.account_id = ${account})
      select application_id, applications.name as application_name, sum(approval)::integer as approvals,
          sum(1 - approval)::integer as handoffs, md5(string_agg(waiting.id::text, ' ' order by waiting.id)) as mark
        from waiting join applications on applications.id = application_id
        group by application_id, applications.name order by applications.name, application_id`.execute(db);
    return rows;
  },

  applicationsOf: async account => {
    const query = db.selectFrom('members').select('applicationId').where('accountId', '=', account);
    return (await query.execute()).map(({ applicationId }) => applicationId);
  },

  settings: async account => {
    const query = db.selectFrom('notificationSettings').select(['mails', 'mutedApplications']);
    return (await query.where('accountId', '=', account).executeTakeFirst()) ?? DEFAULT_SETTINGS;
  },

  changeSettings: (account, { mails, mutedApplications }) => {
    const changedColumns = {
      ...(mails === undefined ? {} : { mails }),
      ...(mutedApplications ? { mutedApplications: [...mutedApplications] } : {}),
    };
    return db
      .insertInto('notificationSettings')
      .values({ accountId: account, ...changedColumns })
      .onConflict(on => on.column('accountId').doUpdateSet(changedColumns))
      .returning(['mails', 'mutedApplications'])
      .executeTakeFirstOrThrow();
  },

  accountsToNotify: async (roles, conditions, limit) => {
    const { rows } = await sql<{ accountId: AccountId }>`
      select distinct account_id from (
        select m.account_id, a.application_id from ${decidableActions(roles, conditions.now)} and ${isNotNotified(sql`a`, conditions)}
        union all
        select m.account_id, h.application_id from ${claimableHandoffs(roles, conditions.now)} and ${isNotNotified(sql`h`, conditions)}) waiting
        join accounts on accounts.id = account_id and accounts.email_verified_at is not null
        left join notification_settings settings using (account_id)
        where ${wantsMail(sql`waiting.application_id`, conditions)}
        limit ${limit}`.execute(db);
    return rows.map(({ accountId }) => accountId);
  },

  postponeNotification: async (account, now) => {
    const columns = { toldAt: now };
    const settings = db.insertInto('notificationSettings').values({ accountId: account, ...columns });
    await settings.onConflict(on => on.column('accountId').doUpdateSet(columns)).execute();
  },

  recordNotification: (account, mail, roles, conditions, limit) =>
    inTransaction(db, async trx => {
      const address = await addressToNotify(trx, account, conditions);
      if (address === undefined) return undefined;
      const items = await waitingItemsOf(trx, account, roles, conditions, limit);
      if (items.length === 0) return undefined;
      await trx
        .insertInto('toldItems')
        .values(items.map(({ id, applicationId }) => ({ accountId: account, applicationId, itemId: id, mailId: mail })))
        .execute();
      const update = trx.updateTable('notificationSettings').set({ toldAt: conditions.now });
      await update.where('accountId', '=', account).execute();
      return { address, waiting: items.toSorted((one, other) => one.createdAt.getTime() - other.createdAt.getTime()) };
    }),
});

/** Actions as `a`, joined with the members who may decide them as `m`. */
const decidableActions = ({ member, owner }: InboxRoles, now: Date): RawBuilder<unknown> => sql`
  actions a join members m on m.application_id = a.application_id and m.role = any(
      case a.approver when 'member' then ${[...member]}::text[] when 'owner' then ${[...owner]}::text[] else '{}' end)
    where a.state = 'awaiting_approval' and a.expires_at > ${now}`;

/** Hand-offs as `h`, joined with the members who may claim them as `m`. */
const claimableHandoffs = ({ handoff }: InboxRoles, now: Date): RawBuilder<unknown> => sql`
  handoffs h join members m on m.application_id = h.application_id and m.role = any(${[...handoff]}::text[])
    where h.status = 'requested' and h.claimable_by = 'members' and h.expires_at > ${now}`;

const isNotNotified = (item: RawBuilder<unknown>, { waitingSince }: NotifyConditions): RawBuilder<unknown> => sql`
  ${item}.created_at <= ${waitingSince} and not exists (
    select from told_items told where told.account_id = m.account_id and told.item_id = ${item}.id)`;

const wantsMail = (application: RawBuilder<unknown>, { notifiedBefore }: NotifyConditions): RawBuilder<unknown> => sql`
  coalesce(settings.mails, true) and not ${application} = any(coalesce(settings.muted_applications, '{}'))
    and (settings.told_at is null or settings.told_at <= ${notifiedBefore})`;

/** Returns the e-mail address, and locks the settings so that only one process notifies the account. */
async function addressToNotify(
  trx: Db,
  account: AccountId,
  { notifiedBefore }: NotifyConditions,
): Promise<string | undefined> {
  await trx
    .insertInto('notificationSettings')
    .values({ accountId: account })
    .onConflict(on => on.doNothing())
    .execute();
  const { rows } = await sql<{ email: string | null }>`
    select accounts.email from notification_settings settings join accounts on accounts.id = settings.account_id
      where settings.account_id = ${account} and settings.mails and accounts.email_verified_at is not null
        and (settings.told_at is null or settings.told_at <= ${notifiedBefore})
      for update of settings skip locked`.execute(trx);
  return rows[0]?.email ?? undefined;
}

/** Returns waiting items. Items that are being decided or claimed at this moment are locked, and therefore left out. */
async function waitingItemsOf(
  trx: Db,
  account: AccountId,
  roles: InboxRoles,
  conditions: NotifyConditions,
  limit: number,
): Promise<WaitingRow[]> {
  const isOfAccount = (item: RawBuilder<unknown>) => sql`
    m.account_id = ${account} and ${isNotNotified(item, conditions)} and not ${item}.application_id = any(
      select unnest(muted_applications) from notification_settings where account_id = ${account})
    order by ${item}.created_at limit ${limit} for share of ${item} skip locked`;
  const applicationName = (item: RawBuilder<unknown>) =>
    sql`(select name from applications where id = ${item}.application_id) as application_name`;
  const approvals = await sql<WaitingRow>`
    select 'approval' as kind, a.id, a.application_id, a.created_at, a.expires_at, a.operation_id, a.operation_revision,
        ${applicationName(sql`a`)}
      from ${decidableActions(roles, conditions.now)} and ${isOfAccount(sql`a`)}`.execute(trx);
  const handoffs = await sql<WaitingRow>`
    select 'handoff' as kind, h.id, h.application_id, h.created_at, h.expires_at, h.reason, ${applicationName(sql`h`)}
      from ${claimableHandoffs(roles, conditions.now)} and ${isOfAccount(sql`h`)}`.execute(trx);
  return [...approvals.rows, ...handoffs.rows];
}
