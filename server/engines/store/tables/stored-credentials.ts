// Credentials for external services. Sealed values are replaced and deleted here, and are always read together with
// their row.
import { sql } from 'kysely';
import type { ApplicationId } from '../../../kit/ids.ts';
import { type Db, inTransaction } from '../database.ts';
import type {
  CredentialReference,
  CredentialUse,
  CredentialVersionRow,
  NewVersion,
  StoredCredentialRows,
  StoredCredentialWithVersion,
} from '../rows/stored-credentials.ts';
import { countAll, lockApplication } from './limited-insert.ts';
import { withoutNulls } from './without-nulls.ts';

export const storedCredentials = (db: Db): StoredCredentialRows => ({
  get: async (application, id) => (await selectWithVersion(db, application, id))[0],

  list: application => selectWithVersion(db, application),

  nextVersion: async (application, id) => {
    const query = db
      .selectFrom('storedCredentials')
      .select('version')
      .where('applicationId', '=', application)
      .where('id', '=', id);
    return ((await query.executeTakeFirst())?.version ?? 0) + 1;
  },

  insert: (applicationId, id, version, content, maxCredentials, now) =>
    inTransaction(db, async trx => {
      await lockApplication(trx, applicationId);
      const existingCredentialsQuery = trx
        .selectFrom('storedCredentials')
        .where('applicationId', '=', applicationId)
        .where('deletedAt', 'is', null);
      if ((await existingCredentialsQuery.select(countAll).executeTakeFirstOrThrow()).count >= maxCredentials)
        return 'limit_reached';
      const insertedRows = await trx
        .insertInto('storedCredentials')
        .values({ applicationId, id, version, revision: version, createdAt: now, rotatedAt: now })
        .onConflict(conflict =>
          conflict
            .columns(['applicationId', 'id'])
            .doUpdateSet(eb => ({
              ...{ version, createdAt: now, rotatedAt: now, deletedAt: null, lastUsedAt: null },
              revision: eb('storedCredentials.revision', '+', 1),
            }))
            .where('storedCredentials.deletedAt', 'is not', null)
            .where('storedCredentials.version', '=', version - 1),
        )
        .returning('id')
        .execute();
      if (insertedRows.length === 0) return undefined;
      await addVersion(trx, applicationId, id, version, content, now);
      return 'inserted';
    }),

  rotate: (applicationId, id, revision, version, content, { now, destroyAt }) =>
    inTransaction(db, async trx => {
      const rotatedRows = await trx
        .updateTable('storedCredentials')
        .set({ version, revision: revision + 1, rotatedAt: now })
        .where('applicationId', '=', applicationId)
        .where('id', '=', id)
        .where('revision', '=', revision)
        .where('version', '=', version - 1)
        .where('deletedAt', 'is', null)
        .returning('id')
        .execute();
      if (rotatedRows.length === 0) return false;
      await trx
        .updateTable('storedCredentialVersions')
        .set({ destroyAt })
        .where('applicationId', '=', applicationId)
        .where('credentialId', '=', id)
        .where('version', '=', version - 1)
        .execute();
      await addVersion(trx, applicationId, id, version, content, now);
      return true;
    }),

  previous: async (application, id, version, now) => {
    const query = db
      .selectFrom('storedCredentialVersions')
      .selectAll()
      .where('applicationId', '=', application)
      .where('credentialId', '=', id)
      .where('version', '<', version)
      .where('destroyAt', '>', now)
      .orderBy('version', 'desc')
      .limit(1);
    return (await query.execute()).map(withoutNulls)[0];
  },

  delete: (application, id, revision, now) =>
    inTransaction(db, async trx => {
      const deletedRows = await trx
        .updateTable('storedCredentials')
        .set({ deletedAt: now, revision: revision + 1 })
        .where('applicationId', '=', application)
        .where('id', '=', id)
        .where('revision', '=', revision)
        .where('deletedAt', 'is', null)
        .returning('id')
        .execute();
      if (deletedRows.length === 0) return false;
      await trx
        .deleteFrom('storedCredentialVersions')
        .where('applicationId', '=', application)
        .where('credentialId', '=', id)
        .execute();
      return true;
    }),

  destroyDue: async now =>
    (await db.deleteFrom('storedCredentialVersions').where('destroyAt', '<=', now).returning('version').execute())
      .length,

  referencesTo: async (application, ids) => {
    if (ids.length === 0) return [];
    const { rows } = await sql<CredentialReference>`
      select named.id as credential_id, r.operation_id,
        bool_or(o.status = 'published' and o.published_revision = r.revision) as is_published
      from operation_revisions r
      join operations o on o.application_id = r.application_id and o.id = r.operation_id
      cross join lateral unnest(r.credential_ids) named (id)
      where r.application_id = ${application} and named.id = any (${[...ids]}::text[])
        and o.status <> 'deleted' and r.revision in (o.revision, o.published_revision)
      group by named.id, r.operation_id
      order by r.operation_id`.execute(db);
    return rows;
  },

  count: async ({ applicationId, credentialId, operationId, keyId, day }, now) => {
    await sql`
      with counted as (
        insert into stored_credential_uses as uses (application_id, credential_id, operation_id, key_id, day, calls)
        values (${applicationId}, ${credentialId}, ${operationId}, ${keyId}, ${day}::date, 1)
        on conflict (day, application_id, credential_id, operation_id, key_id) do update set calls = uses.calls + 1)
      update stored_credentials set last_used_at = ${now}
        where application_id = ${applicationId} and id = ${credentialId}
          and (last_used_at is null or last_used_at < ${now}::timestamptz - interval '1 minute')`.execute(db);
  },

  takeUses: async (before, batchSize) => {
    const { rows } = await sql<CredentialUse>`
      delete from stored_credential_uses where (day, application_id, credential_id, operation_id, key_id) in (
        select day, application_id, credential_id, operation_id, key_id
          from stored_credential_uses where day < ${before}::date order by day limit ${batchSize})
      returning application_id, credential_id, operation_id, key_id, to_char(day, 'YYYY-MM-DD') as day, calls`.execute(
      db,
    );
    return rows;
  },
});

async function selectWithVersion(
  db: Db,
  application: ApplicationId,
  id?: string,
): Promise<StoredCredentialWithVersion[]> {
  let credentialQuery = db
    .selectFrom('storedCredentials')
    .selectAll()
    .where('applicationId', '=', application)
    .where('deletedAt', 'is', null)
    .orderBy('id');
  if (id !== undefined) credentialQuery = credentialQuery.where('id', '=', id);
  const rows = (await credentialQuery.execute()).map(withoutNulls);
  if (rows.length === 0) return [];
  let query = db.selectFrom('storedCredentialVersions').selectAll().where('applicationId', '=', application);
  if (id !== undefined) query = query.where('credentialId', '=', id);
  const versions = (await query.orderBy('version', 'desc').execute()).map(withoutNulls);
  return rows.flatMap(row => {
    const ownVersions = versions.filter(({ credentialId }) => credentialId === row.id);
    const currentVersion = ownVersions.find(({ version }) => version === row.version);
    const previousVersion = ownVersions.find(({ version }) => version < row.version);
    if (!currentVersion) return []; // The credential was rotated or deleted between the two reads.
    return [
      {
        ...row,
        current: currentVersion,
        ...(previousVersion?.destroyAt ? { previousUntil: previousVersion.destroyAt } : {}),
      },
    ];
  });
}

async function addVersion(
  trx: Db,
  applicationId: ApplicationId,
  credentialId: string,
  version: number,
  { label, expiresAt, ...content }: NewVersion,
  now: Date,
): Promise<void> {
  const row: CredentialVersionRow = {
    ...{ applicationId, credentialId, version, createdAt: now, ...content },
    ...(label === undefined ? {} : { label }),
    ...(expiresAt === undefined ? {} : { expiresAt }),
  };
  await trx.insertInto('storedCredentialVersions').values(row).execute();
}
