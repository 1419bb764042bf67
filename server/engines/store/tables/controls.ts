// The fences of sessions, and the validity of live view links.
import { sql } from 'kysely';
import type { Db } from '../database.ts';
import type { ControlRows, LockedFence } from '../rows/controls.ts';

export const controls = (db: Db): ControlRows => ({
  ofSession: async session => {
    const columns = ['sessionId', 'applicationId', 'fence', 'linkEpoch'] as const;
    const foundRows = await db.selectFrom('sessionControls').select(columns).where('sessionId', '=', session).execute();
    return foundRows[0];
  },

  lockFence: async (application, session) => {
    // The update changes nothing, but it locks the row.
    const lockResult = await sql<LockedFence>`
      insert into session_controls (session_id, application_id)
        select id, application_id from sessions where id = ${session} and application_id = ${application}
      on conflict (session_id) do update set fence = session_controls.fence
      returning fence, (select status = 'RUNNING' and end_status is null from sessions where id = ${session}) as runs`.execute(
      db,
    );
    return lockResult.rows[0];
  },

  setFence: async (session, fence) => {
    await db.updateTable('sessionControls').set({ fence }).where('sessionId', '=', session).execute();
  },

  revokeLinks: async (application, session) => {
    const result = await sql<{ linkEpoch: number }>`
      insert into session_controls (session_id, application_id, link_epoch)
        select id, application_id, 1 from sessions where id = ${session} and application_id = ${application}
      on conflict (session_id) do update set link_epoch = session_controls.link_epoch + 1
      returning link_epoch`.execute(db);
    return result.rows[0]?.linkEpoch;
  },
});
