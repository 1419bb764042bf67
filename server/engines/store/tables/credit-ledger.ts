// The ledger. Its functions take a transaction and never open one. The row of the account's balance is locked before a
// reservation is read, so that all changes of one account happen one after the other. A trigger adds each entry to the balance.
import { type Selectable, sql } from 'kysely';
import { type AccountId, type ApplicationId, type CreditEntryId, newId } from '../../../kit/ids.ts';
import type { Db } from '../database.ts';
import type { BalanceRow, EntryRow, Legs, Metering, NewHold, ReservationRow, Shortage } from '../rows/credits.ts';
import type { Tables } from '../schema.ts';
import { withoutNulls } from './without-nulls.ts';

/** Throws a RangeError for anything but an integer from `least` to 2^53 - 1. */
export function assertAmount(amount: number, least = 1): void {
  if (!Number.isSafeInteger(amount) || amount < least)
    throw new RangeError(`an amount of credit is an integer from ${least} to 2^53 - 1, not ${amount}`);
}

/** Locks the balance of the account until the end of the transaction. An account without one gets an empty one. */
export async function lockBalance(trx: Db, account: AccountId): Promise<BalanceRow> {
  const locked = (): Promise<BalanceRow | undefined> =>
    trx.selectFrom('creditBalances').selectAll().where('accountId', '=', account).forUpdate().executeTakeFirst();
  const existing = await locked();
  if (existing) return existing;
  await trx
    .insertInto('creditBalances')
    .values({ accountId: account })
    .onConflict(conflict => conflict.column('accountId').doNothing())
    .execute();
  const created = await locked();
  if (!created) throw new Error(`the account ${account} has no balance`);
  return created;
}

/**
 * Holds credit of the account that the application bills: one statement, which locks the balance until the end of the
 * transaction. Returns what is short, and then changes nothing.
 */
export async function hold(trx: Db, asked: NewHold): Promise<'held' | Shortage> {
  assertAmount(asked.amount);
  const { id, applicationId, hostId, purposeKind, purposeId, amount, rates, at } = asked;
  const { rows } = await sql<{ available: number; held: number }>`
    with account as (
      select account_id, available from credit_balances
        where account_id = (select billing_account_id from applications where id = ${applicationId}) for update),
    held as (
      insert into credit_reservations (id, account_id, application_id, host_id, purpose_kind, purpose_id, key_id,
          operation_id, amount, status, rate_browser_second, rate_egress_megabyte, created_at, due_at)
        select ${id}::uuid, account_id, ${applicationId}::uuid, ${hostId}::uuid, ${purposeKind}, ${purposeId}::uuid,
            ${asked.keyId ?? null}::uuid, ${asked.operationId ?? null}::text, ${amount}::bigint, 'held',
            ${rates.browserSecond}::bigint, ${rates.egressMegabyte}::bigint, ${at}::timestamptz,
            ${asked.dueAt ?? null}::timestamptz
          from account where available >= ${amount}::bigint
        returning account_id),
    booked as (
      insert into credit_entries (id, account_id, application_id, type, available, reserved, reservation_id, at)
        select ${newId(at)}::uuid, account_id, ${applicationId}::uuid, 'hold', -${amount}::bigint, ${amount}::bigint,
            ${id}::uuid, ${at}::timestamptz
          from held
        returning id)
    select coalesce((select available from account), 0)::bigint as available,
      (select count(*) from booked) as held`.execute(trx);
  const { available = 0, held = 0 } = rows[0] ?? {};
  return held === 1 ? 'held' : { required: amount, available };
}

/** Locks the balance, then the held reservation for this purpose. Undefined if there is none, or it was settled. */
export async function lockHeld(
  trx: Db,
  purposeId: string,
): Promise<{ balance: BalanceRow; reservation: ReservationRow } | undefined> {
  const held = trx.selectFrom('creditReservations').where('purposeId', '=', purposeId).where('status', '=', 'held');
  const ofAccount = trx.selectFrom('creditBalances').selectAll().where('accountId', '=', held.select('accountId'));
  const balance = await ofAccount.forUpdate().executeTakeFirst();
  // In a statement of its own, which sees what was committed while the first one waited.
  const row = balance && (await held.selectAll().forUpdate().executeTakeFirst());
  return row && { balance, reservation: reservationRow(row) };
}

/**
 * Captures what was used so far, and extends the hold to `target`. `short`: the extension is not available; then only the
 * use was captured, as far as it was held.
 */
export async function meter(
  trx: Db,
  { balance, reservation }: { readonly balance: BalanceRow; readonly reservation: ReservationRow },
  { metered, cost, target, at, dueAt }: Metering,
): Promise<'extended' | 'short'> {
  assertAmount(cost, 0);
  const wanted = Math.max(0, target - reservation.amount);
  const isShort = wanted > balance.available;
  const extension = isShort ? 0 : wanted;
  const amount = reservation.amount + extension;
  const captured = Math.max(reservation.captured, Math.min(cost, amount));
  const used = captured - reservation.captured;
  const lowAt = isShort ? (reservation.lowAt ?? at) : null;
  await change(trx, reservation, { amount, captured, ...metered, meteredAt: at, dueAt, lowAt });
  const legs = { available: -extension, reserved: extension - used, revenue: used };
  if (extension > 0 || used > 0) await enter(trx, reservation, extension > 0 ? 'extend' : 'capture', legs, at);
  return isShort ? 'short' : 'extended';
}

/**
 * Ends a reservation: captures `cost` and gives the rest back. `mayExceed`: a cost above the hold takes what else is
 * available; otherwise it is captured up to the hold. Returns what was captured in all.
 */
export async function settle(
  trx: Db,
  { balance, reservation }: { readonly balance: BalanceRow; readonly reservation: ReservationRow },
  { cost, at, mayExceed = false, metered = reservation, as }: SettleOptions,
): Promise<number> {
  assertAmount(cost, 0);
  const most = mayExceed ? reservation.amount + balance.available : reservation.amount;
  const captured = Math.max(reservation.captured, Math.min(cost, most));
  const amount = Math.max(reservation.amount, captured);
  const status = captured > 0 ? 'captured' : (as ?? 'released');
  const { seconds, bytes } = metered;
  await change(trx, reservation, {
    ...{ amount, captured, status, seconds, bytes, meteredAt: at, settledAt: at, dueAt: null, expiresAt: null },
  });
  const legs: Legs = {
    available: reservation.amount - captured,
    reserved: reservation.captured - reservation.amount,
    revenue: captured - reservation.captured,
  };
  const type = as === 'expired' ? 'expire' : captured > reservation.captured ? 'capture' : 'release';
  if (legs.available !== 0 || legs.reserved !== 0) await enter(trx, reservation, type, legs, at);
  return captured;
}

/** Keeps a reservation whose outcome is unknown, until it is settled or this time comes. */
export const keepHeld = (trx: Db, reservation: ReservationRow, until: Date): Promise<void> =>
  change(trx, reservation, { expiresAt: until });

export interface SettleOptions {
  readonly cost: number;
  readonly at: Date;
  readonly mayExceed?: boolean;
  readonly metered?: Pick<ReservationRow, 'seconds' | 'bytes'>;
  readonly as?: 'expired';
}

/** Adds credit: `fund` was paid for, with a bonus as a gift; `grant` is a gift of the operator. */
export async function addCredit(
  trx: Db,
  account: AccountId,
  type: 'fund' | 'grant',
  amount: number,
  entry: Pick<EntryRow, 'at'> & Partial<Pick<EntryRow, 'applicationId' | 'checkoutId' | 'reason'>>,
  bonus = 0,
): Promise<BalanceRow> {
  assertAmount(amount);
  assertAmount(bonus, 0);
  assertAmount(amount + bonus);
  await lockBalance(trx, account);
  const [funding, promo] = type === 'fund' ? [-amount, -bonus] : [0, -amount - bonus];
  const legs = { funding, promo, available: amount + bonus };
  await trx
    .insertInto('creditEntries')
    .values({ id: newId<CreditEntryId>(entry.at), accountId: account, type, ...legs, ...entry })
    .execute();
  return lockBalance(trx, account);
}

async function change(
  trx: Db,
  { id }: ReservationRow,
  values: Partial<Omit<Selectable<Tables['creditReservations']>, 'id'>>,
): Promise<void> {
  const changed = trx.updateTable('creditReservations').set(values).where('id', '=', id).where('status', '=', 'held');
  if ((await changed.returning('id').execute()).length !== 1) throw new Error(`the reservation ${id} was settled`);
}

async function enter(
  trx: Db,
  { id, accountId, applicationId }: { id: ReservationRow['id']; accountId: AccountId; applicationId: ApplicationId },
  type: EntryRow['type'],
  legs: Legs,
  at: Date,
): Promise<void> {
  const row = { id: newId<CreditEntryId>(at), accountId, applicationId, type, ...legs, reservationId: id, at };
  await trx.insertInto('creditEntries').values(row).execute();
}

export const reservationRow = (row: Selectable<Tables['creditReservations']>): ReservationRow => withoutNulls(row);
