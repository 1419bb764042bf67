// Webhooks and their deliveries.
import { sql } from 'kysely';
import type { ApplicationId, WebhookId } from '../../../kit/ids.ts';
import { type Db, inTransaction } from '../database.ts';
import type { DeliveryRow, DisabledReason, WebhookRow, WebhookRows } from '../rows/webhooks.ts';
import { countAll, lockApplication } from './limited-insert.ts';
import { withoutNulls } from './without-nulls.ts';

const DISABLED_FAILURE = 'The webhook was disabled.';

export const webhooks = (db: Db): WebhookRows => ({
  insert: (row, limit) => inTransaction(db, trx => insert(trx, row, limit)),

  list: async (application, { limit, before }) => {
    const query = db
      .selectFrom('webhooks')
      .selectAll()
      .where('applicationId', '=', application)
      .orderBy('id', 'desc')
      .limit(limit);
    return (await (before ? query.where('id', '<', before) : query).execute()).map(withoutNulls);
  },

  get: async (application, id) => {
    const query = db.selectFrom('webhooks').selectAll().where('applicationId', '=', application).where('id', '=', id);
    return (await query.execute()).map(withoutNulls)[0];
  },

  change: ({ applicationId, id }, revision, { status, ...change }, now) =>
    inTransaction(db, async trx => {
      const statusColumns =
        status === 'disabled'
          ? { status, disabledReason: 'caller' as const, disabledAt: now }
          : status === 'enabled'
            ? { status, disabledReason: null, disabledAt: null, failingSince: null }
            : {};
      const update = trx
        .updateTable('webhooks')
        .set({ ...change, ...statusColumns, revision: revision + 1 })
        .where('applicationId', '=', applicationId)
        .where('id', '=', id)
        .where('revision', '=', revision)
        .returningAll();
      const [row] = (await update.execute()).map(withoutNulls);
      if (row && status === 'disabled') await giveUpWaitingDeliveries(trx, id);
      return row;
    }),

  remove: async (application, id) => {
    const deletion = db.deleteFrom('webhooks').where('applicationId', '=', application).where('id', '=', id);
    return (await deletion.returning('id').execute()).length > 0;
  },

  insertDelivery: async row => {
    await db.insertInto('webhookDeliveries').values(row).execute();
  },

  deliveries: async (application, id, { status, before, limit }) => {
    let deliveryQuery = selectDeliveries(db, application, id).orderBy('id', 'desc').limit(limit);
    if (status) deliveryQuery = deliveryQuery.where('status', '=', status);
    if (before) deliveryQuery = deliveryQuery.where('id', '<', before);
    return (await deliveryQuery.execute()).map(withoutNulls);
  },

  delivery: async (application, id, delivery) =>
    (await selectDeliveries(db, application, id).where('id', '=', delivery).execute()).map(withoutNulls)[0],

  redeliver: async (application, id, delivery, now, reservedMs) => {
    const dueAt = sql<Date>`case when due_at > ${now} and ${isReserved('webhook_deliveries', reservedMs)}
      then due_at else ${now}::timestamptz end`;
    const update = db
      .updateTable('webhookDeliveries')
      .set({ status: 'waiting', attempts: 0, dueAt })
      .where('applicationId', '=', application)
      .where('webhookId', '=', id)
      .where('id', '=', delivery)
      .returningAll();
    return (await update.execute()).map(withoutNulls)[0];
  },

  countWaiting: async id => {
    const query = db.selectFrom('webhookDeliveries').where('webhookId', '=', id).where('dueAt', 'is not', null);
    return (await query.select(countAll).executeTakeFirstOrThrow()).count;
  },

  byId: async id => (await db.selectFrom('webhooks').selectAll().where('id', '=', id).execute()).map(withoutNulls)[0],

  listBehind: async batchSize => {
    const hasMore = sql<boolean>`exists (select from session_events
      where session_events.application_id = webhooks.application_id and session_events.id > webhooks.read_through)`;
    // In random order, so that webhooks that make no progress do not block other webhooks.
    const query = db.selectFrom('webhooks').selectAll().where('status', '=', 'enabled').where(hasMore);
    return (await query.orderBy(sql`random()`).limit(batchSize).execute()).map(withoutNulls);
  },

  write: ({ id, readThrough }, lastRead, deliveries) =>
    inTransaction(db, async trx => {
      const update = trx
        .updateTable('webhooks')
        .set({ readThrough: lastRead })
        .where('id', '=', id)
        .where('readThrough', '=', readThrough)
        .where('status', '=', 'enabled')
        .returning('id');
      if ((await update.execute()).length === 0) return false;
      if (deliveries.length > 0)
        await trx
          .insertInto('webhookDeliveries')
          .values([...deliveries])
          .onConflict(conflict =>
            conflict.columns(['webhookId', 'eventId']).where('eventId', 'is not', null).doNothing(),
          )
          .execute();
      return true;
    }),

  due: async (now, batchSize) => {
    const query = db.selectFrom('webhooks').select('id').where('status', '=', 'enabled');
    const dueWebhooksQuery = db
      .selectFrom('webhookDeliveries')
      .select(['webhookId', 'applicationId'])
      .where('dueAt', '<=', now)
      .where('webhookId', 'in', query)
      .groupBy(['webhookId', 'applicationId'])
      .orderBy(({ fn }) => fn.min('dueAt'))
      .limit(batchSize);
    return dueWebhooksQuery.execute();
  },

  take: (id, now, until) => inTransaction(db, trx => take(trx, id, now, until)),

  markDelivered: ({ id, webhookId }, now, answerStatus) =>
    inTransaction(db, async trx => {
      await trx.updateTable('webhooks').set({ failingSince: null }).where('id', '=', webhookId).execute();
      await trx
        .updateTable('webhookDeliveries')
        .set({ status: 'delivered', dueAt: null, deliveredAt: now, answerStatus, failure: null })
        .where('id', '=', id)
        .execute();
    }),

  recordFailure: ({ id, webhookId }, now, { failure, answerStatus, dueAt }) =>
    inTransaction(db, async trx => {
      const update = trx
        .updateTable('webhooks')
        .set(eb => ({ failingSince: eb.fn.coalesce('failingSince', sql<Date>`${now}::timestamptz`) }))
        .where('id', '=', webhookId)
        .returning('failingSince');
      const [row] = await update.execute();
      await trx
        .updateTable('webhookDeliveries')
        .set({
          ...{ failure, answerStatus: answerStatus ?? null },
          ...(dueAt ? { dueAt } : { status: 'dead', dueAt: null }),
        })
        .where('id', '=', id)
        // A delivery that was given up because the webhook was disabled stays unchanged.
        .where('status', '=', 'waiting')
        .execute();
      return row?.failingSince ?? undefined;
    }),

  release: async (delivery, now) => {
    const update = db.updateTable('webhookDeliveries').set({ dueAt: now });
    await update.where('id', '=', delivery).where('status', '=', 'waiting').execute();
  },

  disable: (id, reason, now) => inTransaction(db, trx => disable(trx, id, reason, now)),

  forget: async (before, batchSize) => {
    const query = db
      .selectFrom('webhookDeliveries')
      .select('id')
      .where('createdAt', '<', before)
      .where('dueAt', 'is', null)
      .limit(batchSize);
    return (await db.deleteFrom('webhookDeliveries').where('id', 'in', query).returning('id').execute()).length;
  },
});

async function insert(trx: Db, row: WebhookRow, limit: number): Promise<'inserted' | 'limit_reached'> {
  await lockApplication(trx, row.applicationId);
  const query = trx.selectFrom('webhooks').where('applicationId', '=', row.applicationId);
  if ((await query.select(countAll).executeTakeFirstOrThrow()).count >= limit) return 'limit_reached';
  await trx.insertInto('webhooks').values(row).execute();
  return 'inserted';
}

/**
 * Whether a process reserved the delivery in order to send it. Excludes a delivery that failed and is waiting for its
 * next attempt: no pause after a failure has the length of a reservation.
 */
const isReserved = (table: string, reservedMs: number) =>
  sql<boolean>`${sql.ref(`${table}.due_at`)} - ${sql.ref(`${table}.attempted_at`)} = ${reservedMs} * interval '1 millisecond'`;

async function take(trx: Db, id: WebhookId, now: Date, until: Date): Promise<DeliveryRow | undefined> {
  // This is a separate statement, because only the next statement sees a reservation that another process made while
  // this statement waited for the lock.
  const query = trx.selectFrom('webhooks').select('id').where('id', '=', id).where('status', '=', 'enabled');
  if ((await query.forNoKeyUpdate().execute()).length === 0) return undefined;
  const reservedDeliveriesQuery = trx
    .selectFrom('webhookDeliveries as reserved')
    .select('reserved.id')
    .where('reserved.webhookId', '=', id)
    .where('reserved.dueAt', '>', now)
    .where(isReserved('reserved', until.getTime() - now.getTime()));
  const firstDueQuery = trx
    .selectFrom('webhookDeliveries')
    .select('id')
    .where('webhookId', '=', id)
    .where('dueAt', '<=', now)
    .where(({ not, exists }) => not(exists(reservedDeliveriesQuery)))
    .orderBy('dueAt')
    .orderBy('eventId')
    .limit(1)
    .forUpdate()
    .skipLocked();
  const update = trx
    .updateTable('webhookDeliveries')
    .set(eb => ({ dueAt: until, attemptedAt: now, attempts: eb('attempts', '+', 1) }))
    .where('id', 'in', firstDueQuery)
    .where('dueAt', '<=', now)
    .returningAll();
  return (await update.execute()).map(withoutNulls)[0];
}

async function disable(trx: Db, id: WebhookId, reason: DisabledReason, now: Date): Promise<void> {
  const update = trx
    .updateTable('webhooks')
    .set(eb => ({ status: 'disabled', disabledReason: reason, disabledAt: now, revision: eb('revision', '+', 1) }))
    .where('id', '=', id)
    .where('status', '=', 'enabled')
    .returning('id');
  if ((await update.execute()).length > 0) await giveUpWaitingDeliveries(trx, id);
}

async function giveUpWaitingDeliveries(trx: Db, id: WebhookId): Promise<void> {
  await trx
    .updateTable('webhookDeliveries')
    .set(eb => ({
      status: 'dead',
      dueAt: null,
      failure: eb.fn.coalesce('failure', sql<string>`${DISABLED_FAILURE}::text`),
    }))
    .where('webhookId', '=', id)
    .where('dueAt', 'is not', null)
    .execute();
}

const selectDeliveries = (db: Db, application: ApplicationId, id: WebhookId) =>
  db.selectFrom('webhookDeliveries').selectAll().where('applicationId', '=', application).where('webhookId', '=', id);
