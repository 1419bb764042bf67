// The state of a device authorization at a given time. An authorization that has not been redeemed expires at its
// expiry time, without a change of the row.
import { type DeviceState, type DeviceStatus, POLL_INTERVAL_SECONDS } from '../../../contract/device.ts';
import type { DeviceAuthorizationRow } from '../../engines/store/rows/device.ts';

const SLOW_DOWN_SECONDS = 5;
const INTERVAL_SECONDS_MAX = 30;
/**
 * Tolerance for a client that waits exactly as long as the interval. Because the clocks of two machines differ, its
 * request may arrive slightly early.
 */
const EARLY_TOLERANCE_MS = 500;

export const isExpired = ({ expiresAt }: DeviceAuthorizationRow, now: Date): boolean => expiresAt <= now;

export function statusAt(row: DeviceAuthorizationRow, now: Date): DeviceStatus {
  const isOpen = row.status !== 'redeemed' && row.status !== 'denied';
  return isOpen && isExpired(row, now) ? 'expired' : row.status;
}

export const stateAt = (row: DeviceAuthorizationRow, now: Date): DeviceState => ({
  id: row.id,
  status: statusAt(row, now),
  expiresIn: Math.max(0, Math.ceil((row.expiresAt.getTime() - now.getTime()) / 1000)),
  interval: row.intervalSeconds,
});

/** Returns the latest time of the previous poll for which a poll at `now` is not too soon. */
export const latestPreviousPoll = ({ intervalSeconds }: DeviceAuthorizationRow, now: Date): Date =>
  new Date(now.getTime() - intervalSeconds * 1000 + EARLY_TOLERANCE_MS);

export const isTooSoon = (row: DeviceAuthorizationRow, now: Date): boolean =>
  row.polledAt !== undefined && row.polledAt > latestPreviousPoll(row, now);

/**
 * Returns the interval after a request that was sent too soon (RFC 8628, 3.5). The interval is limited, so that a
 * client that polls too often cannot block a client that keeps to the interval.
 */
export const slowerInterval = ({ intervalSeconds = POLL_INTERVAL_SECONDS }: DeviceAuthorizationRow): number =>
  Math.min(INTERVAL_SECONDS_MAX, intervalSeconds + SLOW_DOWN_SECONDS);
