// The stored record of a decision: who decided, how and when, and the signature of the passkey with its public key. The
// record is written once.
import type { ApproverKind, Decision } from '../../../contract/actions.ts';
import type { Acr } from '../../../contract/sign-in.ts';
import type { PasskeyJwk } from '../../engines/authenticators/public-jwk.ts';
import type { JsonObject } from '../../kit/json.ts';

/** The signature of a passkey. All members are base64url strings, as the browser sent them. */
export interface ApprovalProof {
  readonly credentialId: string;
  readonly clientDataJSON: string;
  readonly authenticatorData: string;
  readonly signature: string;
}

export interface DecisionRecord {
  readonly by: { readonly kind: ApproverKind; readonly id: string };
  readonly method: Decision['method'];
  readonly acr: Acr;
  readonly authTime: string;
  readonly at: string;
  readonly message?: string;
  readonly proof?: ApprovalProof;
  readonly publicKey?: PasskeyJwk;
  readonly rpId?: string;
}

/** Returns the record as JSON. Each of its members is a string, or an object that contains only strings. */
export const storedDecision = (record: DecisionRecord): JsonObject => ({ ...record }) as unknown as JsonObject;

/** Reads an object that was written by `storedDecision`. */
const decisionIn = (storedRecord: JsonObject) => storedRecord as unknown as DecisionRecord;

export function decisionView(storedRecord: JsonObject): Decision {
  const { by, method, acr, authTime, at, message } = decisionIn(storedRecord);
  return { by, method, acr, authTime, at, ...(message === undefined ? {} : { message }) };
}

/** Returns the part of a receipt that describes the approval. It does not contain the message of the approver. */
export function receiptApproval(storedRecord: JsonObject): JsonObject {
  const { message: _, ...approval } = storedRecord;
  return approval;
}
