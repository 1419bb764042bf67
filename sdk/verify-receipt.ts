// Verifies a receipt without the network and without the service that issued it. A receipt does not authorize anything,
// and does not show whether a later receipt amends it. `GET /v1/receipts/{jti}/status` shows that.
import { createHash, createPublicKey, verify } from 'node:crypto';
import {
  type Question,
  type QuestionAnswer,
  type ReceiptClaims,
  receiptRules,
  type VerifyReceiptOptions,
} from './receipt-rules.ts';

export {
  type KeySet,
  type ReceiptClaims,
  type ReceiptHandoff,
  ReceiptInvalid,
  type VerifyReceiptOptions,
} from './receipt-rules.ts';

/**
 * Returns the claims of the receipt.
 * @throws ReceiptInvalid
 */
export function verifyReceipt(receipt: string, options: VerifyReceiptOptions): ReceiptClaims {
  const rules = receiptRules(receipt, options);
  let step = rules.next();
  while (!step.done) step = rules.next(answerTo(step.value));
  return step.value;
}

function answerTo(question: Question): QuestionAnswer {
  if ('digest' in question) return createHash('sha256').update(question.digest).digest();
  const { signedBytes, signature, key } = question;
  // Ed25519 and ML-DSA hash the data themselves, so `verify` gets no digest name for them.
  const digestAlgorithm = key.kty === 'EC' || key.kty === 'RSA' ? 'sha256' : null;
  try {
    return verify(digestAlgorithm, signedBytes, createPublicKey({ key: { ...key }, format: 'jwk' }), signature);
  } catch {
    return false; // The key is not valid.
  }
}
