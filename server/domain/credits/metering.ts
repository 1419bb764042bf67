// Meters the sessions that hold credit: captures the use of each session so far, and extends its hold. A session whose
// hold cannot be extended ends after a minute's notice. The due times are in the rows, so the task may run at any time,
// in any process.
import type { CreditRows, MeteredSession, Metering, ReservationRow } from '../../engines/store/rows/credits.ts';
import { addMs } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import type { SessionId } from '../../kit/ids.ts';
import { meteredCost, secondsRoundedUp } from '../../kit/metered-cost.ts';
import type { Runtime } from '../../kit/runtime.ts';
import type { DecidedEnd } from '../sessions/actors.ts';
import { CAPTURE_INTERVAL_MS, holdAmount } from './terms.ts';

const BATCH_MAX = 200;

export interface MeteringParts extends Pick<Runtime, 'clock' | 'log' | 'host'> {
  readonly rows: Pick<CreditRows, 'due' | 'meter' | 'recordExhaustedCredit' | 'recordLowCredit'>;
  /** The balance of an account is low if fewer micro-credits than this are available. If 0, no balance is low. */
  readonly lowBalanceThreshold: number;
  readonly end: (id: SessionId, end: DecidedEnd) => Promise<unknown>;
  /** Whether the session has ended and its end could not be written yet. */
  readonly isEndUnwritten: (id: SessionId) => boolean;
}

/** Runs the task once. Returns the number of metered sessions and the number of ended sessions. */
export async function meterSessions(parts: MeteringParts): Promise<{ metered: number; ended: number }> {
  const { rows, clock, host, lowBalanceThreshold, log } = parts;
  const dueReservations = await rows.due(host, clock.now(), BATCH_MAX);
  let endedCount = 0;
  for (const reservation of dueReservations)
    try {
      if (await meterSession(parts, reservation)) endedCount += 1;
    } catch (error) {
      log.warn('credit.not_metered', { sessionId: reservation.purposeId, reason: reason(error) });
    }
  if (lowBalanceThreshold > 0) await rows.recordLowCredit(host, lowBalanceThreshold, clock.now());
  return { metered: dueReservations.length, ended: endedCount };
}

/** Returns whether the session was ended. */
async function meterSession(
  { rows, clock, end, isEndUnwritten }: MeteringParts,
  row: ReservationRow,
): Promise<boolean> {
  const id = row.purposeId as SessionId; // Only reservations of sessions are due.
  // Metering now would charge for time after the end of the session. The use is settled when the end is written.
  if (isEndUnwritten(id)) return false;
  const now = clock.now();
  const outcome = await rows.meter(row, (reservation, session) => meteringOf(reservation, session, now));
  if (!outcome?.lowSince || outcome.isEnding || now < addMs(outcome.lowSince, CAPTURE_INTERVAL_MS)) return false;
  await rows.recordExhaustedCredit(id, now);
  const detail = 'the credit of the account was used up';
  // If the end cannot be written now, the session domain writes it later.
  await end(id, { status: 'ERROR', reason: 'credit_exhausted', detail }).catch(() => {});
  return true;
}

/**
 * Returns the usage and its cost up to this time, the total amount that the hold should have (this cost and the expected
 * cost of the remaining time), and when to meter next.
 */
export function meteringOf(reservation: ReservationRow, session: MeteredSession, at: Date): Metering {
  const rates = {
    browserSecond: reservation.rateBrowserSecond,
    egressMegabyte: reservation.rateEgressMegabyte,
  };
  const meteredUse = { seconds: secondsRoundedUp(session.startedAt, at), bytes: session.bytes };
  const cost = meteredCost(rates, meteredUse);
  const remainingSeconds = (session.expiresAt.getTime() - at.getTime()) / 1000;
  const target = session.isEnding ? cost : cost + holdAmount(rates, remainingSeconds);
  const noticeEndsAt = reservation.lowAt && addMs(reservation.lowAt, CAPTURE_INTERVAL_MS);
  const dueAt = noticeEndsAt && noticeEndsAt > at ? noticeEndsAt : addMs(at, CAPTURE_INTERVAL_MS);
  return { metered: meteredUse, cost, target, at, dueAt };
}
