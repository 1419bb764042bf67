// Quotes for packs of credit. The id of a quote contains a signature over the packs and prices that the caller has
// seen.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { digestOf } from '../../kit/canonical-json.ts';
import type { Pack } from '../../kit/credit-packs.ts';
import type { Secret } from '../../kit/secret.ts';

const SIGNATURE_BYTES = 24;

/** Creates the id of a quote for these packs and this application, valid until this time. */
export function quoteIdOf(secret: Secret, application: string, packs: readonly Pack[], validUntil: Date): string {
  const untilText = validUntil.getTime().toString(36);
  return `${untilText}.${signatureOf(secret, application, packs, untilText).toString('base64url')}`;
}

/** Whether the quote is for these packs and this application, and has not expired. */
export function isQuoteValid(
  secret: Secret,
  application: string,
  packs: readonly Pack[],
  quoteId: string,
  now: Date,
): boolean {
  const [untilText = '', signatureText = ''] = quoteId.split('.');
  const presentedSignature = Buffer.from(signatureText, 'base64url');
  const expectedSignature = signatureOf(secret, application, packs, untilText);
  const isGenuine =
    presentedSignature.length === expectedSignature.length && timingSafeEqual(presentedSignature, expectedSignature);
  return isGenuine && Number.parseInt(untilText, 36) > now.getTime();
}

const signatureOf = (secret: Secret, application: string, packs: readonly Pack[], untilText: string): Buffer =>
  createHmac('sha256', secret.reveal())
    .update(['credit quote', application, untilText, digestOf(packs)].join('\n'))
    .digest()
    .subarray(0, SIGNATURE_BYTES);
