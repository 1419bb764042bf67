// Downloads of sessions. Each change of state is one conditional statement, so that two processes or a repeated event
// cannot make a download both complete and failed, or complete twice. Its event is written in the same transaction.
import { type ExpressionBuilder, type Selectable, sql } from 'kysely';
import type { ApplicationId, SessionId } from '../../../kit/ids.ts';
import type { Announcer } from '../announcer.ts';
import type { Db } from '../database.ts';
import type { CompleteDownload, DownloadFilter, DownloadRow, DownloadRows, UsedBytes } from '../rows/downloads.ts';
import type { Tables } from '../schema.ts';
import { lockApplication } from './limited-insert.ts';
import { recordAddressedEvents } from './news.ts';
import { insertIntoOutbox } from './outbox.ts';
import { storedBytes } from './stored-bytes.ts';
import { withoutNulls } from './without-nulls.ts';

type DownloadExpressions = ExpressionBuilder<Tables, 'downloads'>;

export const downloads = (db: Db, announcer: Announcer): DownloadRows => ({
  begin: async row => begin(db, row),

  complete: async (row, outboxRow, actor, assertRoom) => {
    const { applicationId, sessionId, id: downloadId, filename, mimeType, size, checksum, createdAt, finishedAt } = row;
    const isCompleted = await db.transaction().execute(async trx => {
      await lockApplication(trx, applicationId); // so that concurrent downloads cannot exceed a limit together
      assertRoom(await usedBytes(trx, applicationId, sessionId));
      await begin(trx, { ...row, state: 'running' });
      const completedRows = await trx
        .updateTable('downloads')
        .set({ state: 'complete', mimeType, size, checksum, createdAt, finishedAt })
        .where('id', '=', downloadId)
        .where('state', '=', 'running')
        .returning('id')
        .execute();
      if (completedRows.length === 0) return false;
      await insertIntoOutbox(trx, [outboxRow]);
      const event = { session: sessionId, type: 'download.completed', at: finishedAt, actor } as const;
      await recordAddressedEvents(trx, [{ ...event, detail: { downloadId, filename, mimeType, size } }]);
      return true;
    });
    if (isCompleted) announcer.announceEvents([{ applicationId, id: sessionId }]);
    return isCompleted;
  },

  fail: async (session, guid, reason, at, actor) => {
    const failedDownloads = await db.transaction().execute(async trx => {
      const rows = await trx
        .updateTable('downloads')
        .set({ state: 'failed', failure: reason, finishedAt: at })
        .where('sessionId', '=', session)
        .where('guid', '=', guid)
        .where('state', '=', 'running')
        .returning(['applicationId', 'filename'])
        .execute();
      const event = { session, type: 'download.failed', at, actor } as const;
      await recordAddressedEvents(
        trx,
        rows.map(({ filename }) => ({ ...event, detail: { filename, reason } })),
      );
      return rows;
    });
    announcer.announceEvents(failedDownloads.map(({ applicationId }) => ({ applicationId, id: session })));
    return failedDownloads.length > 0;
  },

  ofSession: async session =>
    (await db.selectFrom('downloads').selectAll().where('sessionId', '=', session).execute()).map(withoutNulls),

  listOrphaned: async (host, batchSize) => {
    const query = db
      .selectFrom('downloads')
      .innerJoin('sessions', 'sessions.id', 'downloads.sessionId')
      .selectAll('downloads')
      .where('downloads.hostId', '=', host)
      .where('downloads.state', '=', 'running')
      .where('sessions.endedAt', 'is not', null)
      .orderBy('downloads.id')
      .limit(batchSize);
    return (await query.execute()).map(withoutNulls);
  },

  // Both queries use one snapshot, so that a download that completes during the request is in both results or in
  // neither.
  list: async (application, session, filter) =>
    db
      .transaction()
      .setIsolationLevel('repeatable read')
      .setAccessMode('read only')
      .execute(async trx => {
        const matchingQuery = () =>
          trx
            .selectFrom('downloads')
            .where('applicationId', '=', application)
            .where('sessionId', '=', session)
            .where('state', '=', 'complete')
            .where(eb => eb.and(filterConditions(eb, filter)));
        const { limit, offset } = filter;
        const pageQuery = matchingQuery().selectAll().orderBy('createdAt').orderBy('id').limit(limit).offset(offset);
        const rows = await pageQuery.execute();
        const countQuery = matchingQuery().select(sql<number>`count(*)`.as('total'));
        const { total } = await countQuery.executeTakeFirstOrThrow();
        return { downloads: rows.map(completeRow), total };
      }),

  get: async (application, id) => {
    const query = db.selectFrom('downloads').selectAll().where('applicationId', '=', application).where('id', '=', id);
    return (await query.where('state', '=', 'complete').execute()).map(completeRow)[0];
  },

  remove: async (application, id) => {
    const update = db
      .updateTable('downloads')
      .set({ state: 'removed', filename: '', mimeType: null, size: null, checksum: null })
      .where('applicationId', '=', application)
      .where('id', '=', id)
      .where('state', '=', 'complete')
      .returning('id');
    return (await update.execute()).length > 0;
  },

  usedBytes: (application, session) => usedBytes(db, application, session),
});

async function usedBytes(db: Db, application: ApplicationId, session: SessionId): Promise<UsedBytes> {
  const { bytes } = await db
    .selectFrom('downloads')
    .select(sql<number>`coalesce(sum(size), 0)::bigint`.as('bytes'))
    .where('applicationId', '=', application)
    .where('sessionId', '=', session)
    .where('state', '=', 'complete')
    .executeTakeFirstOrThrow();
  return { session: bytes, application: await storedBytes(db).ofApplication(application) };
}

async function begin(db: Db, { id, applicationId, sessionId, hostId, guid, filename, createdAt }: DownloadRow) {
  const values = { id, applicationId, sessionId, hostId, guid, state: 'running', filename, createdAt } as const;
  await db
    .insertInto('downloads')
    .values(values)
    .onConflict(conflict => conflict.doNothing())
    .execute();
}

function filterConditions(eb: DownloadExpressions, filter: DownloadFilter) {
  const { filename, mimeType, minSize, maxSize, createdAfter, createdBefore } = filter;
  return [
    ...(filename === undefined ? [] : [eb('filename', '=', filename)]),
    ...(mimeType === undefined ? [] : [eb('mimeType', '=', mimeType)]),
    ...(minSize === undefined ? [] : [eb('size', '>=', minSize)]),
    ...(maxSize === undefined ? [] : [eb('size', '<=', maxSize)]),
    ...(createdAfter === undefined ? [] : [eb('createdAt', '>=', createdAfter)]),
    ...(createdBefore === undefined ? [] : [eb('createdAt', '<=', createdBefore)]),
  ];
}

function completeRow(row: Selectable<Tables['downloads']>): CompleteDownload {
  const { mimeType, size, checksum, ...rest }: DownloadRow = withoutNulls(row);
  if (mimeType === undefined || size === undefined || checksum === undefined)
    throw new Error(`download ${rest.id} is complete, but its MIME type, size or checksum is missing`);
  return { ...rest, mimeType, size, checksum };
}
