// Who controls which session, and which live view links are valid. Each change of control is one conditional statement.
import { sql } from 'kysely';
import type { Db } from '../database.ts';
import type { ControlRow, ControlRows } from '../rows/controls.ts';
import { withoutNulls } from './without-nulls.ts';

export const controls = (db: Db): ControlRows => ({
  of: async session => {
    const found = await db.selectFrom('sessionControls').selectAll().where('sessionId', '=', session).execute();
    return found.map(withoutNulls)[0];
  },

  take: async (application, session, holder, now, expiresAt) => {
    const taken = await sql<ControlRow>`
      insert into session_controls (session_id, application_id, fence, holder, expires_at)
        select id, application_id, 1, ${holder}, ${expiresAt} from sessions
          where id = ${session} and application_id = ${application} and status = 'RUNNING' and end_status is null
      on conflict (session_id) do update
        set fence = session_controls.fence + 1, holder = excluded.holder, expires_at = excluded.expires_at
        where session_controls.holder is null or session_controls.holder = excluded.holder
          or session_controls.expires_at <= ${now}
      returning *`.execute(db);
    return taken.rows[0];
  },

  renew: async (session, holder, fence, now, expiresAt) => {
    const renewed = await db
      .updateTable('sessionControls')
      .set({ expiresAt })
      .where('sessionId', '=', session)
      .where('holder', '=', holder)
      .where('fence', '=', fence)
      .where('expiresAt', '>', now)
      .returning('fence')
      .execute();
    return renewed.length > 0;
  },

  end: async (session, fence) => {
    const ended = await db
      .updateTable('sessionControls')
      .set({ holder: null, expiresAt: null, fence: fence + 1 })
      .where('sessionId', '=', session)
      .where('fence', '=', fence)
      .where('holder', 'is not', null)
      .returning('fence')
      .execute();
    return ended.length > 0;
  },

  revokeLinks: async (application, session) => {
    const revoked = await sql<{ linkEpoch: number }>`
      insert into session_controls (session_id, application_id, link_epoch)
        select id, application_id, 1 from sessions where id = ${session} and application_id = ${application}
      on conflict (session_id) do update set link_epoch = session_controls.link_epoch + 1
      returning link_epoch`.execute(db);
    return revoked.rows[0]?.linkEpoch;
  },
});
