// Contexts and their versions. Every change locks the context's row first, so that versions are ordered. A destroyed
// context has no key, and no query finds it.
import { type Selectable, sql } from 'kysely';
import { addMs } from '../../../kit/clock.ts';
import type { ApplicationId, ContextId, VersionId } from '../../../kit/ids.ts';
import type { Announcer } from '../announcer.ts';
import type { Db } from '../database.ts';
import type {
  AddressedEvent,
  ContextRow,
  ContextRows,
  KeepVersionRequest,
  KeptVersion,
  NewContext,
  RemovableVersion,
  VersionRow,
} from '../rows/contexts.ts';
import type { ContextVersionsTable, Tables } from '../schema.ts';
import { countAll, lockApplication } from './limited-insert.ts';
import { recordAddressedEvents } from './news.ts';
import { withoutNulls } from './without-nulls.ts';

export const contexts = (db: Db, announcer: Announcer): ContextRows => ({
  insert: (row, limit) => db.transaction().execute(trx => insert(trx, row, limit)),

  get: async (application, id) =>
    (await selectExisting(db, application).where('id', '=', id).execute()).map(contextRow)[0],

  list: async (application, { limit, before }) => {
    const contextsQuery = selectExisting(db, application).orderBy('id', 'desc').limit(limit);
    return (await (before ? contextsQuery.where('id', '<', before) : contextsQuery).execute()).map(contextRow);
  },

  destroy: (application, id, now) =>
    db.transaction().execute(async trx => {
      const destroyedRows = await trx
        .updateTable('contexts')
        .set({ wrappedKey: null, name: null, lastSessionId: null, updatedAt: now })
        .where('applicationId', '=', application)
        .where('id', '=', id)
        .where('wrappedKey', 'is not', null)
        .returning('id')
        .execute();
      if (destroyedRows.length === 0) return false;
      await trx.updateTable('contextVersions').set({ state: 'gone', dueAt: now }).where('contextId', '=', id).execute();
      return true;
    }),

  versions: async (application, id) => {
    const query = db
      .selectFrom('contextVersions')
      .selectAll()
      .where('applicationId', '=', application)
      .where('contextId', '=', id)
      .where('state', '=', 'kept')
      .orderBy('version', 'desc');
    return (await query.execute()).map(versionRow);
  },

  reserve: (application, context, version) =>
    db.transaction().execute(async trx => {
      if (!(await lockContext(trx, application, context))) return false;
      const { archiveOf, id, source, now, until } = version;
      if (archiveOf && !(await hasArchive(trx, context, archiveOf))) return false;
      await trx
        .insertInto('contextVersions')
        .values({
          ...{ id, contextId: context, applicationId: application, state: 'writing', source, partial: false },
          ...{ archiveOf: archiveOf ?? id, cookiesOf: id, createdAt: now, dueAt: until },
        })
        .onConflict(conflict => conflict.column('id').doUpdateSet({ state: 'writing', dueAt: until }))
        .execute();
      return true;
    }),

  keep: async (application, context, request, session) => {
    let eventsToRecord: readonly AddressedEvent[] = [];
    const keepResult = await db.transaction().execute(async trx => {
      const lockedContext = await lockContext(trx, application, context);
      if (!lockedContext) return undefined;
      const keptVersion = await keep(trx, lockedContext, request, session?.id);
      eventsToRecord = session?.events(keptVersion) ?? [];
      await recordAddressedEvents(trx, eventsToRecord);
      return keptVersion;
    });
    announcer.announceEvents(eventsToRecord.map(({ session }) => ({ applicationId: application, id: session })));
    return keepResult;
  },

  abandon: async (id, now) => {
    const update = db.updateTable('contextVersions').set({ state: 'gone', dueAt: now });
    await update.where('id', '=', id).where('state', '=', 'writing').execute();
  },

  takeRemovable: (now, batchSize) => db.transaction().execute(trx => takeRemovable(trx, now, batchSize)),

  forget: async ids => {
    if (ids.length > 0)
      await db.deleteFrom('contextVersions').where('id', 'in', ids).where('state', '=', 'gone').execute();
    await sql`delete from contexts where wrapped_key is null
      and not exists (select from context_versions where context_id = contexts.id)
      and not exists (select from context_uses where context_id = contexts.id)`.execute(db);
  },
});

const selectExisting = (db: Db, application: ApplicationId) =>
  db.selectFrom('contexts').selectAll().where('applicationId', '=', application).where('wrappedKey', 'is not', null);

export const lockContext = async (
  trx: Db,
  application: ApplicationId,
  id: ContextId,
): Promise<ContextRow | undefined> =>
  (await selectExisting(trx, application).where('id', '=', id).forUpdate().execute()).map(contextRow)[0];

function contextRow(row: Selectable<Tables['contexts']>): ContextRow {
  const { wrappedKey, ...rest } = row;
  if (!wrappedKey) throw new Error('a destroyed context was read');
  return { ...withoutNulls(rest), wrappedKey };
}

async function insert(trx: Db, row: NewContext, limit: number): Promise<'inserted' | 'name_taken' | 'limit_reached'> {
  const { applicationId } = row;
  await lockApplication(trx, applicationId);
  const countQuery = selectExisting(trx, applicationId).clearSelect().select(countAll);
  if ((await countQuery.executeTakeFirstOrThrow()).count >= limit) return 'limit_reached';
  const { id, name = null, wrappedKey, createdAt } = row;
  const insertedRows = await trx
    .insertInto('contexts')
    .values({ id, applicationId, name, wrappedKey, createdAt, updatedAt: createdAt })
    .onConflict(conflict => conflict.doNothing())
    .returning('id')
    .execute();
  return insertedRows.length > 0 ? 'inserted' : 'name_taken';
}

async function hasArchive(trx: Db, context: ContextId, archiveOf: VersionId): Promise<boolean> {
  const query = trx
    .selectFrom('contextVersions')
    .select('id')
    .where('contextId', '=', context)
    .where('archiveOf', '=', archiveOf)
    .where('state', '=', 'kept');
  return (await query.limit(1).execute()).length > 0;
}

// ---- a new version -------------------------------------------------------------------------------------------------

async function keep(
  trx: Db,
  existingContext: ContextRow,
  request: KeepVersionRequest,
  session: string | undefined,
): Promise<KeptVersion> {
  const { id, facts, now } = request;
  const version = existingContext.version + 1;
  const previousVersion = await retire(trx, existingContext, request);
  const row = {
    ...{ contextId: existingContext.id, applicationId: existingContext.applicationId, state: 'kept' as const, version },
    ...{ source: facts.source, sessionId: facts.sessionId ?? null, partial: facts.partial, dueAt: null },
    ...{ sizeBytes: facts.sizeBytes, createdAt: now },
    ...{ archiveOf: facts.archive?.versionId ?? null, archiveChecksum: facts.archive?.checksum ?? null },
    cookiesOf: facts.cookiesOf ?? null,
  };
  await trx
    .insertInto('contextVersions')
    .values({ id, ...row })
    .onConflict(conflict => conflict.column('id').doUpdateSet(row))
    .execute();
  const context = await trx
    .updateTable('contexts')
    .set({
      version,
      sizeBytes: facts.sizeBytes,
      updatedAt: now,
      ...(session ? { lastSessionId: facts.sessionId } : {}),
    })
    .where('id', '=', existingContext.id)
    .returningAll()
    .executeTakeFirstOrThrow();
  const startVersion = session === undefined ? undefined : await endUse(trx, session);
  const overtakenVersion =
    startVersion !== undefined && startVersion < existingContext.version ? previousVersion : undefined;
  return { context: contextRow(context), ...(overtakenVersion ? { overtakenVersion } : {}) };
}

/**
 * Schedules the newest version for removal at `until`, because a new version replaces it, and marks surplus versions
 * for removal. Returns the version that was the newest.
 */
async function retire(
  trx: Db,
  { id, version }: ContextRow,
  { now, earlierVersions: { max, until } }: KeepVersionRequest,
): Promise<VersionRow | undefined> {
  const update = trx.updateTable('contextVersions').where('contextId', '=', id).where('state', '=', 'kept');
  await update
    .set({ state: 'gone', dueAt: now })
    .where('version', '<=', version - max)
    .execute();
  const [previousRow] = await update.set({ dueAt: until }).where('version', '=', version).returningAll().execute();
  return previousRow && versionRow(previousRow);
}

/**
 * Ends the session's use of its context. Returns the version that the session started from, or 0 if it started without
 * a version. Undefined if the session did not use a context.
 */
async function endUse(trx: Db, session: string): Promise<number | undefined> {
  const deletionResult = await sql<{ from: number }>`
    delete from context_uses where session_id = ${session} returning coalesce(from_version, 0) as "from"`.execute(trx);
  return deletionResult.rows[0]?.from;
}

function versionRow(row: Selectable<ContextVersionsTable>): VersionRow {
  const { version, archiveOf, archiveChecksum, cookiesOf, sessionId, dueAt } = row;
  if (version === null) throw new Error(`context version ${row.id} has no version number`);
  return {
    ...{ id: row.id, version, source: row.source, partial: row.partial },
    ...{ sizeBytes: row.sizeBytes, createdAt: row.createdAt },
    ...(sessionId ? { sessionId } : {}),
    ...(archiveOf && archiveChecksum ? { archive: { versionId: archiveOf, checksum: archiveChecksum } } : {}),
    ...(cookiesOf ? { cookiesOf } : {}),
    ...(dueAt ? { expiresAt: dueAt } : {}),
  };
}

// ---- removal -------------------------------------------------------------------------------------------------------

/** A removal that was interrupted is repeated after this time. */
const REMOVAL_RETRY_DELAY_MS = 600_000;

/**
 * Returns the versions to remove. They are marked first, while their contexts are locked, so that no new version can
 * share their objects.
 */
async function takeRemovable(trx: Db, now: Date, batchSize: number): Promise<RemovableVersion[]> {
  const dueVersions = await trx
    .selectFrom('contextVersions')
    .select(['id', 'contextId'])
    .where('dueAt', '<=', now)
    .orderBy('dueAt')
    .limit(batchSize)
    .execute();
  if (dueVersions.length === 0) return [];
  const [ids, contextIds] = [
    dueVersions.map(({ id }) => id),
    [...new Set(dueVersions.map(({ contextId }) => contextId))],
  ];
  await trx.selectFrom('contexts').select('id').where('id', 'in', contextIds).orderBy('id').forUpdate().execute();
  const markedVersions = await trx
    .updateTable('contextVersions')
    .set({ state: 'gone', dueAt: addMs(now, REMOVAL_RETRY_DELAY_MS) })
    .where('id', 'in', ids)
    .where('dueAt', '<=', now)
    .returning(['id', 'applicationId', 'contextId', 'archiveOf', 'cookiesOf'])
    .execute();
  const idsInUse = await idsUsedByOthers(trx, contextIds);
  return markedVersions.map(({ archiveOf, cookiesOf, ...row }) => ({
    ...row,
    ...(archiveOf && !idsInUse.has(archiveOf) ? { archiveOf } : {}),
    ...(cookiesOf && !idsInUse.has(cookiesOf) ? { cookiesOf } : {}),
  }));
}

async function idsUsedByOthers(trx: Db, contextIds: readonly ContextId[]): Promise<ReadonlySet<VersionId>> {
  const otherVersions = await trx
    .selectFrom('contextVersions')
    .select(['archiveOf', 'cookiesOf'])
    .where('contextId', 'in', contextIds)
    .where('state', '!=', 'gone')
    .execute();
  return new Set(otherVersions.flatMap(({ archiveOf, cookiesOf }) => [archiveOf, cookiesOf]).filter(id => id !== null));
}
