// Verifies a receipt with WebCrypto, with the same rules as verify-receipt.ts.
import { rawEcdsaSignature } from './approval-rules.ts';
import {
  type Question,
  type QuestionAnswer,
  type ReceiptClaims,
  receiptRules,
  type VerifyReceiptOptions,
} from './receipt-rules.ts';

export { type KeySet, type ReceiptClaims, ReceiptInvalid, type VerifyReceiptOptions } from './receipt-rules.ts';

type SignatureKey = Extract<Question, { readonly key: object }>['key'];
type Subtle = typeof globalThis.crypto.subtle;

/** Thrown if this browser cannot verify a receipt. The message says why. */
export class CannotVerify extends Error {
  override readonly name = 'CannotVerify';
}

/**
 * Returns the claims of the receipt.
 * @throws ReceiptInvalid
 * @throws CannotVerify
 */
export async function verifyReceiptInBrowser(receipt: string, options: VerifyReceiptOptions): Promise<ReceiptClaims> {
  // Browsers provide `subtle` only to pages over HTTPS or from this machine.
  const subtle: Subtle | undefined = globalThis.crypto?.subtle;
  if (!subtle)
    throw new CannotVerify('browsers verify signatures only on pages that are served over HTTPS or from localhost');
  const rules = receiptRules(receipt, options);
  let step = rules.next();
  while (!step.done) step = rules.next(await answerTo(subtle, step.value));
  return step.value;
}

async function answerTo(subtle: Subtle, question: Question): Promise<QuestionAnswer> {
  if ('digest' in question) return new Uint8Array(await subtle.digest('SHA-256', question.digest));
  const { signedBytes, signature, key } = question;
  try {
    const { importAlgorithm, verifyAlgorithm, bytes } = algorithmOf(key, signature);
    if (!bytes) return false;
    const importedKey = await subtle.importKey('jwk', { ...key }, importAlgorithm, false, ['verify']);
    return await subtle.verify(verifyAlgorithm, importedKey, bytes, signedBytes);
  } catch (error) {
    const name = key.kty === 'AKP' ? key.alg : key.kty === 'OKP' ? 'Ed25519' : key.kty;
    throw new CannotVerify(`this browser cannot verify ${name} signatures (${String(error).slice(0, 100)})`);
  }
}

/**
 * Returns the names that WebCrypto has for the algorithm of a key, and the signature in the form that WebCrypto
 * accepts.
 */
function algorithmOf(key: SignatureKey, signature: Uint8Array<ArrayBuffer>) {
  switch (key.kty) {
    case 'EC':
      return {
        importAlgorithm: { name: 'ECDSA', namedCurve: 'P-256' },
        verifyAlgorithm: { name: 'ECDSA', hash: 'SHA-256' },
        bytes: rawEcdsaSignature(signature),
      };
    case 'RSA':
      return {
        importAlgorithm: { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' },
        verifyAlgorithm: { name: 'RSASSA-PKCS1-v1_5' },
        bytes: signature,
      };
    case 'AKP':
      return { importAlgorithm: { name: key.alg }, verifyAlgorithm: { name: key.alg }, bytes: signature };
    default:
      return { importAlgorithm: { name: 'Ed25519' }, verifyAlgorithm: { name: 'Ed25519' }, bytes: signature };
  }
}
