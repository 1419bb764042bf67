// The content of receipts. Pure. Contains no personal data: input and output are included only as digests.
import type { HandoffRow } from '../../engines/store/rows/handoffs.ts';
import type { InvocationRow } from '../../engines/store/rows/invocations.ts';
import { canonicalJson } from '../../kit/canonical-json.ts';
import type { ReceiptId } from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';

export const RECEIPT_TYPE = 'berth-receipt+jwt';

export interface ReceiptFacts {
  readonly receiptId: ReceiptId;
  readonly issuer: string;
  readonly endedAt: Date;
  readonly status: string;
  readonly outputDigest?: string;
  readonly errorCode?: string;
  readonly meters: JsonObject;
  /** The amount captured, in micro-credits. If absent, the whole amount remains held. */
  readonly captured?: number;
  /** Whether the session was recorded. Absent if there was no session. */
  readonly recorded?: boolean;
  /** The hand-offs in which a person had control of the call's session while the call was running. */
  readonly handoffs?: readonly HandoffRow[];
  /** Only for a call that a person approved: `{jobId, digest, preparedAt, approval}`. */
  readonly action?: JsonObject;
  /** Only for a call that concerns an end user: `{providerId, subjectDigest}`. */
  readonly endUser?: JsonObject;
  /** Only for an HTTP call. */
  readonly upstream?: { readonly host?: string; readonly status?: number };
}

/** Returns the payload of a receipt: registered JWT claims, and the facts in the claim `berth`. */
export function receiptPayload(row: InvocationRow, facts: ReceiptFacts): Buffer {
  const { receiptId, issuer, endedAt, status, outputDigest, errorCode, meters, captured } = facts;
  const { recorded, upstream, action, endUser, handoffs = [] } = facts;
  const berth = {
    v: 1,
    operation: {
      ...{ id: row.operationId, revision: row.operationRevision, digest: row.operationDigest, effect: row.effect },
    },
    inputDigest: row.inputDigest,
    outputDigest,
    status,
    error: errorCode === undefined ? undefined : { code: errorCode },
    createdAt: row.createdAt.toISOString(),
    startedAt: row.startedAt?.toISOString(),
    endedAt: endedAt.toISOString(),
    attempts: row.attempts,
    caller: { kind: 'agent_key', id: row.keyId },
    endUser,
    action,
    session:
      row.sessionId === undefined
        ? undefined
        : { id: row.sessionId, recorded: recorded ?? false, handoffs: handoffs.flatMap(controlIn) },
    upstream,
    cost: { reserved: row.reserved, captured, unit: 'microcredit', meters },
  };
  const claims = {
    ...{ iss: issuer, aud: row.applicationId, sub: `invocation:${row.id}`, jti: receiptId },
    iat: Math.floor(endedAt.getTime() / 1000),
    berth,
  };
  return Buffer.from(canonicalJson(claims));
}

/** Returns who had control, and when. Omits the request to the person and the person's reply. */
function controlIn(row: HandoffRow): JsonObject[] {
  const { id, origin, record, holderKind, holderId, claimedAt, controlUntil, endedAt } = row;
  if (!claimedAt || !holderKind) return [];
  const until = controlUntil && controlUntil >= claimedAt ? controlUntil : endedAt;
  return [
    {
      ...{ id, origin, by: { kind: holderKind, ...(holderId === undefined ? {} : { id: holderId }) } },
      ...{ masked: record !== 'keep', from: claimedAt.toISOString() },
      ...(until ? { to: until.toISOString() } : {}),
    },
  ];
}
