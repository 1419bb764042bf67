// The bytes that sessions sent and received over the network, by application and UTC day. Rows are locked in the order
// of application ids, so that two processes that add bytes at the same time do not deadlock.
import { sql } from 'kysely';
import type { ApplicationId } from '../../../kit/ids.ts';
import type { JsonObject } from '../../../kit/json.ts';
import type { Db } from '../database.ts';
import type { EgressDays } from '../rows/egress-days.ts';

export const egressDays = (db: Db): EgressDays => ({
  add: async (day, bytesByApplication) => {
    const { rows } = await sql<{ applicationId: ApplicationId; bytes: number; configured: JsonObject }>`
      with added as (
        insert into egress_days (application_id, day, bytes)
        select id, ${day}::date, bytes
          from unnest(${[...bytesByApplication.keys()]}::uuid[], ${[...bytesByApplication.values()]}::bigint[]) as moved (id, bytes)
          order by id
        on conflict (application_id, day) do update set bytes = egress_days.bytes + excluded.bytes
        returning application_id, bytes)
      select added.application_id, added.bytes, application_limits.configured
        from added join application_limits using (application_id)`.execute(db);
    return rows;
  },

  forget: async before => {
    const { numDeletedRows } = await db.deleteFrom('egressDays').where('day', '<', before).executeTakeFirstOrThrow();
    return Number(numDeletedRows);
  },
});
