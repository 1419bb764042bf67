// Verifies a receipt with WebCrypto, by the same rules as verify-receipt.ts.
import {
  type Question,
  type QuestionAnswer,
  type ReceiptClaims,
  receiptRules,
  type VerifyReceiptOptions,
} from './receipt-rules.ts';

export { type KeySet, type ReceiptClaims, ReceiptInvalid, type VerifyReceiptOptions } from './receipt-rules.ts';

type Subtle = typeof globalThis.crypto.subtle;

/** This browser cannot say whether a receipt is valid. The message says why. */
export class CannotVerify extends Error {
  override readonly name = 'CannotVerify';
}

/** Returns what the receipt says. @throws ReceiptInvalid @throws CannotVerify */
export async function verifyReceiptInBrowser(receipt: string, options: VerifyReceiptOptions): Promise<ReceiptClaims> {
  // Browsers offer it to pages over HTTPS and of this machine only.
  const subtle: Subtle | undefined = globalThis.crypto?.subtle;
  if (!subtle) throw new CannotVerify('browsers verify signatures only in pages over HTTPS or of this machine');
  const rules = receiptRules(receipt, options);
  let step = rules.next();
  while (!step.done) step = rules.next(await answerTo(subtle, step.value));
  return step.value;
}

async function answerTo(subtle: Subtle, question: Question): Promise<QuestionAnswer> {
  if ('digest' in question) return new Uint8Array(await subtle.digest('SHA-256', question.digest));
  const { signed, signature, key } = question;
  try {
    const imported = await subtle.importKey('jwk', { ...key }, { name: 'Ed25519' }, false, ['verify']);
    return await subtle.verify({ name: 'Ed25519' }, imported, signature, signed);
  } catch (error) {
    throw new CannotVerify(`this browser cannot verify Ed25519 signatures (${String(error).slice(0, 100)})`);
  }
}
