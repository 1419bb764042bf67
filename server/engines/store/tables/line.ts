// The queue of waiting creates, across all hosts.
import { sql } from 'kysely';
import type { ApplicationId } from '../../../kit/ids.ts';
import type { Db } from '../database.ts';
import type { LineRows, QueuePosition, WaitingCreate } from '../rows/line.ts';

/** Rows that were not refreshed within this time are ignored. Hosts refresh the rows of their callers every second. */
export const STALE_SECONDS = 5;
/** Rows that were not refreshed within this time are deleted. */
const DELETE_AFTER_SECONDS = 60;

const isFresh = sql<boolean>`seen_at > now() - make_interval(secs => ${STALE_SECONDS})`;

export const line = (db: Db): LineRows => ({
  join: (row, maxWaiting) =>
    db.transaction().execute(async trx => {
      await sql`select from application_limits where application_id = ${row.applicationId} for no key update`.execute(
        trx,
      );
      const waitingCount = await countWaiting(trx, row.applicationId);
      if (waitingCount >= maxWaiting) return { waiting: waitingCount };
      const { rows } = await sql<QueuePosition>`
        insert into waiting_creates (turn, application_id, host_id, region, why, refused)
        select greatest(coalesce(min(turn), 0), coalesce(max(turn) filter (where application_id = ${row.applicationId}) + 1, 0)),
            ${row.applicationId}::uuid, ${row.hostId}::uuid, ${row.region}, ${row.why}, ${JSON.stringify(row.refused)}::jsonb
          from waiting_creates where ${isFresh}
        returning turn, place`.execute(trx);
      const [insertedPlace] = rows;
      if (!insertedPlace) throw new Error('the insert into waiting_creates returned no row');
      return insertedPlace;
    }),

  refresh: async (idleCreates, tryingCreates) => {
    await sql`delete from waiting_creates where seen_at < now() - make_interval(secs => ${DELETE_AFTER_SECONDS})`.execute(
      db,
    );
    if (tryingCreates.length > 0)
      await sql`update waiting_creates set seen_at = now() where place = any(${placesOf(tryingCreates)}::bigint[])`.execute(
        db,
      );
    if (idleCreates.length === 0) return;
    const rows = JSON.stringify(idleCreates.map(toSnakeCase));
    await sql`
      insert into waiting_creates (place, turn, application_id, host_id, region, why, refused)
        select place, turn, application_id, host_id, region, why, refused
          from jsonb_to_recordset(${rows}::jsonb) as row (place bigint, turn int, application_id uuid, host_id uuid,
            region text, why text, refused jsonb)
          order by place
      on conflict (place) do update set seen_at = now(), why = excluded.why, refused = excluded.refused`.execute(db);
  },

  leave: async place => void (await sql`delete from waiting_creates where place = ${place}`.execute(db)),

  list: async limit => {
    const { rows } = await sql<Awaited<ReturnType<LineRows['list']>>[number]>`
      select turn, place, application_id, region, why from waiting_creates where ${isFresh}
        order by turn, place limit ${limit}`.execute(db);
    return rows;
  },

  waitingOf: application => countWaiting(db, application),

  positionOf: async (application, at) => {
    const { rows } = await sql<{ position: number; waiting: number }>`
      select (count(*) filter (where (turn, place) < (${at.turn}::int, ${at.place}::bigint)) + 1)::int as position, count(*)::int as waiting
        from waiting_creates where application_id = ${application} and ${isFresh}`.execute(db);
    const { position = 1, waiting = 1 } = rows[0] ?? {};
    return { position, waiting: Math.max(position, waiting) };
  },

  announceMove: async () =>
    void (await sql`select pg_notify('line_moved', '') where exists (select from waiting_creates)`.execute(db)),
});

const placesOf = (rows: readonly QueuePosition[]): number[] => rows.map(({ place }) => place);

const toSnakeCase = ({ applicationId, hostId, ...rest }: WaitingCreate) => ({
  ...rest,
  application_id: applicationId,
  host_id: hostId,
});

async function countWaiting(db: Db, application: ApplicationId): Promise<number> {
  const { rows } = await sql<{ waiting: number }>`
    select count(*)::int as waiting from waiting_creates where application_id = ${application} and ${isFresh}`.execute(
    db,
  );
  return rows[0]?.waiting ?? 0;
}
