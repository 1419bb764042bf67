// Consumers of applications, their passkeys, and how they sign in.
import { sql } from 'kysely';
import type { ConsumerId } from '../../../kit/ids.ts';
import type { Db } from '../database.ts';
import type {
  ConsumerChange,
  ConsumerPasskeys,
  ConsumerRow,
  ConsumerSignIns,
  Consumers,
  ConsumerTickets,
  Identities,
} from '../rows/consumers.ts';
import { countAll } from './limited-insert.ts';
import { withoutNulls } from './without-nulls.ts';

export const identities = (db: Db): Identities => ({
  get: async application =>
    (await db.selectFrom('applicationIdentities').selectAll().where('applicationId', '=', application).execute()).map(
      withoutNulls,
    )[0],

  replace: async (row, expectedRevision) => {
    if (expectedRevision === 0) {
      const insertion = db
        .insertInto('applicationIdentities')
        .values(row)
        .onConflict(on => on.doNothing());
      return (await insertion.returning('revision').execute()).length > 0;
    }
    const update = db
      .updateTable('applicationIdentities')
      .set({ ...row, colour: row.colour ?? null })
      .where('applicationId', '=', row.applicationId)
      .where('revision', '=', expectedRevision);
    return (await update.returning('revision').execute()).length > 0;
  },
});

export const consumers = (db: Db): Consumers => {
  const selectExisting = () => db.selectFrom('consumers').selectAll().where('deletedAt', 'is', null);
  const firstRow = async (query: ReturnType<typeof selectExisting>): Promise<ConsumerRow | undefined> =>
    (await query.execute()).map(withoutNulls)[0];
  /** Returns the consumer that `row` is linked to, or `row` itself if it is not linked. */
  const followLink = async (row: ConsumerRow | undefined): Promise<ConsumerRow | undefined> =>
    row?.linkedTo ? firstRow(selectExisting().where('id', '=', row.linkedTo)) : row;
  const namesOf: Consumers['namesOf'] = async (application, id) => {
    const query = db
      .selectFrom('consumers')
      .select(['id', 'providerId', 'subject'])
      .where('applicationId', '=', application)
      .where('deletedAt', 'is', null)
      .where(eb => eb.or([eb('id', '=', id), eb('linkedTo', '=', id)]));
    const rows = await query.orderBy('id').execute();
    const sortRank = (row: { readonly id: ConsumerId }): number => (row.id === id ? 0 : 1);
    return rows
      .toSorted((one, other) => sortRank(one) - sortRank(other))
      .map(({ providerId, subject }) => ({ providerId, subject }));
  };
  return {
    insertOrFind: async row => {
      const insertion = db
        .insertInto('consumers')
        .values({ ...row, metadata: row.metadata && JSON.stringify(row.metadata) })
        .onConflict(on => on.doNothing());
      if ((await insertion.returning('id').execute()).length > 0) return { row, isNew: true };
      const sameConsumerQuery = selectExisting()
        .where('applicationId', '=', row.applicationId)
        .where('providerId', '=', row.providerId)
        .where(eb => eb.or([eb('subject', '=', row.subject), ...(row.email ? [eb('email', '=', row.email)] : [])]));
      const existingConsumer = await followLink(await firstRow(sameConsumerQuery));
      return existingConsumer && { row: existingConsumer, isNew: false };
    },

    get: (application, id) => firstRow(selectExisting().where('applicationId', '=', application).where('id', '=', id)),

    byEmail: (application, provider, email) =>
      firstRow(
        selectExisting()
          .where('applicationId', '=', application)
          .where('providerId', '=', provider)
          .where('email', '=', email),
      ),

    bySubject: async (application, provider, subject) =>
      followLink(
        await firstRow(
          selectExisting()
            .where('applicationId', '=', application)
            .where('providerId', '=', provider)
            .where('subject', '=', subject),
        ),
      ),

    namesOf,

    link: async (application, { from, to }) => {
      const bothConsumersQuery = selectExisting()
        .where('applicationId', '=', application)
        .where('id', 'in', [from, to]);
      const lockedConsumers = await bothConsumersQuery
        .where('linkedTo', 'is', null)
        .orderBy('id')
        .forNoKeyUpdate()
        .execute();
      if (from === to || lockedConsumers.length < 2) return false;
      const update = db.updateTable('consumers').set({ linkedTo: to });
      await update.where(eb => eb.or([eb('id', '=', from), eb('linkedTo', '=', from)])).execute();
      await db.updateTable('invocations').set({ consumerId: to }).where('consumerId', '=', from).execute();
      await db.updateTable('handoffs').set({ consumerId: to }).where('consumerId', '=', from).execute();
      await db.updateTable('consumerPasskeys').set({ consumerId: to }).where('consumerId', '=', from).execute();
      await db.deleteFrom('consumerConsents').where('consumerId', '=', from).execute();
      await db.deleteFrom('consumerTickets').where('consumerId', '=', from).execute();
      await db.deleteFrom('vaultKeys').where('owner', '=', from).execute();
      return true;
    },

    change: async (application, id, change) => {
      const columns = columnsOf(change);
      // An UPDATE that sets no column is not valid SQL.
      if (Object.keys(columns).length === 0)
        return firstRow(selectExisting().where('applicationId', '=', application).where('id', '=', id));
      const update = db
        .updateTable('consumers')
        .set(columns)
        .where('applicationId', '=', application)
        .where('id', '=', id)
        .where('deletedAt', 'is', null);
      return (await update.returningAll().execute()).map(withoutNulls)[0];
    },

    count: async application =>
      (
        await db
          .selectFrom('consumers')
          .select(countAll)
          .where('applicationId', '=', application)
          .where('deletedAt', 'is', null)
          .where('linkedTo', 'is', null)
          .executeTakeFirstOrThrow()
      ).count,

    erase: async (application, id, now) => {
      const update = db
        .updateTable('consumers')
        .set({ ...NO_PERSONAL_DATA, subject: sql`'deleted_' || id`, deletedAt: now })
        .where('applicationId', '=', application)
        .where(eb => eb.or([eb('id', '=', id), eb('linkedTo', '=', id)]))
        .where('deletedAt', 'is', null);
      // Waits for a concurrent link to this consumer, so that the linked consumer is erased as well.
      await db.selectFrom('consumers').select('id').where('id', '=', id).forNoKeyUpdate().execute();
      const names = await namesOf(application, id);
      if (names.length === 0) return [];
      await update.execute();
      // Deletes the notes and the evidence in the consumer's hand-offs. Open hand-offs are canceled by the hosts of
      // their sessions.
      await db.updateTable('handoffs').set({ note: null, evidence: null }).where('consumerId', '=', id).execute();
      await db.deleteFrom('consumerPasskeys').where('consumerId', '=', id).execute();
      await db.deleteFrom('consumerMemory').where('consumerId', '=', id).execute();
      await db.deleteFrom('consumerConsents').where('consumerId', '=', id).execute();
      await db.deleteFrom('consumerTickets').where('consumerId', '=', id).execute();
      await db.deleteFrom('vaultKeys').where('owner', '=', id).execute();
      return names;
    },
  };
};

const NO_PERSONAL_DATA = {
  email: null,
  passwordHash: null,
  displayName: null,
  locale: null,
  timezone: null,
  metadata: null,
} as const;

const columnsOf = ({ metadata, ...rest }: ConsumerChange) => ({
  ...rest,
  ...(metadata === undefined ? {} : { metadata: JSON.stringify(metadata) }),
});

export const consumerPasskeys = (db: Db): ConsumerPasskeys => ({
  insert: (row, limit) =>
    db.transaction().execute(async trx => {
      await trx.selectFrom('consumers').select('id').where('id', '=', row.consumerId).forNoKeyUpdate().execute();
      const query = trx.selectFrom('consumerPasskeys').where('consumerId', '=', row.consumerId);
      if ((await query.select(countAll).executeTakeFirstOrThrow()).count >= limit) return 'limit_reached';
      const insertion = trx
        .insertInto('consumerPasskeys')
        .values(row)
        .onConflict(on => on.column('credentialId').doNothing());
      return (await insertion.returning('id').execute()).length > 0 ? 'inserted' : 'exists';
    }),

  list: async consumer =>
    (
      await db.selectFrom('consumerPasskeys').selectAll().where('consumerId', '=', consumer).orderBy('id').execute()
    ).map(withoutNulls),

  byCredential: async (application, credentialId) =>
    (
      await db
        .selectFrom('consumerPasskeys')
        .innerJoin('consumers', 'consumers.id', 'consumerPasskeys.consumerId')
        .selectAll('consumerPasskeys')
        .where('consumers.applicationId', '=', application)
        .where('consumers.deletedAt', 'is', null)
        .where('credentialId', '=', credentialId)
        .execute()
    ).map(withoutNulls)[0],

  remove: async (consumer, id) => {
    const deletion = db.deleteFrom('consumerPasskeys').where('consumerId', '=', consumer).where('id', '=', id);
    return (await deletion.returning('id').execute()).length > 0;
  },

  recordUse: async (id, counter, at) => {
    const update = db
      .updateTable('consumerPasskeys')
      .set({ counter, lastUsedAt: at })
      .where('id', '=', id)
      .where(eb => eb.or([eb('counter', '<', counter), eb.and([eb('counter', '=', 0), eb.val(counter === 0)])]));
    return (await update.returning('id').execute()).length > 0;
  },
});

export const consumerSignIns = (db: Db): ConsumerSignIns => ({
  insert: async row => {
    await db.insertInto('consumerSignIns').values(row).execute();
  },

  findOpen: async (application, provider, id, now) =>
    (
      await db
        .selectFrom('consumerSignIns')
        .selectAll()
        .where('applicationId', '=', application)
        .where('providerId', '=', provider)
        .where('id', '=', id)
        .where('codeHash', 'is', null)
        .where('expiresAt', '>', now)
        .execute()
    ).map(withoutNulls)[0],

  takeByState: async (state, now) => {
    const update = db
      .updateTable('consumerSignIns')
      .set({ upstreamUsedAt: now })
      .where('upstreamState', '=', state)
      .where('upstreamUsedAt', 'is', null)
      .where('expiresAt', '>', now);
    return (await update.returningAll().execute()).map(withoutNulls)[0];
  },

  complete: async (id, now, proof) => {
    const update = db
      .updateTable('consumerSignIns')
      .set(proof)
      .where('id', '=', id)
      .where('codeHash', 'is', null)
      .where('expiresAt', '>', now);
    return (await update.returning('id').execute()).length > 0;
  },

  byCode: async hash =>
    (await db.selectFrom('consumerSignIns').selectAll().where('codeHash', '=', hash).execute()).map(withoutNulls)[0],

  useCode: async (id, now, sessionId) => {
    const update = db
      .updateTable('consumerSignIns')
      .set({ codeUsedAt: now, sessionId })
      .where('id', '=', id)
      .where('codeUsedAt', 'is', null);
    return (await update.returning('id').execute()).length > 0;
  },

  removeExpired: async before => {
    const deletion = db.deleteFrom('consumerSignIns').where('expiresAt', '<', before);
    return (await deletion.returning('id').execute()).length;
  },
});

export const consumerTickets = (db: Db): ConsumerTickets => ({
  insert: async row => {
    await db.insertInto('consumerTickets').values(row).execute();
  },

  attempt: async (application, id, kind, now, triesMax) => {
    const update = db
      .updateTable('consumerTickets')
      .set(eb => ({ tries: eb('tries', '+', 1) }))
      .where('applicationId', '=', application)
      .where('id', '=', id)
      .where('kind', '=', kind)
      .where('usedAt', 'is', null)
      .where('expiresAt', '>', now)
      .where('tries', '<', triesMax);
    return (await update.returningAll().execute()).map(withoutNulls)[0];
  },

  use: async (id, now) => {
    const update = db
      .updateTable('consumerTickets')
      .set({ usedAt: now })
      .where('id', '=', id)
      .where('usedAt', 'is', null);
    return (await update.returning('id').execute()).length > 0;
  },

  countMailed: async (application, email, since) =>
    (
      await db
        .selectFrom('consumerTickets')
        .select(countAll)
        .where('applicationId', '=', application)
        .where('kind', '=', 'email_code')
        .where('email', '=', email)
        .where('createdAt', '>', since)
        .executeTakeFirstOrThrow()
    ).count,

  removeExpired: async before => {
    const deletion = db.deleteFrom('consumerTickets').where('expiresAt', '<', before);
    return (await deletion.returning('id').execute()).length;
  },
});
