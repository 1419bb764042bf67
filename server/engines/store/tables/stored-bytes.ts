// The bytes that are stored for an application and count against its limit.
import { sql } from 'kysely';
import type { Db } from '../database.ts';
import type { StoredBytes } from '../rows/retention.ts';

export const storedBytes = (db: Db): StoredBytes => ({
  ofApplication: async application => {
    const downloads = sql`select sum(size) from downloads where application_id = ${application} and state = 'complete'`;
    // Only sessions that have not ended count, because the bytes of an upload are removed with its session.
    const uploads = sql`select sum(size) from uploads join sessions on sessions.id = uploads.session_id
      where sessions.application_id = ${application} and sessions.ended_at is null`;
    // Versions may share an archive, which is stored once, for as long as one of them is kept.
    const contexts = sql`select sum(size) from (select max(size_bytes) as size from context_versions
      where application_id = ${application} and state = 'kept' and archive_of is not null group by archive_of) as archives`;
    // The output of an HTTP operation is the response of a service. It describes no stored file.
    const files = sql`select sum(coalesce((output #>> '{artifact,size}')::bigint, 0)
        + coalesce((select sum((file ->> 'size')::bigint) from jsonb_array_elements(output -> 'artifacts') as file), 0)) from invocations
      where application_id = ${application} and output_until is not null and kind <> 'http'`;
    const parts = [downloads, uploads, contexts, files].map(part => sql`coalesce((${part}), 0)`);
    const { rows } = await sql<{ bytes: number }>`select (${sql.join(parts, sql` + `)})::bigint as bytes`.execute(db);
    return rows[0]?.bytes ?? 0;
  },
});
