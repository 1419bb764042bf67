// Operations that applications configure. Each change is one conditional statement; another statement in the same
// transaction inserts the revision.
import { type Selectable, sql } from 'kysely';
import type { ApplicationId } from '../../../kit/ids.ts';
import { type Db, inTransaction } from '../database.ts';
import type {
  ConfiguredOperationRows,
  OperationContent,
  OperationRow,
  OperationWithContent,
} from '../rows/configured-operations.ts';
import type { Tables } from '../schema.ts';
import { countAll, lockApplication } from './limited-insert.ts';
import { withoutNulls } from './without-nulls.ts';

export const configuredOperations = (db: Db): ConfiguredOperationRows => ({
  get: async (application, id, revision) =>
    (await selectWithContent(db, application, { id, at: revision ?? 'revision' }))[0],

  list: application => selectWithContent(db, application, { at: 'revision' }),

  listPublished: (application, id) =>
    selectWithContent(db, application, {
      at: 'publishedRevision',
      isPublished: true,
      ...(id === undefined ? {} : { id }),
    }),

  revision: async (application, id, revision) => {
    const query = db
      .selectFrom('operationRevisions')
      .selectAll()
      .where('applicationId', '=', application)
      .where('operationId', '=', id)
      .where('revision', '=', revision);
    return (await query.execute()).map(withoutNulls)[0];
  },

  insert: (row, content, firstRevision, maxOperations, now) =>
    inTransaction(db, async trx => {
      const { applicationId, id, kind, status } = row;
      await lockApplication(trx, applicationId);
      const existingOperationsQuery = trx
        .selectFrom('operations')
        .select(['id'])
        .where('applicationId', '=', applicationId)
        .where('status', '<>', 'deleted');
      if ((await existingOperationsQuery.where('id', '=', id).execute()).length > 0) return undefined;
      if (
        (await existingOperationsQuery.clearSelect().select(countAll).executeTakeFirstOrThrow()).count >= maxOperations
      )
        return 'limit_reached';
      const toolName = id.replaceAll('.', '_');
      const sameToolQuery = existingOperationsQuery.where(sql<boolean>`replace(id, '.', '_') = ${toolName}`);
      if ((await sameToolQuery.execute()).length > 0) return 'name_taken';
      const insertedRow = await trx
        .insertInto('operations')
        .values({
          ...{ applicationId, id, kind, status, revision: firstRevision, createdAt: now, updatedAt: now },
          publishedRevision: status === 'published' ? firstRevision : null,
        })
        .onConflict(conflict =>
          conflict.columns(['applicationId', 'id']).doUpdateSet(eb => ({
            ...{ kind, status, createdAt: now, updatedAt: now },
            revision: eb('operations.revision', '+', 1),
            publishedRevision: status === 'published' ? eb('operations.revision', '+', 1) : null,
          })),
        )
        .returningAll()
        .executeTakeFirstOrThrow();
      const operation = rowOf(insertedRow);
      await addRevision(trx, operation, content, now);
      return operation;
    }),

  change: (application, id, revision, content, { publish, kept, now }) =>
    inTransaction(db, async trx => {
      const update = trx
        .updateTable('operations')
        .set({ revision: revision + 1, updatedAt: now, ...(publish ? { publishedRevision: revision + 1 } : {}) })
        .where('applicationId', '=', application)
        .where('id', '=', id)
        .where('revision', '=', revision)
        .where('status', '<>', 'deleted')
        .returningAll();
      const [row] = (await update.execute()).map(rowOf);
      if (!row) return undefined;
      await addRevision(trx, row, content, now);
      await forgetRevisions(trx, row, row.revision - kept);
      return row;
    }),

  publish: async (application, id, revision, now) => {
    const publishUpdate = updateUndeleted(db, application, id)
      .set({ status: 'published', publishedRevision: revision, updatedAt: now })
      .where('revision', '=', revision);
    return (await publishUpdate.returningAll().execute()).map(rowOf)[0];
  },

  withdraw: async (application, id, now) => {
    const withdrawUpdate = updateUndeleted(db, application, id).set({ status: 'withdrawn', updatedAt: now });
    return (await withdrawUpdate.where('status', '=', 'published').returningAll().execute()).map(rowOf)[0];
  },

  delete: (application, id, revision, now) =>
    inTransaction(db, async trx => {
      const deleteUpdate = updateUndeleted(trx, application, id)
        .set({ status: 'deleted', publishedRevision: null, updatedAt: now })
        .where('revision', '=', revision)
        .where('status', '<>', 'published')
        .returningAll();
      const [row] = (await deleteUpdate.execute()).map(rowOf);
      if (row) await forgetRevisions(trx, row, row.revision);
      return row;
    }),
});

const updateUndeleted = (db: Db, application: ApplicationId, id: string) =>
  db
    .updateTable('operations')
    .where('applicationId', '=', application)
    .where('id', '=', id)
    .where('status', '<>', 'deleted');

interface RevisionSelection {
  readonly id?: string;
  /**
   * Which revision to join. A string is the name of the column of `operations` that contains its number; a number is
   * the number itself.
   */
  readonly at: 'revision' | 'publishedRevision' | number;
  readonly isPublished?: boolean;
}

async function selectWithContent(
  db: Db,
  application: ApplicationId,
  { id, at, isPublished }: RevisionSelection,
): Promise<OperationWithContent[]> {
  let operationsQuery = db
    .selectFrom('operations')
    .innerJoin('operationRevisions', join => {
      const joinedRevisions = join
        .onRef('operationRevisions.applicationId', '=', 'operations.applicationId')
        .onRef('operationRevisions.operationId', '=', 'operations.id');
      return typeof at === 'number'
        ? joinedRevisions.on('operationRevisions.revision', '=', at)
        : joinedRevisions.onRef('operationRevisions.revision', '=', `operations.${at}`);
    })
    .selectAll('operations')
    .select(['operationRevisions.digest', 'operationRevisions.definition', 'operationRevisions.credentialIds'])
    .where('operations.applicationId', '=', application)
    .where('operations.status', '<>', 'deleted')
    .orderBy('operations.id');
  if (id !== undefined) operationsQuery = operationsQuery.where('operations.id', '=', id);
  if (isPublished) operationsQuery = operationsQuery.where('operations.status', '=', 'published');
  return (await operationsQuery.execute()).map(({ digest, definition, credentialIds, ...row }) => ({
    ...rowOf(row),
    content: { digest, definition, credentialIds },
  }));
}

async function addRevision(
  trx: Db,
  { applicationId, id, revision }: OperationRow,
  { digest, definition, credentialIds }: OperationContent,
  now: Date,
): Promise<void> {
  const row = { applicationId, operationId: id, revision, digest, createdAt: now, credentialIds: [...credentialIds] };
  await trx
    .insertInto('operationRevisions')
    .values({ ...row, definition: JSON.stringify(definition) })
    .execute();
}

/**
 * Deletes the revisions up to `upTo`, except the published revision and those that running invocations or open Actions
 * refer to.
 */
async function forgetRevisions(
  trx: Db,
  { applicationId, id, publishedRevision = 0 }: OperationRow,
  upTo: number,
): Promise<void> {
  await trx
    .deleteFrom('operationRevisions')
    .where('applicationId', '=', applicationId)
    .where('operationId', '=', id)
    .where('revision', '<=', upTo)
    .where('revision', '<>', publishedRevision)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('invocations')
            .select('invocations.id')
            .where('invocations.applicationId', '=', applicationId)
            .where('invocations.operationId', '=', id)
            .whereRef('invocations.operationRevision', '=', 'operationRevisions.revision')
            .where('invocations.state', 'in', ['accepted', 'dispatched']),
        ),
      ),
    )
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('actions')
            .select('actions.id')
            .where('actions.applicationId', '=', applicationId)
            .where('actions.operationId', '=', id)
            .whereRef('actions.operationRevision', '=', 'operationRevisions.revision')
            .where('actions.state', 'in', ['awaiting_approval', 'approved']),
        ),
      ),
    )
    .execute();
}

const rowOf = (row: Selectable<Tables['operations']>): OperationRow => withoutNulls(row);
