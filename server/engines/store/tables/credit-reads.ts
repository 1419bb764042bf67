// Queries about the credit of accounts and applications.
import { type RawBuilder, sql } from 'kysely';
import type { Db } from '../database.ts';
import type { CostRow, CreditEntryRow, CreditReads } from '../rows/credits.ts';
import { reservationRow } from './credit-ledger.ts';
import { withoutNulls } from './without-nulls.ts';

const EMPTY_BALANCE = { funding: 0, available: 0, reserved: 0, revenue: 0, promo: 0 };

export const creditReads = (db: Db): CreditReads => ({
  listExpiredHolds: async (now, batchSize) => {
    const query = db.selectFrom('creditReservations').selectAll().where('status', '=', 'held');
    const rows = await query.where('expiresAt', '<=', now).orderBy('expiresAt').limit(batchSize).execute();
    return rows.map(reservationRow);
  },

  balance: async account => {
    const books = ['funding', 'available', 'reserved', 'revenue', 'promo'] as const;
    const query = db.selectFrom('creditBalances').select(books).where('accountId', '=', account);
    return (await query.executeTakeFirst()) ?? EMPTY_BALANCE;
  },

  listHeld: async (application, limit) => {
    const query = db.selectFrom('creditReservations').selectAll().where('applicationId', '=', application);
    const rows = await query.where('status', '=', 'held').orderBy('id', 'desc').limit(limit).execute();
    return rows.map(reservationRow);
  },

  sums: async (application, since) => {
    const { rows } = await sql<{ reserved: number; captured: number }>`
      select
        (select coalesce(sum(amount - captured), 0) from credit_reservations
          where application_id = ${application} and status = 'held')::bigint as reserved,
        (select coalesce(sum(revenue), 0) from credit_entries
          where application_id = ${application} and at >= ${since})::bigint as captured`.execute(db);
    return rows[0] ?? { reserved: 0, captured: 0 };
  },

  entries: async (application, { type, after, before, limit }) => {
    let query = db.selectFrom('creditEntries').selectAll().where('applicationId', '=', application);
    if (type) query = query.where('type', '=', type);
    if (after) query = query.where('at', '>', after);
    if (before) query = query.where('id', '<', before);
    const rows = await query.orderBy('id', 'desc').limit(limit).execute();
    return rows.map((row): CreditEntryRow => withoutNulls(row));
  },

  costs: async (application, { from, to }, groupBy, limit) => {
    const { rows } = await sql<CostRow & { readonly name: string | null }>`
      with costs as (
        select ${ENTRY_GROUPING[groupBy]} as of, sum(entries.revenue) as cost
          from credit_entries entries join credit_reservations reservations on reservations.id = reservation_id
          where entries.application_id = ${application} and entries.at >= ${from} and entries.at < ${to}
            and entries.revenue > 0
          group by 1),
      called as (
        select ${CALL_GROUPING[groupBy]} as of, count(*) as calls,
            sum(coalesce((meters->>'browserSeconds')::numeric, 0)) as seconds,
            sum(coalesce((meters->>'egressBytes')::numeric, 0)) as bytes
          from invocations
          where application_id = ${application} and created_at >= ${from} and created_at < ${to}
          group by 1)
      select of, coalesce(calls, 0)::bigint as calls, coalesce(cost, 0)::bigint as cost,
          coalesce(seconds, 0)::float8 as browser_seconds, coalesce(bytes, 0)::bigint as egress_bytes, keys.name
        from costs full join called using (of)
          left join keys on ${groupBy === 'key'} and keys.id::text = of and keys.application_id = ${application}
        where of is not null
        order by cost desc nulls last, of
        limit ${limit}`.execute(db);
    return rows.map(withoutNulls);
  },
});

const utcDay = (column: string) => sql`(${sql.ref(column)} at time zone 'UTC')::date::text`;

const ENTRY_GROUPING: Readonly<Record<'day' | 'operation' | 'key', RawBuilder<unknown>>> = {
  day: utcDay('entries.at'),
  operation: sql`reservations.operation_id`,
  key: sql`reservations.key_id::text`,
};

const CALL_GROUPING: typeof ENTRY_GROUPING = {
  day: utcDay('created_at'),
  operation: sql`operation_id`,
  key: sql`key_id::text`,
};
