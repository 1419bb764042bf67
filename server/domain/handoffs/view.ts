// The API representation of a hand-off.
import type { Warning } from '../../../contract/common.ts';
import type { Handoff } from '../../../contract/handoffs.ts';
import type { HandoffRow } from '../../engines/store/rows/handoffs.ts';

export const handoffView = (row: HandoffRow, warnings: readonly Warning[] = []): Handoff => ({
  id: row.id,
  applicationId: row.applicationId,
  sessionId: row.sessionId,
  origin: row.origin,
  status: row.status,
  instructions: row.instructions,
  reason: row.reason,
  claimableBy: [row.claimableBy],
  ...(row.consumerId === undefined ? {} : { consumerId: row.consumerId }),
  record: row.record,
  ...(row.pageId === undefined ? {} : { pageId: row.pageId }),
  ...(row.allowedOrigins ? { allowedOrigins: [...row.allowedOrigins] } : {}),
  ...(row.callbackEvent === undefined ? {} : { callbackEvent: row.callbackEvent }),
  leaseSeconds: row.leaseSeconds,
  fence: row.fence,
  requestedBy: { kind: row.requesterKind, ...(row.requesterId === undefined ? {} : { id: row.requesterId }) },
  ...(row.holderKind
    ? { holder: { kind: row.holderKind, ...(row.holderId === undefined ? {} : { id: row.holderId }) } }
    : {}),
  createdAt: row.createdAt.toISOString(),
  expiresAt: row.expiresAt.toISOString(),
  ...(row.claimedAt ? { claimedAt: row.claimedAt.toISOString() } : {}),
  ...(row.leaseExpiresAt ? { leaseExpiresAt: row.leaseExpiresAt.toISOString() } : {}),
  ...(row.endedAt ? { endedAt: row.endedAt.toISOString() } : {}),
  ...(row.note === undefined ? {} : { note: row.note }),
  ...(row.evidence === undefined ? {} : { evidence: row.evidence }),
  ...(row.url === undefined ? {} : { url: row.url }),
  ...(warnings.length > 0 ? { warnings: [...warnings] } : {}),
});

export const isOpen = ({ status }: HandoffRow): boolean => status === 'requested' || status === 'claimed';

interface HandoffIds {
  readonly id: string;
  readonly applicationId: string;
}

/** Returns the address of the page on which a member, or a person with the secret of the link, claims the hand-off. */
export const handoffPageUrl = (publicUrl: string, { id, applicationId }: HandoffIds): string =>
  `${publicUrl}/handoffs/${id}?app=${applicationId}`;

/** Returns the address of the page on which the consumer claims a hand-off that names this consumer. */
export const consumerHandoffPageUrl = (publicUrl: string, { id, applicationId }: HandoffIds): string =>
  `${publicUrl}/consumer/${applicationId}/handoffs/${id}`;
