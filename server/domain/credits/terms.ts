// The credit that is held for sessions and invocations before they run: enough for a limited time and a limited amount
// of traffic.
import type { NewHold } from '../../engines/store/rows/credits.ts';
import { addMs } from '../../kit/clock.ts';
import { type HostId, newId, type ReservationId } from '../../kit/ids.ts';
import { type CreditRates, isEnforced, meteredCost } from '../../kit/metered-cost.ts';

/**
 * Number of seconds for which the credit of a session is held in advance. If the remaining time of the session is
 * shorter, credit is held for the remaining time.
 */
export const HOLD_SECONDS = 300;
/**
 * Bytes of traffic for which credit is held in addition to the time, because the actual traffic is not known
 * beforehand.
 */
const HOLD_BYTES = 10_000_000;
/**
 * Interval at which the use of a session is captured and its hold is extended. Also the length of the notice before a
 * session without credit ends.
 */
export const CAPTURE_INTERVAL_MS = 60_000;

/**
 * Returns the micro-credits to hold for traffic and for `seconds`, of which at most `HOLD_SECONDS` count. At least 1 if
 * `seconds` and any rate are above 0.
 */
export const holdAmount = (rates: CreditRates, seconds: number): number =>
  meteredCost(rates, { seconds: Math.ceil(Math.max(0, Math.min(HOLD_SECONDS, seconds))), bytes: HOLD_BYTES });

export type SessionHold = Pick<NewHold, 'id' | 'hostId' | 'amount' | 'rates' | 'at' | 'dueAt'>;

/**
 * Returns the hold of a session that is being placed. Undefined if all rates are 0, because sessions then require no
 * credit.
 */
export function sessionHold(
  rates: CreditRates,
  hostId: HostId,
  { at, expiresAt }: { readonly at: Date; readonly expiresAt: Date },
): SessionHold | undefined {
  if (!isEnforced(rates)) return undefined;
  const amount = holdAmount(rates, (expiresAt.getTime() - at.getTime()) / 1000);
  return { id: newId<ReservationId>(at), hostId, amount, rates, at, dueAt: addMs(at, CAPTURE_INTERVAL_MS) };
}
