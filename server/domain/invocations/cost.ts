// The credit that an invocation holds before it starts, and the credit that is captured at its end. Pure.
import { OPERATION_TIMEOUT_MS_DEFAULT } from '../../../contract/managed-operations.ts';
import type { InvocationEnd } from '../../engines/store/rows/invocations.ts';
import { type CreditRates, isEnforced, type MeteredUse, meteredCost } from '../../kit/metered-cost.ts';
import { invalidRequest } from '../faults.ts';
import { handoffSeconds, sessionSeconds } from './managed.ts';

/**
 * The traffic for which credit is held for a call's session. It is an estimate, because the actual traffic is not known
 * beforehand. A call that costs more than the held amount is stopped.
 */
const ESTIMATED_BYTES = 50_000_000;

/** Returns the estimated use of a call that has a session of its own. Credit is held for this use. */
export const estimatedUseOf = (timeoutMs: number) => ({
  browserSeconds: sessionSeconds(timeoutMs),
  egressBytes: ESTIMATED_BYTES,
});

/** The members of an input on which the held credit depends. */
interface ChargedInput {
  readonly timeoutMs?: unknown;
  readonly sessionId?: unknown;
  readonly steps?: unknown;
}

/**
 * Returns the micro-credits to hold: the price plus the estimated cost of the session, or `maxCost` if that is less. A
 * call that names a session holds only the price, because that session is charged separately. Throws if `maxCost` does
 * not cover one second.
 */
export function reservationOf(
  rates: CreditRates,
  price: number,
  input: ChargedInput,
  maxCost: number | undefined,
): number {
  if (!isEnforced(rates)) return 0;
  const { timeoutMs = OPERATION_TIMEOUT_MS_DEFAULT, sessionId } = input;
  if (sessionId !== undefined) return priceReservationOf(rates, price, maxCost);
  const minCost = price + Math.max(1, meteredCost(rates, { seconds: 1, bytes: 0 }));
  if (maxCost !== undefined && maxCost < minCost)
    throw invalidRequest([
      { path: 'maxCost', message: `is ${maxCost}, but the call costs at least ${minCost} micro-credits` },
    ]);
  const estimatedUse = { seconds: sessionSeconds(Number(timeoutMs)) + handoffSeconds(input), bytes: ESTIMATED_BYTES };
  const estimate = Math.min(price + meteredCost(rates, estimatedUse), Number.MAX_SAFE_INTEGER);
  return Math.min(estimate, maxCost ?? estimate);
}

/** Returns the micro-credits to hold for a call that has only a price. Throws if `maxCost` is less than the price. */
export function priceReservationOf(rates: CreditRates, price: number, maxCost: number | undefined): number {
  if (!isEnforced(rates)) return 0;
  if (maxCost !== undefined && maxCost < price)
    throw invalidRequest([{ path: 'maxCost', message: `is ${maxCost}, but the call costs ${price} micro-credits` }]);
  return price;
}

export interface EndedInvocation {
  readonly state: InvocationEnd['state'];
  /** Phase of the error, if the call failed. */
  readonly phase?: string;
  readonly metered: MeteredUse;
  readonly reserved: number;
  readonly price: number;
}

/**
 * Returns the micro-credits to capture, never more than was held. After a success, this is the metered cost plus the
 * price. If the call failed after it had started, it is only the metered cost. If nothing was started, it is 0.
 * Undefined if the outcome is unknown. The whole amount then stays held.
 */
export function captureAmountOf(rates: CreditRates, { state, phase, metered, reserved, price }: EndedInvocation) {
  if (state === 'ambiguous') return undefined;
  if (state === 'cancelled' || phase === 'before') return 0;
  const cost = meteredCost(rates, metered) + (state === 'succeeded' ? price : 0);
  return Math.min(reserved, cost);
}
