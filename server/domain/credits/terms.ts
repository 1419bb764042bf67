// What sessions and invocations hold before they run: enough for some time ahead, and some traffic.
import type { NewHold } from '../../engines/store/rows/credits.ts';
import { plus } from '../../kit/clock.ts';
import { type HostId, newId, type ReservationId } from '../../kit/ids.ts';
import { type CreditRates, isEnforced, meteredCost } from '../../kit/metered-cost.ts';

/** A session holds this much time ahead, or what is left of it if that is less. */
export const HOLD_SECONDS = 300;
/** Traffic that is held besides, because nobody knows it beforehand. */
export const HOLD_BYTES = 10_000_000;
/** How often the use of a session is captured and its hold is extended; also the notice before it ends without credit. */
export const METER_MS = 60_000;

/** Micro-credits for the time ahead. At least 1 if any rate is above 0. */
export const amountAhead = (rates: CreditRates, seconds: number): number =>
  meteredCost(rates, { seconds: Math.ceil(Math.max(0, Math.min(HOLD_SECONDS, seconds))), bytes: HOLD_BYTES });

export type SessionHold = Pick<NewHold, 'id' | 'hostId' | 'amount' | 'rates' | 'at' | 'dueAt'>;

/** What the session holds that is placed now. Undefined if all rates are 0: nothing is enforced then. */
export function sessionHold(
  rates: CreditRates,
  hostId: HostId,
  { at, expiresAt }: { readonly at: Date; readonly expiresAt: Date },
): SessionHold | undefined {
  if (!isEnforced(rates)) return undefined;
  const amount = amountAhead(rates, (expiresAt.getTime() - at.getTime()) / 1000);
  return { id: newId<ReservationId>(at), hostId, amount, rates, at, dueAt: plus(at, METER_MS) };
}
