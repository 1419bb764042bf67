// The cost of metered use, in micro-credits. Only integers are used. The product of bytes and rate may exceed 2^53, so
// it is a BigInt.

/** Micro-credits for each started second of a browser, and for each megabyte (1,000,000 bytes) over the network. */
export interface CreditRates {
  readonly browserSecond: number;
  readonly egressMegabyte: number;
}

export interface MeteredUse {
  /** The time from RUNNING to the end, in seconds. A started second counts as a whole one. */
  readonly seconds: number;
  /** Bytes to and from the network. */
  readonly bytes: number;
}

const MEGABYTE = 1_000_000n;

export const isEnforced = ({ browserSecond, egressMegabyte }: CreditRates): boolean =>
  browserSecond > 0 || egressMegabyte > 0;

/** A part of a second counts as a second. 0 for a session that never ran. */
export const secondsRoundedUp = (from: Date | undefined, to: Date): number =>
  from === undefined ? 0 : Math.max(0, Math.ceil((to.getTime() - from.getTime()) / 1000));

/** Rounded up to a whole micro-credit; at most 2^53 - 1. */
export function meteredCost(rates: CreditRates, { seconds, bytes }: MeteredUse): number {
  const timeCost = BigInt(seconds) * BigInt(rates.browserSecond);
  const trafficCost = (BigInt(bytes) * BigInt(rates.egressMegabyte) + MEGABYTE - 1n) / MEGABYTE;
  const cost = timeCost + trafficCost;
  return cost > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(cost);
}
