// The memory of consumers, and their consents.
import { sql } from 'kysely';
import type { ConsumerId, KeyId } from '../../../kit/ids.ts';
import type { Db } from '../database.ts';
import type { ConsentRow, ConsumerMemory } from '../rows/consumer-memory.ts';
import { countAll } from './limited-insert.ts';
import { withoutNulls } from './without-nulls.ts';

export const consumerMemory = (db: Db): ConsumerMemory => ({
  get: async (consumer, key) =>
    (
      await db
        .selectFrom('consumerMemory')
        .selectAll()
        .where('consumerId', '=', consumer)
        .where('key', '=', key)
        .execute()
    )[0],

  list: async (consumer, { prefix, after, limit }) => {
    let query = db.selectFrom('consumerMemory').selectAll().where('consumerId', '=', consumer).where(hasPrefix(prefix));
    if (after !== undefined) query = query.where('key', '>', after);
    return query.orderBy('key').limit(limit).execute();
  },

  nextVersion: async consumer => {
    const update = db
      .updateTable('consumers')
      .set(eb => ({ memoryVersion: eb('memoryVersion', '+', 1) }))
      .where('id', '=', consumer)
      .where('deletedAt', 'is', null)
      .where('linkedTo', 'is', null);
    return (await update.returning('memoryVersion').execute())[0]?.memoryVersion;
  },

  put: async (row, ifVersion, limits) => {
    const query = db.selectFrom('consumerMemory').select('version').where('consumerId', '=', row.consumerId);
    const version = (await query.where('key', '=', row.key).execute())[0]?.version ?? 0;
    if (ifVersion !== undefined && ifVersion !== version) return { version };
    const otherEntriesQuery = db
      .selectFrom('consumerMemory')
      .select([countAll, sql<number>`coalesce(sum(bytes), 0)`.as('bytes')])
      .where('consumerId', '=', row.consumerId)
      .where('key', '<>', row.key);
    const { count, bytes } = await otherEntriesQuery.executeTakeFirstOrThrow();
    if (count >= limits.items || bytes + row.bytes > limits.bytes) return 'limit_reached';
    const { consumerId: _, key: __, ...changedColumns } = row;
    await db
      .insertInto('consumerMemory')
      .values(row)
      .onConflict(on => on.columns(['consumerId', 'key']).doUpdateSet(changedColumns))
      .execute();
    return 'written';
  },

  remove: async (consumer, selection) => {
    const deletion = db.deleteFrom('consumerMemory').where('consumerId', '=', consumer);
    const selectedDeletion =
      'key' in selection ? deletion.where('key', '=', selection.key) : deletion.where(hasPrefix(selection.prefix));
    return (await selectedDeletion.returning('key').execute()).map(({ key }) => key);
  },

  getWithConsent: async (consumer, key, grantee, now) => {
    const query = db
      .selectFrom('consumerMemory')
      .selectAll()
      .where('consumerId', '=', consumer)
      .where('key', '=', key)
      .where(consentExists(consumer, key, grantee, 'read', now));
    const [row] = await query.execute();
    return row ?? ((await hasConsent(db, consumer, key, grantee, 'read', now)) ? undefined : 'denied');
  },

  hasConsent: (consumer, key, grantee, access, now) => hasConsent(db, consumer, key, grantee, access, now),

  insertConsent: async (row, limit, now) => {
    const consumer = db.selectFrom('consumers').select('id').where('id', '=', row.consumerId);
    const unlinkedConsumerQuery = consumer.where('deletedAt', 'is', null).where('linkedTo', 'is', null);
    if ((await unlinkedConsumerQuery.forNoKeyUpdate().execute()).length === 0) return 'gone';
    const validConsentsQuery = db
      .selectFrom('consumerConsents')
      .where('consumerId', '=', row.consumerId)
      .where(isInEffect(now));
    if ((await validConsentsQuery.select(countAll).executeTakeFirstOrThrow()).count >= limit) return 'limit_reached';
    await db.insertInto('consumerConsents').values(row).execute();
    return 'inserted';
  },

  consents: async (consumer, now) =>
    (
      await db
        .selectFrom('consumerConsents')
        .selectAll()
        .where('consumerId', '=', consumer)
        .where(isInEffect(now))
        .orderBy('id', 'desc')
        .execute()
    ).map(withoutNulls),

  revokeConsent: async (consumer, id, now) => {
    // Waits for writes in progress that rely on the consent. They lock the same row.
    await db.selectFrom('consumers').select('id').where('id', '=', consumer).forNoKeyUpdate().execute();
    const update = db
      .updateTable('consumerConsents')
      .set({ revokedAt: now })
      .where('consumerId', '=', consumer)
      .where('id', '=', id)
      .where(isInEffect(now));
    return (await update.returning('id').execute()).length > 0;
  },
});

async function hasConsent(
  db: Db,
  consumer: ConsumerId,
  key: string,
  grantee: KeyId,
  access: ConsentRow['access'],
  now: Date,
): Promise<boolean> {
  const query = db.selectNoFrom(consentExists(consumer, key, grantee, access, now).as('hasConsent'));
  return (await query.executeTakeFirstOrThrow()).hasConsent;
}

/** Whether a valid consent allows this access. Consent to write also allows reading. */
const consentExists = (consumer: ConsumerId, key: string, grantee: KeyId, access: ConsentRow['access'], now: Date) =>
  sql<boolean>`exists (
    select from consumer_consents
    where consumer_consents.consumer_id = ${consumer} and (key_id is null or key_id = ${grantee}) and ${isInEffect(now)}
      and (${access} = 'read' or access = 'write')
      and exists (select from unnest(patterns) pattern where case when right(pattern, 1) = '*'
        then starts_with(${key}, left(pattern, -1)) else pattern = ${key} end))`;

const hasPrefix = (prefix: string) => sql<boolean>`starts_with(key, ${prefix})`;

const isInEffect = (now: Date) => sql<boolean>`revoked_at is null and (expires_at is null or expires_at > ${now})`;
