// Hosts: the server processes that own browsers. Leases are measured by the clock of the database, which all hosts
// share.
import { sql } from 'kysely';
import type { HostId, SessionId } from '../../../kit/ids.ts';
import type { Db } from '../database.ts';
import type { HostState, Hosts, JoiningHost, ListedHost, LivingHost, Owner, SessionOnHost } from '../rows/hosts.ts';

/** The advisory lock that every host takes when it joins. */
const JOIN_LOCK_ID = 7_310_045;

const isFresh = sql<boolean>`state in ('up', 'away') and lease_until > now()`;
const timeAfter = (ms: number) => sql<Date>`now() + make_interval(secs => ${ms / 1000})`;
const usedSlots = sql<number>`(select count(*)::int from sessions
  where sessions.host_id = hosts.id and sessions.status in ('PENDING', 'RUNNING'))`;

export const hosts = (db: Db): Hosts => ({
  announce: async ({ id, region, slots, startedAt }) => {
    const values = { region, slots, startedAt, state: 'alone', incarnation: null, leaseUntil: null } as const;
    await db
      .insertInto('hosts')
      .values({ id, ...values })
      .onConflict(conflict => conflict.column('id').doUpdateSet(values))
      .execute();
  },

  now: async () => {
    const { rows } = await sql<{ now: Date }>`select clock_timestamp() as now`.execute(db);
    if (!rows[0]) throw new Error('the database returned no time');
    return rows[0].now;
  },

  join: (row, leaseMs, check, isStart) =>
    db.transaction().execute(async trx => {
      await sql`select pg_advisory_xact_lock(${JOIN_LOCK_ID})`.execute(trx);
      const earlierRows = await trx.selectFrom('hosts').select('state').where('id', '=', row.id).execute();
      const otherHosts = (await hostsWithLease(trx)).filter(({ id }) => id !== row.id);
      const { storeMark } = await check(otherHosts);
      await upsert(trx, row, storeMark, leaseMs);
      if (isStart && hasEnded(earlierRows[0]?.state)) await drain(trx, row.id, false);
      await announceHosts(trx);
      return { wasLost: earlierRows[0]?.state === 'lost' };
    }),

  renew: async ({ id, incarnation }, leaseMs, warm) => {
    const update = db
      .updateTable('hosts')
      .set({ leaseUntil: timeAfter(leaseMs), warm })
      .where('id', '=', id)
      .where('incarnation', '=', incarnation)
      .where('state', '=', 'up')
      .returning('draining');
    return (await update.execute())[0];
  },

  listLiving: () => hostsWithLease(db),

  leave: async ({ id, incarnation }, state, leaseMs) => {
    const update = db.updateTable('hosts').set({ state, leaseUntil: timeAfter(leaseMs), warm: 0 });
    await update
      .where('id', '=', id)
      .where('incarnation', '=', incarnation)
      .where('state', 'in', ['up', 'away'])
      .execute();
    await announceHosts(db);
  },

  markRestarting: async (id, endedAt, leaseMs) => {
    const update = db.updateTable('hosts').set({ state: 'away', leaseUntil: timeAfter(leaseMs), warm: 0 });
    // Does not change the row if the process that replaces the ended one has already joined.
    const formerRowUpdate = update.where('id', '=', id).where('startedAt', '<', endedAt);
    await formerRowUpdate.where('state', 'in', ['up', 'away']).execute();
    await announceHosts(db);
  },

  markLost: async leaseMs => {
    const update = db
      .updateTable('hosts')
      .set({ state: 'lost', warm: 0 })
      .where('state', 'in', ['up', 'away'])
      .where('leaseUntil', '<', sql<Date>`now()`)
      .where(sql<boolean>`pg_postmaster_start_time() < ${timeAfter(-leaseMs)}`)
      .returning('id');
    return (await update.execute()).map(({ id }) => id);
  },

  orphans: async batchSize => {
    const { rows } = await sql<{ id: SessionId }>`
      select sessions.id from hosts join sessions on sessions.host_id = hosts.id
        where hosts.state = 'lost' and sessions.status in ('PENDING', 'RUNNING') limit ${batchSize}`.execute(db);
    return rows.map(({ id }) => id);
  },

  lostHostsWithContexts: async () => {
    const { rows } = await sql<{ id: HostId }>`
      select id from hosts where state = 'lost' and exists (select from context_uses where host_id = hosts.id)`.execute(
      db,
    );
    return rows.map(({ id }) => id);
  },

  reassignLostWork: async to => {
    const { rows } = await sql<{ count: number }>`
      with lost as (select id from hosts where state = 'lost'),
        calls as (update invocations set host_id = ${to} where host_id in (select id from lost)
          and state in ('accepted', 'dispatched') returning 1),
        films as (update recording_files set host_id = ${to} where host_id in (select id from lost)
          and state = 'PENDING' returning 1)
      select ((select count(*) from calls) + (select count(*) from films))::int as count`.execute(db);
    return rows[0]?.count ?? 0;
  },

  hostOfSession: id => ownerIn(db, 'sessions', id),
  hostOfDownload: id => ownerIn(db, 'downloads', id),
  hostOfInvocation: id => ownerIn(db, 'invocations', id),

  hostOfHandoff: id => ownerBySession(db, 'handoffs', id),
  hostOfAction: id => ownerBySession(db, 'actions', id),

  list: async () => {
    const { rows } = await sql<ListedHost>`
      select id, region, slots, started_at, state, draining, ${isFresh} as is_fresh, url, version, labels, lease_until, ${usedSlots} as used
        from hosts where state <> 'removed' order by started_at desc limit 1000`.execute(db);
    return rows;
  },

  sessionsOn: async (id, limit) => {
    const { rows } = await sql<SessionOnHost>`
      select sessions.id, application_id, applications.name as application_name, status, sessions.created_at, expires_at
        from sessions join applications on applications.id = application_id
        where host_id = ${id} and status in ('PENDING', 'RUNNING') order by sessions.id desc limit ${limit}`.execute(
      db,
    );
    return rows;
  },

  drain: async (id, draining) => {
    const isFound = await drain(db, id, draining);
    await announceHosts(db);
    return isFound;
  },

  remove: async id => {
    const update = db
      .updateTable('hosts')
      .set({ state: 'removed' })
      .where('id', '=', id)
      .where('state', 'in', ['left', 'lost', 'alone'])
      .where(
        sql<boolean>`not exists (select from sessions where host_id = hosts.id and status in ('PENDING', 'RUNNING'))`,
      );
    return (await update.returning('id').execute()).length > 0;
  },
});

const hasEnded = (state: HostState | undefined): boolean => state === 'left' || state === 'lost';

async function drain(db: Db, id: HostId, draining: boolean): Promise<boolean> {
  const update = db.updateTable('hosts').set({ draining }).where('id', '=', id).where('state', '<>', 'removed');
  return (await update.returning('id').execute()).length > 0;
}

/**
 * Makes the hosts read the rows of all hosts again at once. Without this notification, they read the rows every few
 * seconds.
 */
const announceHosts = (db: Db) => sql`select pg_notify('hosts_changed', '')`.execute(db);

async function hostsWithLease(db: Db): Promise<LivingHost[]> {
  const { rows } = await sql<LivingHost>`
    select id, region, slots, started_at, incarnation, url, labels, version, secret_mark, store_mark, clock_ms, state,
        draining, warm, ${usedSlots} as used
      from hosts where ${isFresh} order by id`.execute(db);
  return rows;
}

async function upsert(trx: Db, row: JoiningHost, storeMark: string, leaseMs: number): Promise<void> {
  const { id, labels, ...rest } = row;
  const state = 'up' as const;
  const values = { ...rest, labels: JSON.stringify(labels), storeMark, state, leaseUntil: timeAfter(leaseMs), warm: 0 };
  await trx
    .insertInto('hosts')
    .values({ id, ...values })
    .onConflict(conflict => conflict.column('id').doUpdateSet(values))
    .execute();
}

async function ownerIn(
  db: Db,
  table: 'sessions' | 'downloads' | 'invocations',
  id: string,
): Promise<Owner | undefined> {
  const { rows } = await sql<Owner>`select host_id, application_id from ${sql.table(table)} where id = ${id}`.execute(
    db,
  );
  return rows[0];
}

async function ownerBySession(db: Db, table: 'handoffs' | 'actions', id: string): Promise<Owner | undefined> {
  const { rows } = await sql<Owner>`
    select sessions.host_id, sessions.application_id from sessions join ${sql.table(table)} as one on one.session_id = sessions.id
      where one.id = ${id}`.execute(db);
  return rows[0];
}
