// The part of a receipt that describes the executed Action: the digest that was approved, who approved it and how, and
// the signature of the passkey with its public key.
import type { ActionRows } from '../../engines/store/rows/actions.ts';
import type { Consumers } from '../../engines/store/rows/consumers.ts';
import type { InvocationRow } from '../../engines/store/rows/invocations.ts';
import type { ActionId, ApplicationId } from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';
import type { Secret } from '../../kit/secret.ts';
import { receiptApproval } from './decision-record.ts';
import { subjectDigest } from './subject-digest.ts';

export interface ActionReceiptParts {
  readonly rows: Pick<ActionRows, 'get'>;
  readonly secret: Secret;
}

export async function actionReceipt(
  { rows, secret }: ActionReceiptParts,
  application: ApplicationId,
  id: ActionId,
): Promise<JsonObject> {
  const row = await rows.get(application, id);
  if (!row?.decision) throw new Error(`the Action ${id} of an invocation is missing or has no decision`);
  const { digest, createdAt, decision, providerId, subject } = row;
  return {
    ...{ jobId: id, digest, preparedAt: createdAt.toISOString(), approval: receiptApproval(decision) },
    ...(providerId === undefined || subject === undefined
      ? {}
      : { endUser: { providerId, subjectDigest: subjectDigest(secret, application, { providerId, subject }) } }),
  };
}

/**
 * Returns the part of a receipt that describes the end user whom the call names. Undefined if the call names no end
 * user, or if the end user has been deleted.
 */
export async function endUserReceipt(
  { rows, secret }: { readonly rows: Pick<Consumers, 'get'>; readonly secret: Secret },
  { applicationId, consumerId }: Pick<InvocationRow, 'applicationId' | 'consumerId'>,
): Promise<JsonObject | undefined> {
  const consumer = consumerId && (await rows.get(applicationId, consumerId));
  if (!consumer) return undefined;
  const { providerId } = consumer;
  return { providerId, subjectDigest: subjectDigest(secret, applicationId, consumer) };
}
