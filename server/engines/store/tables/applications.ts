// Applications and their members.
import { type ExpressionBuilder, sql } from 'kysely';
import type { AccountId, ApplicationId, TokenId } from '../../../kit/ids.ts';
import { isUuid } from '../../../kit/ids.ts';
import { type Db, inTransaction } from '../database.ts';
import type { ApplicationRow, Applications } from '../rows/accounts.ts';
import type { Tables } from '../schema.ts';
import { revocationAnnouncement } from './credentials.ts';
import { countAll, lockAccount } from './limited-insert.ts';

/**
 * The maximum number of applications that a lookup by name returns. Names need not be unique. If several match, the
 * caller must use the id.
 */
const FOUND_APPLICATIONS_MAX = 20;

const COLUMNS = [
  'applications.id',
  'applications.name',
  'applications.slug',
  'applications.billingAccountId',
  'applications.revision',
  'applications.createdAt',
  'applications.updatedAt',
] as const;

export const applications = (db: Db): Applications => ({
  insert: (row, owner, limit, tokenToRestrict) =>
    inTransaction(db, trx => insert(trx, row, owner, limit, tokenToRestrict)),

  list: (account, { limit, before }) => {
    const applicationsQuery = selectForMember(db, account).orderBy('applications.id', 'desc').limit(limit);
    return (before ? applicationsQuery.where('applications.id', '<', before) : applicationsQuery).execute();
  },

  get: (id, account) => selectForMember(db, account).where('applications.id', '=', id).executeTakeFirst(),

  find: idOrName => find(db, idOrName),

  byId: id => db.selectFrom('applications').select(COLUMNS).where('id', '=', id).executeTakeFirst(),

  rename: (id, revision, name, now) =>
    db
      .updateTable('applications')
      .set({ name, revision: revision + 1, updatedAt: now })
      .where('id', '=', id)
      .where('revision', '=', revision)
      .returning(COLUMNS)
      .executeTakeFirst(),
});

const selectForMember = (db: Db, account: AccountId) =>
  db
    .selectFrom('applications')
    .innerJoin('members', 'members.applicationId', 'applications.id')
    .select(COLUMNS)
    .select('members.role')
    .where('members.accountId', '=', account);

async function insert(
  trx: Db,
  row: ApplicationRow,
  owner: AccountId,
  limit: number,
  tokenToRestrict: TokenId | undefined,
) {
  const { id, name, slug, billingAccountId, revision, createdAt, updatedAt } = row;
  await lockAccount(trx, billingAccountId);
  const query = trx.selectFrom('applications').where('billingAccountId', '=', billingAccountId).select(countAll);
  if ((await query.executeTakeFirstOrThrow()).count >= limit) return 'limit_reached';
  if (tokenToRestrict && !(await isUnused(trx, tokenToRestrict))) return 'token_used';
  const insertedRow = await trx
    .insertInto('applications')
    .values({ id, name, slug, billingAccountId, revision, createdAt, updatedAt })
    .onConflict(conflict => conflict.column('slug').doNothing())
    .returning('id')
    .executeTakeFirst();
  if (!insertedRow) return 'slug_taken';
  await trx.insertInto('members').values({ applicationId: id, accountId: owner, role: 'owner', createdAt }).execute();
  await trx.insertInto('applicationLimits').values({ applicationId: id, updatedAt: createdAt }).execute();
  if (tokenToRestrict) {
    const update = trx
      .updateTable('tokens')
      .set({ applicationIds: [id] })
      .where('id', '=', tokenToRestrict);
    await update.returning(revocationAnnouncement.as('announced')).execute();
  }
  return 'inserted';
}

/**
 * Whether no application has been assigned to the token yet. The account is already locked, so two concurrent requests
 * to create an application with the same token run one after the other.
 */
async function isUnused(trx: Db, token: TokenId): Promise<boolean> {
  const query = trx.selectFrom('tokens').select('id').where('id', '=', token);
  return (await query.where(sql<boolean>`application_ids = '{}'`).execute()).length > 0;
}

/**
 * Finds applications by id or slug, which are unique. Otherwise finds them by name, which several applications may
 * share.
 */
async function find(db: Db, idOrName: string): Promise<ApplicationRow[]> {
  if (idOrName.includes('\0')) return [];
  const isExact = ({ eb, or }: ExpressionBuilder<Tables, 'applications'>) =>
    or([eb('slug', '=', idOrName), ...(isId(idOrName) ? [eb('id', '=', idOrName)] : [])]);
  const rows = await db
    .selectFrom('applications')
    .select(COLUMNS)
    .where(it => it.or([isExact(it), it('name', '=', idOrName)]))
    .orderBy(isExact, 'desc')
    .orderBy('id', 'desc')
    .limit(FOUND_APPLICATIONS_MAX)
    .execute();
  const exactMatch = rows.find(row => row.id === idOrName) ?? rows.find(row => row.slug === idOrName);
  return exactMatch ? [exactMatch] : rows;
}

const isId = (text: string): text is ApplicationId => isUuid(text);
