// Actions. Each change of state is one conditional statement. A trigger refuses invalid changes of state, and sends a
// notification for each change that is made.
import type { Selectable } from 'kysely';
import type { ActionId, ApplicationId } from '../../../kit/ids.ts';
import { type Db, inTransaction } from '../database.ts';
import type { ActionInsertOutcome, ActionLimits, ActionRow, ActionRows } from '../rows/actions.ts';
import type { Tables } from '../schema.ts';
import { countAll, lockApplication } from './limited-insert.ts';
import { withoutNulls } from './without-nulls.ts';

const OPEN_STATES = ['awaiting_approval', 'approved'] as const;

export const actions = (db: Db): ActionRows => ({
  insert: (row, limits) => inTransaction(db, trx => insert(trx, row, limits)),

  get: async (application, id) => (await selectAction(db, application, id).execute()).map(rowOf)[0],

  forAccount: async (account, id) => {
    const query = db
      .selectFrom('actions')
      .innerJoin('members', 'members.applicationId', 'actions.applicationId')
      .selectAll('actions')
      .where('members.accountId', '=', account)
      .where('actions.id', '=', id);
    return (await query.execute()).map(rowOf)[0];
  },

  list: async (application, { states, endUsers, before, limit }) => {
    let query = db.selectFrom('actions').selectAll().where('applicationId', '=', application);
    if (states) query = query.where('state', 'in', states);
    if (endUsers)
      query = query.where(eb =>
        eb.or(endUsers.map(one => eb.and([eb('providerId', '=', one.providerId), eb('subject', '=', one.subject)]))),
      );
    if (before) query = query.where('id', '<', before);
    return (await query.orderBy('id', 'desc').limit(limit).execute()).map(rowOf);
  },

  decide: async (application, id, { decision, ...change }, now) => {
    const endColumns = change.state === 'refused' ? { sealedContent: null, endedAt: now } : {};
    const decideUpdate = updateAction(db, application, id)
      .set({ ...change, ...endColumns, decision: JSON.stringify(decision) })
      .where('state', '=', 'awaiting_approval')
      .where('expiresAt', '>', now);
    return (await decideUpdate.returningAll().execute()).map(rowOf)[0];
  },

  cancel: async (application, id, why, now) => {
    const cancelUpdate = updateAction(db, application, id)
      .set(cancellation(why, now))
      .where('state', 'in', OPEN_STATES);
    return (await cancelUpdate.returningAll().execute()).map(rowOf)[0];
  },

  cancelAll: async (application, operationId, why, now) => {
    const update = db
      .updateTable('actions')
      .set(cancellation(why, now))
      .where('applicationId', '=', application)
      .where('operationId', '=', operationId)
      .where('state', 'in', OPEN_STATES);
    return (await update.returningAll().execute()).map(rowOf);
  },

  cancelAllFor: async (application, { providerId, subject }, why, now) => {
    const update = db
      .updateTable('actions')
      .set(cancellation(why, now))
      .where('applicationId', '=', application)
      .where('providerId', '=', providerId)
      .where('subject', '=', subject)
      .where('state', 'in', OPEN_STATES);
    return (await update.returningAll().execute()).map(rowOf);
  },

  lock: async (application, id) => (await selectAction(db, application, id).forUpdate().execute()).map(rowOf)[0],

  execute: async (application, id, invocation, now) => {
    const executeUpdate = updateAction(db, application, id)
      .set({ state: 'executing', invocationId: invocation, executeAt: null, heldBack: null })
      .where('state', '=', 'approved')
      .where('expiresAt', '>', now)
      .where(eb => eb.or([eb('notBefore', 'is', null), eb('notBefore', '<=', now)]));
    return (await executeUpdate.returningAll().execute()).map(rowOf)[0];
  },

  expire: async (now, batchSize) => {
    const query = db.selectFrom('actions').select('id').where('state', 'in', OPEN_STATES).where('expiresAt', '<=', now);
    const update = db
      .updateTable('actions')
      .set({ state: 'expired', endedAt: now, sealedContent: null })
      .where('id', 'in', query.orderBy('expiresAt').limit(batchSize).forUpdate().skipLocked())
      .where('state', 'in', OPEN_STATES);
    return (await update.returningAll().execute()).map(rowOf);
  },

  due: async (now, host, batchSize) => {
    const query = db.selectFrom('actions').selectAll().where('state', '=', 'approved').where('executeAt', '<=', now);
    const executableQuery = query.where('expiresAt', '>', now).where(({ not, exists, selectFrom }) => {
      const runningSessionsQuery = selectFrom('sessions')
        .select('sessions.id')
        .where('sessions.status', '=', 'RUNNING');
      const otherHostsQuery = runningSessionsQuery.where('sessions.hostId', '<>', host);
      return not(exists(otherHostsQuery.whereRef('sessions.id', '=', 'actions.sessionId')));
    });
    return (await executableQuery.orderBy('executeAt').limit(batchSize).execute()).map(rowOf);
  },

  postpone: async (id, executeAt, heldBack) => {
    const update = db.updateTable('actions').set({ executeAt, heldBack }).where('id', '=', id);
    await update.where('state', '=', 'approved').execute();
  },

  forgetContent: async (now, batchSize) => {
    const query = db.selectFrom('actions').select('id').where('contentUntil', '<=', now).limit(batchSize);
    const update = db.updateTable('actions').set({ sealedContent: null, contentUntil: null }).where('id', 'in', query);
    return (await update.returning('id').execute()).length;
  },

  forget: async (endedBefore, batchSize) => {
    const query = db.selectFrom('actions').select('id').where('endedAt', '<', endedBefore).limit(batchSize);
    return (await db.deleteFrom('actions').where('id', 'in', query).returning('id').execute()).length;
  },
});

const selectAction = (db: Db, application: ApplicationId, id: ActionId) =>
  db.selectFrom('actions').selectAll().where('applicationId', '=', application).where('id', '=', id);

const updateAction = (db: Db, application: ApplicationId, id: ActionId) =>
  db.updateTable('actions').where('applicationId', '=', application).where('id', '=', id);

const cancellation = (why: string, now: Date) =>
  ({ state: 'cancelled', why, endedAt: now, sealedContent: null }) as const;

/**
 * Inserts an Action. The application is locked, so that concurrent inserts cannot insert similar Actions or exceed a
 * limit.
 */
async function insert(
  trx: Db,
  row: ActionRow,
  { endUserMax, applicationMax }: ActionLimits,
): Promise<ActionInsertOutcome> {
  const { applicationId, keyId, idempotencyKey, likeness, providerId, subject, createdAt } = row;
  await lockApplication(trx, applicationId);
  const query = trx.selectFrom('actions').selectAll().where('keyId', '=', keyId);
  const [existingAction] = (await query.where('idempotencyKey', '=', idempotencyKey).execute()).map(rowOf);
  if (existingAction) return { existing: existingAction };
  const openActionsQuery = trx
    .selectFrom('actions')
    .where('applicationId', '=', applicationId)
    .where('state', 'in', OPEN_STATES)
    .where('expiresAt', '>', createdAt);
  const [similarAction] = (await openActionsQuery.selectAll().where('likeness', '=', likeness).limit(1).execute()).map(
    rowOf,
  );
  if (similarAction) return { similar: similarAction };
  if ((await openActionsQuery.select(countAll).executeTakeFirstOrThrow()).count >= applicationMax)
    return 'application_full';
  if (providerId !== undefined && subject !== undefined) {
    const userActionsQuery = openActionsQuery.where('providerId', '=', providerId).where('subject', '=', subject);
    if ((await userActionsQuery.select(countAll).executeTakeFirstOrThrow()).count >= endUserMax) return 'end_user_full';
  }
  const { metadata, decision: _, ...columns } = row;
  await trx
    .insertInto('actions')
    .values({ ...columns, decision: null, metadata: metadata === undefined ? null : JSON.stringify(metadata) })
    .execute();
  return 'inserted';
}

const rowOf = (row: Selectable<Tables['actions']>): ActionRow => withoutNulls(row);
