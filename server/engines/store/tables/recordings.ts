// Recordings: pages, segments, runs of segments with the same init segment, hidden and missing spans, and assembled
// files.
import { type Selectable, sql } from 'kysely';
import type { Announcer } from '../announcer.ts';
import type { Db } from '../database.ts';
import type { SessionEventType } from '../rows/events.ts';
import type { OmissionReason, RecordingFileRow, RecordingRows, SegmentRow } from '../rows/recordings.ts';
import type { Tables } from '../schema.ts';
import { recordAddressedEvents } from './news.ts';
import { withoutNulls } from './without-nulls.ts';

/** Stored as the end of a span that has not ended. */
const OPEN_END_MS = 2 ** 31 - 1;
/** The maximum number of omitted pages that are stored per session. */
const OMISSIONS_MAX = 1_000;

const hasLostHost = sql<boolean>`not exists (
  select from hosts
    where hosts.id = recording_files.host_id and hosts.state in ('up', 'away') and hosts.lease_until > now())`;

const SETTLED_EVENT_TYPES: Readonly<Record<RecordingFileRow['state'], SessionEventType | undefined>> = {
  PENDING: undefined,
  COMPLETED: 'recording.ready',
  FAILED: 'recording.failed',
};

export const recordings = (db: Db, announcer: Announcer): RecordingRows => ({
  insertPage: async (session, page, startedAt) => {
    const insertion = db.insertInto('recordingPages').values({ sessionId: session, page, startedAt });
    await insertion.onConflict(oc => oc.doNothing()).execute();
  },

  pages: async session => {
    const query = db.selectFrom('recordingPages').selectAll().where('sessionId', '=', session);
    return query.orderBy('page').execute();
  },

  markStored: async (session, page) => {
    const update = db.updateTable('recordingPages').set({ stored: true });
    await update.where('sessionId', '=', session).where('page', '=', page).execute();
  },

  runOf: async (session, page, checksum) => {
    const query = db
      .selectFrom('recordingRuns')
      .select('run')
      .where('sessionId', '=', session)
      .where('page', '=', page);
    return (await query.where('checksum', '=', checksum).executeTakeFirst())?.run;
  },

  addRun: async (session, page, checksum) => {
    const { rows } = await sql<{ run: number }>`
      insert into recording_runs (session_id, page, run, checksum)
        select ${session}::uuid, ${page}::integer, coalesce(max(run) + 1, 0), ${checksum}::text
          from recording_runs where session_id = ${session} and page = ${page}
        on conflict (session_id, page, checksum) do update set checksum = excluded.checksum
        returning run`.execute(db);
    return rows[0]?.run ?? 0;
  },

  addSegment: async ({ samples, ...row }) => {
    // After a SIGKILL a segment may be stored again with different bytes. The row describes the bytes stored last.
    const { sessionId, page, sequence, ...changedColumns } = { ...row, samples: JSON.stringify(samples) };
    await db
      .insertInto('recordingSegments')
      .values({ sessionId, page, sequence, ...changedColumns })
      .onConflict(oc => oc.columns(['sessionId', 'page', 'sequence']).doUpdateSet(changedColumns))
      .execute();
  },

  segments: async (session, page) => {
    const query = db.selectFrom('recordingSegments').selectAll().where('sessionId', '=', session);
    return (await query.where('page', '=', page).orderBy('sequence').execute()).map(segmentRow);
  },

  addSpan: async (session, page, { kind, fromMs, toMs = OPEN_END_MS, why }) => {
    const values = { sessionId: session, page, kind, fromMs, toMs, why: why ?? null };
    await db
      .insertInto('recordingSpans')
      .values(values)
      .onConflict(oc => oc.columns(['sessionId', 'page', 'kind', 'fromMs']).doUpdateSet({ toMs }))
      .execute();
  },

  endSpans: async (session, page, atMs) => {
    const update = db
      .updateTable('recordingSpans')
      .set({ toMs: sql`greatest(from_ms + 1, ${atMs}::integer)` })
      .where('sessionId', '=', session);
    await update.where('page', '=', page).where('toMs', '=', OPEN_END_MS).execute();
  },

  spans: async session => {
    const query = db.selectFrom('recordingSpans').selectAll().where('sessionId', '=', session);
    const rows = await query.orderBy('page').orderBy('fromMs').execute();
    return rows.map(({ sessionId: _, toMs, ...row }) => ({
      ...withoutNulls(row),
      ...(toMs === OPEN_END_MS ? {} : { toMs }),
    }));
  },

  lengths: async session => {
    const { rows } = await sql<{ page: number; endMs: number }>`
      select page, max(start_ms + duration_ms)::integer as "endMs"
        from recording_segments where session_id = ${session} group by page`.execute(db);
    return new Map(rows.map(({ page, endMs }) => [page, endMs]));
  },

  requestFile: async ({ sessionId, page, hostId, assembly, requestedAt }) => {
    const requestColumns = { state: 'PENDING', hostId, assembly, requestedAt, attempts: 0, failure: null } as const;
    await db
      .insertInto('recordingFiles')
      .values({ sessionId, page, ...requestColumns })
      .onConflict(oc =>
        oc
          .columns(['sessionId', 'page'])
          .doUpdateSet(requestColumns)
          // A complete file is kept: the recording of an ended session does not change. A file that a host with a valid
          // lease is assembling is not restarted; otherwise frequent requests could prevent it from ever being
          // complete.
          .where(({ eb, or, and, ref }) =>
            or([
              eb('recordingFiles.state', '=', 'FAILED'),
              and([
                eb('recordingFiles.state', '=', 'PENDING'),
                eb('recordingFiles.hostId', '!=', ref('excluded.hostId')),
                hasLostHost,
              ]),
            ]),
          ),
      )
      .execute();
  },

  files: async session => {
    const query = db.selectFrom('recordingFiles').selectAll().where('sessionId', '=', session);
    return (await query.orderBy('page').execute()).map(fileRow);
  },

  listPending: async (host, batchSize) => {
    const query = db.selectFrom('recordingFiles').selectAll().where('hostId', '=', host).where('state', '=', 'PENDING');
    return (await query.orderBy('requestedAt').limit(batchSize).execute()).map(fileRow);
  },

  settle: async ({ sessionId, page, assembly, state, size, completedAt, failure, attempts }, now) => {
    const outcomeColumns = {
      state,
      attempts,
      size: size ?? null,
      completedAt: completedAt ?? null,
      failure: failure ?? null,
    };
    const sessionsToAnnounce = await db.transaction().execute(async trx => {
      const settledFiles = await trx
        .updateTable('recordingFiles')
        .set(outcomeColumns)
        .where('sessionId', '=', sessionId)
        .where('page', '=', page)
        .where('assembly', '=', assembly)
        .where('state', '=', 'PENDING')
        .returning('page')
        .execute();
      const type = SETTLED_EVENT_TYPES[state];
      if (type === undefined || settledFiles.length === 0) return [];
      const detail = { pageId: String(page), ...(size === undefined ? {} : { size }) };
      return recordAddressedEvents(trx, [{ session: sessionId, type, at: now, actor: { kind: 'service' }, detail }]);
    });
    announcer.announceEvents(sessionsToAnnounce);
  },

  recordOmission: async (session, { why, targetId, page }) => {
    await sql`
      insert into recording_omissions (session_id, why, target_id, page)
        select ${session}::uuid, ${why}::text, ${targetId}::text, ${page ?? null}::integer
          where (select count(*) from recording_omissions where session_id = ${session}) < ${OMISSIONS_MAX}
        on conflict do nothing`.execute(db);
  },

  omissions: async session => {
    const { rows } = await sql<{ why: OmissionReason; pages: number }>`
      select why, count(*)::integer as pages from recording_omissions omitted
        where session_id = ${session} and not exists (
          select from recording_pages recorded
            where recorded.session_id = omitted.session_id and recorded.page = omitted.page)
        group by why order by why`.execute(db);
    return rows;
  },

  forget: async session => {
    await db.deleteFrom('recordingFiles').where('sessionId', '=', session).execute();
    await db.deleteFrom('recordingSegments').where('sessionId', '=', session).execute();
    await db.deleteFrom('recordingRuns').where('sessionId', '=', session).execute();
  },
});

function segmentRow({ samples, ...row }: Selectable<Tables['recordingSegments']>): SegmentRow {
  const { durationsMs, sizes } = samples;
  return { ...row, samples: { durationsMs: toNumbers(durationsMs), sizes: toNumbers(sizes) } };
}

const toNumbers = (list: unknown): number[] => (Array.isArray(list) ? list.map(Number) : []);

const fileRow = (row: Selectable<Tables['recordingFiles']>): RecordingFileRow => withoutNulls(row);
