// The host resources that sessions used.
import { sql } from 'kysely';
import type { Db } from '../database.ts';
import type { UsageRows } from '../rows/usage.ts';
import { withoutNulls } from './without-nulls.ts';

export const usage = (db: Db): UsageRows => ({
  ofSession: async session => {
    const row = await db.selectFrom('sessionUsage').selectAll().where('sessionId', '=', session).executeTakeFirst();
    return row && withoutNulls(row);
  },

  save: async rows => {
    const values = <T>(readValue: (row: (typeof rows)[number]) => T | undefined) =>
      rows.map(row => readValue(row) ?? null);
    await sql`
      insert into session_usage (session_id, cpu_ms, peak_memory_bytes, bytes_received, bytes_sent)
        select sessions.id, cpu, memory, received, sent
          from unnest(
            ${values(row => row.sessionId)}::uuid[], ${values(row => row.cpuMs)}::bigint[],
            ${values(row => row.peakMemoryBytes)}::bigint[], ${values(row => row.bytesReceived)}::bigint[],
            ${values(row => row.bytesSent)}::bigint[]) as used (id, cpu, memory, received, sent)
          join sessions on sessions.id = used.id
          order by sessions.id
      on conflict (session_id) do update set
        cpu_ms = greatest(session_usage.cpu_ms, excluded.cpu_ms),
        peak_memory_bytes = greatest(session_usage.peak_memory_bytes, excluded.peak_memory_bytes),
        bytes_received = greatest(session_usage.bytes_received, excluded.bytes_received),
        bytes_sent = greatest(session_usage.bytes_sent, excluded.bytes_sent)`.execute(db);
  },
});
