// Control of a session by a person, in the form that the live view and the connections of the agent use.
import type { NavigationRule } from '../../engines/browser/navigation-guard.ts';
import type { HandoffRow } from '../../engines/store/rows/handoffs.ts';
import type { HandoffId } from '../../kit/ids.ts';

export interface Control {
  readonly handoffId: HandoffId;
  /** Whether a person was asked to take control. False if a viewer took control without being asked. */
  readonly wasRequested: boolean;
  readonly holder: string;
  readonly fence: number;
  readonly expiresAt: Date;
  /** Whether the agent is prevented from reading pages. */
  readonly isMasked: boolean;
  readonly allowedOrigins: readonly string[] | undefined;
}

/** Returns the control that a person has through the hand-off. Undefined while no person has control. */
export function controlOf(row: HandoffRow): Control | undefined {
  const { id, origin, status, holder, fence, leaseExpiresAt, record, allowedOrigins } = row;
  if (status !== 'claimed' || holder === undefined || !leaseExpiresAt) return undefined;
  const wasRequested = origin !== 'viewer';
  const isMasked = wasRequested && record !== 'keep';
  return { handoffId: id, wasRequested, holder, fence, expiresAt: leaseExpiresAt, isMasked, allowedOrigins };
}

/** Lets pages navigate only to these origins. Frames inside a page may have any origin. */
export const allowOnlyOrigins = (origins: readonly string[]): NavigationRule => ({
  allows: (_hostname, frame, url) => frame === 'inner' || origins.includes(URL.parse(url)?.origin ?? ''),
  onRefused: () => {},
});
