// Logs of sessions: compressed chunks of lines, whose content the store does not interpret.
import { promisify } from 'node:util';
import { zstdCompress, zstdDecompress } from 'node:zlib';
import { sql } from 'kysely';
import type { Db } from '../database.ts';
import type { LogChunk, LogKinds, LogRows } from '../rows/logs.ts';

const compress = promisify(zstdCompress);
const decompress = promisify(zstdDecompress);
/** Larger than any chunk that is written, so a chunk that unpacks to more is invalid. */
const CHUNK_BYTES_MAX = 16 * 1024 ** 2;

export const logs = (db: Db): LogRows => ({
  write: async (application, session, chunks, now) => {
    if (chunks.length === 0) return;
    const values = await Promise.all(
      chunks.map(async ({ first, lines, kinds }) => ({
        applicationId: application,
        sessionId: session,
        first,
        last: first + lines.length - 1,
        kinds: JSON.stringify(kinds),
        lines: await compress(Buffer.from(lines.join('\n'))),
        writtenAt: now,
      })),
    );
    await db
      .insertInto('logChunks')
      .values(values)
      .onConflict(conflict =>
        conflict.columns(['sessionId', 'first']).doUpdateSet(({ ref }) => ({
          last: ref('excluded.last'),
          kinds: ref('excluded.kinds'),
          lines: ref('excluded.lines'),
          writtenAt: ref('excluded.writtenAt'),
        })),
      )
      .execute();
  },

  read: async (application, session, { after, kinds, limit }) => {
    let query = db
      .selectFrom('logChunks')
      .select(['first', 'lines', 'kinds'])
      .where('applicationId', '=', application)
      .where('sessionId', '=', session)
      .where('last', '>', after);
    if (kinds) query = query.where(sql<boolean>`kinds ?| ${[...kinds]}::text[]`);
    const rows = await query.orderBy('first').limit(limit).execute();
    return Promise.all(rows.map(unpackChunk));
  },

  lastPosition: async (application, session) => {
    const { rows } = await sql<{ first: number; last: number; written: Date; kinds: LogKinds; lines: Buffer }>`
      select first, last, lines, written_at as written, (
          select coalesce(jsonb_object_agg(kind, jsonb_build_object('entries', entries, 'bytes', bytes)), '{}')
          from (
            select kind, sum((share->>'entries')::integer) as entries, sum((share->>'bytes')::integer) as bytes
            from log_chunks as each, jsonb_each(each.kinds) as kept (kind, share)
            where each.session_id = ${session} and each.application_id = ${application} group by kind
          ) as shares
        ) as kinds
      from log_chunks where session_id = ${session} and application_id = ${application}
      order by first desc limit 1`.execute(db);
    const [row] = rows;
    return row && { ...row, lines: (await unpackChunk(row)).lines };
  },

  forget: async (endedBefore, batchSize) => {
    const query = db
      .selectFrom('logChunks')
      .innerJoin('sessions', 'sessions.id', 'logChunks.sessionId')
      .select('logChunks.sessionId')
      .distinct()
      .where('logChunks.writtenAt', '<', endedBefore)
      .where('sessions.endedAt', '<', endedBefore)
      .limit(batchSize);
    const deletedSessions = await db
      .with('gone', creator => creator.deleteFrom('logChunks').where('sessionId', 'in', query).returning('sessionId'))
      .selectFrom('gone')
      .select(({ fn }) => fn.count<number>('sessionId').distinct().as('sessions'))
      .executeTakeFirstOrThrow();
    return deletedSessions.sessions;
  },
});

async function unpackChunk(row: { first: number; lines: Buffer; kinds: unknown }): Promise<LogChunk> {
  const text = await decompress(row.lines, { maxOutputLength: CHUNK_BYTES_MAX });
  return { first: row.first, lines: text.toString('utf8').split('\n'), kinds: row.kinds as LogKinds };
}
