// The credit ledger. Its functions take a transaction and never open one. The row of the account's balance is locked
// before a reservation is read, so that all changes to one account happen one after the other. A trigger adds each
// entry to the balance.
import { type RawBuilder, type Selectable, sql } from 'kysely';
import { type AccountId, type ApplicationId, type CreditEntryId, newId } from '../../../kit/ids.ts';
import type { Db } from '../database.ts';
import type { BalanceRow, CreditEntryRow, Legs, Metering, NewHold, ReservationRow, Shortage } from '../rows/credits.ts';
import type { Tables } from '../schema.ts';
import { withoutNulls } from './without-nulls.ts';

/** Throws a RangeError for anything but an integer from `minimum` to 2^53 - 1. */
export function assertAmount(amount: number, minimum = 1): void {
  if (!Number.isSafeInteger(amount) || amount < minimum)
    throw new RangeError(`an amount of credit must be an integer from ${minimum} to 2^53 - 1, not ${amount}`);
}

/**
 * Locks the balance of the account until the end of the transaction. Creates an empty balance if the account has none.
 */
export async function lockBalance(trx: Db, account: AccountId): Promise<BalanceRow> {
  const selectLocked = (): Promise<BalanceRow | undefined> =>
    trx.selectFrom('creditBalances').selectAll().where('accountId', '=', account).forUpdate().executeTakeFirst();
  const existingBalance = await selectLocked();
  if (existingBalance) return existingBalance;
  await trx
    .insertInto('creditBalances')
    .values({ accountId: account })
    .onConflict(conflict => conflict.column('accountId').doNothing())
    .execute();
  const createdBalance = await selectLocked();
  if (!createdBalance) throw new Error(`no balance row exists for account ${account}`);
  return createdBalance;
}

/**
 * Holds credit of the application's billing account, in one statement that locks the balance until the end of the
 * transaction. If there is not enough credit, returns the shortage and changes nothing.
 */
export async function hold(trx: Db, request: NewHold): Promise<'held' | Shortage> {
  const { rows } = await sql<{ available: number | null }>`select ${holdExpression(request)} as available`.execute(trx);
  const available = rows[0]?.available ?? undefined;
  return available === undefined ? 'held' : { required: request.amount, available };
}

/**
 * `hold` as an expression for use in another statement. Null if the credit is held, otherwise the available amount.
 * Throws like `assertAmount`.
 */
function holdExpression(request: NewHold): RawBuilder<number | null> {
  assertAmount(request.amount);
  const { id, applicationId, hostId, purposeKind, purposeId, amount, rates, at } = request;
  return sql`hold_credit(
    ${id}::uuid, ${applicationId}::uuid, ${hostId}::uuid, ${purposeKind}::text, ${purposeId}::uuid,
    ${request.keyId ?? null}::uuid, ${request.operationId ?? null}::text, ${amount}::bigint, ${rates.browserSecond}::bigint,
    ${rates.egressMegabyte}::bigint, ${at}::timestamptz, ${request.dueAt ?? null}::timestamptz, ${newId(at)}::uuid)`;
}

/** Locks the balance, then the held reservation for this purpose. Undefined if no reservation is held for it. */
export async function lockHeld(
  trx: Db,
  purposeId: string,
): Promise<{ balance: BalanceRow; reservation: ReservationRow } | undefined> {
  const query = trx.selectFrom('creditReservations').where('purposeId', '=', purposeId).where('status', '=', 'held');
  const balanceQuery = trx.selectFrom('creditBalances').selectAll().where('accountId', '=', query.select('accountId'));
  const balance = await balanceQuery.forUpdate().executeTakeFirst();
  // A separate statement, because only a new statement sees changes that were committed while the first statement
  // waited for the lock.
  const row = balance && (await query.selectAll().forUpdate().executeTakeFirst());
  return row && { balance, reservation: reservationRow(row) };
}

/**
 * Captures what has been used so far, and extends the hold to `target`. Returns `short` if there is not enough credit
 * for the extension; in that case only the use was captured, up to the amount held.
 */
export async function meter(
  trx: Db,
  { balance, reservation }: { readonly balance: BalanceRow; readonly reservation: ReservationRow },
  { metered, cost, target, at, dueAt }: Metering,
): Promise<'extended' | 'short'> {
  assertAmount(cost, 0);
  const neededExtension = Math.max(0, target - reservation.amount);
  const isShort = neededExtension > balance.available;
  const extensionAmount = isShort ? 0 : neededExtension;
  const amount = reservation.amount + extensionAmount;
  const captured = Math.max(reservation.captured, Math.min(cost, amount));
  const newlyCapturedAmount = captured - reservation.captured;
  const lowAt = isShort ? (reservation.lowAt ?? at) : null;
  await changeReservation(trx, reservation, { amount, captured, ...metered, meteredAt: at, dueAt, lowAt });
  const legs = {
    available: -extensionAmount,
    reserved: extensionAmount - newlyCapturedAmount,
    revenue: newlyCapturedAmount,
  };
  if (extensionAmount > 0 || newlyCapturedAmount > 0)
    await addEntry(trx, reservation, extensionAmount > 0 ? 'extend' : 'capture', legs, at);
  return isShort ? 'short' : 'extended';
}

/**
 * Ends the reservation for this purpose: captures `cost` and releases the rest. With `mayExceed`, a cost above the hold
 * is also taken from other available credit; without it, at most the amount held is captured. Returns the total amount
 * captured. Undefined if nothing is held.
 */
export async function settle(trx: Db, purposeId: string, options: SettleOptions): Promise<number | undefined> {
  const { rows } = await sql<{
    captured: number | null;
  }>`select ${settleExpression(purposeId, options)} as captured`.execute(trx);
  return rows[0]?.captured ?? undefined;
}

/** `settle` as an expression for use in another statement. Null if nothing is held. Throws like `assertAmount`. */
export function settleExpression(
  purposeId: string,
  { cost, at, mayExceed = false, metered, as }: SettleOptions,
): RawBuilder<number | null> {
  assertAmount(cost, 0);
  return sql`settle_credit(
    ${purposeId}::uuid, ${cost}::bigint, ${mayExceed}::boolean, ${metered?.seconds ?? null}::bigint,
    ${metered?.bytes ?? null}::bigint, ${as === 'expired'}::boolean, ${at}::timestamptz, ${newId(at)}::uuid)`;
}

export interface SettleOptions {
  readonly cost: number;
  readonly at: Date;
  readonly mayExceed?: boolean;
  readonly metered?: Pick<ReservationRow, 'seconds' | 'bytes'>;
  readonly as?: 'expired';
}

/** Adds credit. A `fund` is paid for, except for its bonus. A `grant` is not paid for. */
export async function addCredit(
  trx: Db,
  account: AccountId,
  type: 'fund' | 'grant',
  amount: number,
  entry: Pick<CreditEntryRow, 'at'> & Partial<Pick<CreditEntryRow, 'applicationId' | 'checkoutId' | 'reason'>>,
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

async function changeReservation(
  trx: Db,
  { id }: ReservationRow,
  values: Partial<Omit<Selectable<Tables['creditReservations']>, 'id'>>,
): Promise<void> {
  const update = trx.updateTable('creditReservations').set(values).where('id', '=', id).where('status', '=', 'held');
  if ((await update.returning('id').execute()).length !== 1) throw new Error(`the reservation ${id} is no longer held`);
}

async function addEntry(
  trx: Db,
  { id, accountId, applicationId }: { id: ReservationRow['id']; accountId: AccountId; applicationId: ApplicationId },
  type: CreditEntryRow['type'],
  legs: Legs,
  at: Date,
): Promise<void> {
  const row = { id: newId<CreditEntryId>(at), accountId, applicationId, type, ...legs, reservationId: id, at };
  await trx.insertInto('creditEntries').values(row).execute();
}

export const reservationRow = (row: Selectable<Tables['creditReservations']>): ReservationRow => withoutNulls(row);
