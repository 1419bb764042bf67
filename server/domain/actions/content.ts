// The content of an Action, which is what a person approves, and the digests that identify it. Has no side effects.
import { ACTION_TYPE, type ActionContent, type EndUser } from '../../../contract/actions.ts';
import { digestOf } from '../../kit/canonical-json.ts';
import type { JsonObject } from '../../kit/json.ts';
import type { Secret } from '../../kit/secret.ts';
import { requestDigest } from '../idempotency/request-digest.ts';

export interface ContentParts {
  readonly jobId: string;
  readonly applicationId: string;
  readonly operation: { readonly id: string; readonly revision: number; readonly digest: string };
  readonly input: JsonObject;
  readonly endUser: EndUser | undefined;
  readonly maxCost: number;
  readonly notBefore: Date | undefined;
  readonly expiresAt: Date;
  readonly nonce: string;
}

export function contentOf({ operation, endUser, notBefore, ...parts }: ContentParts): ActionContent {
  const { jobId, applicationId, input, maxCost, expiresAt, nonce } = parts;
  return {
    ...{ typ: ACTION_TYPE, jobId, applicationId },
    ...{ operationId: operation.id, operationRevision: operation.revision, operationDigest: operation.digest },
    input,
    ...(endUser ? { endUser: { providerId: endUser.providerId, subject: endUser.subject } } : {}),
    bounds: {
      maxCost,
      ...(notBefore ? { notBefore: notBefore.toISOString() } : {}),
      ...{ expiresAt: expiresAt.toISOString(), executions: 1 },
    },
    nonce,
  };
}

export const digestOfContent = (content: ActionContent): string => digestOf(content);

/**
 * Returns a digest that is the same for Actions with the same operation, input and end user. The bounds on time and
 * cost are not included.
 */
export const likenessDigestOf = (
  secret: Secret,
  { applicationId, operation, input, endUser }: Pick<ContentParts, 'applicationId' | 'operation' | 'input' | 'endUser'>,
): Buffer => requestDigest(secret, { likeness: [applicationId, operation.id, input, endUser ?? null] });

/** Returns the bytes of the digest. A passkey signs these bytes. */
export const bytesOfDigest = (digest: string): Buffer => Buffer.from(digest.slice('sha256:'.length), 'hex');
