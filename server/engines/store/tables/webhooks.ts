// Webhooks and their deliveries.
import { sql } from 'kysely';
import type { ApplicationId, WebhookId } from '../../../kit/ids.ts';
import { type Db, inTransaction } from '../database.ts';
import type { DeliveryRow, DisabledReason, WebhookRow, WebhookRows } from '../rows/webhooks.ts';
import { countAll, lockApplication } from './limited-insert.ts';
import { withoutNulls } from './without-nulls.ts';

const DISABLED = 'The webhook was disabled.';

export const webhooks = (db: Db): WebhookRows => ({
  insert: (row, limit) => inTransaction(db, trx => insert(trx, row, limit)),

  list: async (application, { limit, before }) => {
    const listed = db
      .selectFrom('webhooks')
      .selectAll()
      .where('applicationId', '=', application)
      .orderBy('id', 'desc')
      .limit(limit);
    return (await (before ? listed.where('id', '<', before) : listed).execute()).map(withoutNulls);
  },

  get: async (application, id) => {
    const one = db.selectFrom('webhooks').selectAll().where('applicationId', '=', application).where('id', '=', id);
    return (await one.execute()).map(withoutNulls)[0];
  },

  change: ({ applicationId, id }, revision, { status, ...change }, now) =>
    inTransaction(db, async trx => {
      const state =
        status === 'disabled'
          ? { status, disabledReason: 'caller' as const, disabledAt: now }
          : status === 'enabled'
            ? { status, disabledReason: null, disabledAt: null, failingSince: null }
            : {};
      const changed = trx
        .updateTable('webhooks')
        .set({ ...change, ...state, revision: revision + 1 })
        .where('applicationId', '=', applicationId)
        .where('id', '=', id)
        .where('revision', '=', revision)
        .returningAll();
      const [row] = (await changed.execute()).map(withoutNulls);
      if (row && status === 'disabled') await giveUpWaitingDeliveries(trx, id);
      return row;
    }),

  remove: async (application, id) => {
    const removed = db.deleteFrom('webhooks').where('applicationId', '=', application).where('id', '=', id);
    return (await removed.returning('id').execute()).length > 0;
  },

  insertDelivery: async row => {
    await db.insertInto('webhookDeliveries').values(row).execute();
  },

  deliveries: async (application, id, { status, before, limit }) => {
    let listed = ofWebhook(db, application, id).orderBy('id', 'desc').limit(limit);
    if (status) listed = listed.where('status', '=', status);
    if (before) listed = listed.where('id', '<', before);
    return (await listed.execute()).map(withoutNulls);
  },

  delivery: async (application, id, delivery) =>
    (await ofWebhook(db, application, id).where('id', '=', delivery).execute()).map(withoutNulls)[0],

  redeliver: async (application, id, delivery, now) => {
    const again = db
      .updateTable('webhookDeliveries')
      .set({ status: 'waiting', attempts: 0, dueAt: now })
      .where('applicationId', '=', application)
      .where('webhookId', '=', id)
      .where('id', '=', delivery)
      .returningAll();
    return (await again.execute()).map(withoutNulls)[0];
  },

  waiting: async id => {
    const waiting = db.selectFrom('webhookDeliveries').where('webhookId', '=', id).where('dueAt', 'is not', null);
    return (await waiting.select(countAll).executeTakeFirstOrThrow()).count;
  },

  byId: async id => (await db.selectFrom('webhooks').selectAll().where('id', '=', id).execute()).map(withoutNulls)[0],

  behind: async batch => {
    const hasMore = sql<boolean>`exists (select from session_events
      where session_events.application_id = webhooks.application_id and session_events.id > webhooks.read_through)`;
    // In random order, so that webhooks that make no progress do not block the others.
    const behind = db.selectFrom('webhooks').selectAll().where('status', '=', 'enabled').where(hasMore);
    return (await behind.orderBy(sql`random()`).limit(batch).execute()).map(withoutNulls);
  },

  write: ({ id, readThrough }, readThroughNumber, deliveries) =>
    inTransaction(db, async trx => {
      const moved = trx
        .updateTable('webhooks')
        .set({ readThrough: readThroughNumber })
        .where('id', '=', id)
        .where('readThrough', '=', readThrough)
        .where('status', '=', 'enabled')
        .returning('id');
      if ((await moved.execute()).length === 0) return false;
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

  due: async (now, batch) => {
    const enabled = db.selectFrom('webhooks').select('id').where('status', '=', 'enabled');
    const due = db
      .selectFrom('webhookDeliveries')
      .select(['webhookId', 'applicationId'])
      .where('dueAt', '<=', now)
      .where('webhookId', 'in', enabled)
      .groupBy(['webhookId', 'applicationId'])
      .orderBy(({ fn }) => fn.min('dueAt'))
      .limit(batch);
    return due.execute();
  },

  take: (id, now, until) => inTransaction(db, trx => take(trx, id, now, until)),

  delivered: ({ id, webhookId }, now, answerStatus) =>
    inTransaction(db, async trx => {
      await trx.updateTable('webhooks').set({ failingSince: null }).where('id', '=', webhookId).execute();
      await trx
        .updateTable('webhookDeliveries')
        .set({ status: 'delivered', dueAt: null, deliveredAt: now, answerStatus, failure: null })
        .where('id', '=', id)
        .execute();
    }),

  failed: ({ id, webhookId }, now, { failure, answerStatus, dueAt }) =>
    inTransaction(db, async trx => {
      const failing = trx
        .updateTable('webhooks')
        .set(eb => ({ failingSince: eb.fn.coalesce('failingSince', sql<Date>`${now}::timestamptz`) }))
        .where('id', '=', webhookId)
        .returning('failingSince');
      const [row] = await failing.execute();
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
    const released = db.updateTable('webhookDeliveries').set({ dueAt: now });
    await released.where('id', '=', delivery).where('status', '=', 'waiting').execute();
  },

  disable: (id, reason, now) => inTransaction(db, trx => disable(trx, id, reason, now)),

  forget: async (before, batch) => {
    const old = db
      .selectFrom('webhookDeliveries')
      .select('id')
      .where('createdAt', '<', before)
      .where('dueAt', 'is', null)
      .limit(batch);
    return (await db.deleteFrom('webhookDeliveries').where('id', 'in', old).returning('id').execute()).length;
  },
});

async function insert(trx: Db, row: WebhookRow, limit: number): Promise<'inserted' | 'limit_reached'> {
  await lockApplication(trx, row.applicationId);
  const all = trx.selectFrom('webhooks').where('applicationId', '=', row.applicationId);
  if ((await all.select(countAll).executeTakeFirstOrThrow()).count >= limit) return 'limit_reached';
  await trx.insertInto('webhooks').values(row).execute();
  return 'inserted';
}

async function take(trx: Db, id: WebhookId, now: Date, until: Date): Promise<DeliveryRow | undefined> {
  // This is a separate statement, because only the next statement sees what another process reserved while this one
  // waited.
  const enabled = trx.selectFrom('webhooks').select('id').where('id', '=', id).where('status', '=', 'enabled');
  if ((await enabled.forNoKeyUpdate().execute()).length === 0) return undefined;
  const reserved = trx
    .selectFrom('webhookDeliveries as reserved')
    .select('reserved.id')
    .where('reserved.webhookId', '=', id)
    .where('reserved.dueAt', '>', now)
    // Excludes a delivery that failed and is waiting for its next attempt. No pause after a failure has the length of a
    // reservation.
    .where(
      sql<boolean>`reserved.due_at - reserved.attempted_at = ${until.getTime() - now.getTime()} * interval '1 millisecond'`,
    );
  const first = trx
    .selectFrom('webhookDeliveries')
    .select('id')
    .where('webhookId', '=', id)
    .where('dueAt', '<=', now)
    .where(({ not, exists }) => not(exists(reserved)))
    .orderBy('dueAt')
    .orderBy('eventId')
    .limit(1)
    .forUpdate()
    .skipLocked();
  const taken = trx
    .updateTable('webhookDeliveries')
    .set(eb => ({ dueAt: until, attemptedAt: now, attempts: eb('attempts', '+', 1) }))
    .where('id', 'in', first)
    .where('dueAt', '<=', now)
    .returningAll();
  return (await taken.execute()).map(withoutNulls)[0];
}

async function disable(trx: Db, id: WebhookId, reason: DisabledReason, now: Date): Promise<void> {
  const disabled = trx
    .updateTable('webhooks')
    .set(eb => ({ status: 'disabled', disabledReason: reason, disabledAt: now, revision: eb('revision', '+', 1) }))
    .where('id', '=', id)
    .where('status', '=', 'enabled')
    .returning('id');
  if ((await disabled.execute()).length > 0) await giveUpWaitingDeliveries(trx, id);
}

async function giveUpWaitingDeliveries(trx: Db, id: WebhookId): Promise<void> {
  await trx
    .updateTable('webhookDeliveries')
    .set(eb => ({ status: 'dead', dueAt: null, failure: eb.fn.coalesce('failure', sql<string>`${DISABLED}::text`) }))
    .where('webhookId', '=', id)
    .where('dueAt', 'is not', null)
    .execute();
}

const ofWebhook = (db: Db, application: ApplicationId, id: WebhookId) =>
  db.selectFrom('webhookDeliveries').selectAll().where('applicationId', '=', application).where('webhookId', '=', id);
