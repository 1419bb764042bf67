// Verifies a webhook message: that it comes from the service, is unchanged, and is recent. Implements scheme `v1a` of
// Standard Webhooks.
import { createPublicKey, type KeyObject, verify } from 'node:crypto';

export interface WebhookMessage {
  /** `webhook-id`: the same for every attempt. Store it, and ignore a message whose id you have already received. */
  readonly id: string;
  /** The type of the event, such as `session.ended`. */
  readonly type: string;
  /** When the event happened. ISO 8601. */
  readonly timestamp: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface VerifyWebhookOptions {
  /** How far in the past or in the future the time of a message may be. Default: 300. */
  readonly toleranceSeconds?: number;
  /** Default: the time of this machine. */
  readonly now?: Date;
}

/** The headers of a request, in the form of `fetch` or of Node. */
export type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

/** The message of the error states the problem. */
export class WebhookInvalid extends Error {
  override readonly name = 'WebhookInvalid';
}

const TOLERANCE_DEFAULT_SECONDS = 300;
const SIGNATURES_MAX = 10;
const KEY_BYTES = 32;

/**
 * `payload` is the body as it arrived, before it was parsed. `publicKey` is the `publicKey` of the webhook, or a list
 * that also contains the previous key.
 * @throws WebhookInvalid
 */
export function verifyWebhook(
  payload: string | Uint8Array,
  headers: WebhookHeaders,
  publicKey: string | readonly string[],
  { toleranceSeconds = TOLERANCE_DEFAULT_SECONDS, now = new Date() }: VerifyWebhookOptions = {},
): WebhookMessage {
  const [id, timestamp, signatures] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map(name =>
    headerOf(headers, name),
  );
  if (!id || !timestamp || !signatures)
    throw new WebhookInvalid('the header webhook-id, webhook-timestamp or webhook-signature is missing');
  if (!/^\d{1,12}$/.test(timestamp)) throw new WebhookInvalid('webhook-timestamp is not a number of seconds');
  const ageSeconds = now.getTime() / 1000 - Number(timestamp);
  if (Math.abs(ageSeconds) > toleranceSeconds)
    throw new WebhookInvalid('the timestamp of the message is too old or in the future');
  const body = typeof payload === 'string' ? Buffer.from(payload) : payload;
  const content = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), body]);
  const keys = (typeof publicKey === 'string' ? [publicKey] : publicKey).map(keyOf);
  if (!isSigned(content, signatures, keys))
    throw new WebhookInvalid('no signature is valid for this message and public key');
  return messageIn(id, Buffer.from(body).toString());
}

function isSigned(content: Uint8Array, signatures: string, keys: readonly KeyObject[]): boolean {
  return signatures
    .split(' ')
    .slice(0, SIGNATURES_MAX)
    .some(signature => {
      const [scheme, text = ''] = signature.split(',');
      return scheme === 'v1a' && keys.some(key => verify(null, content, key, Buffer.from(text, 'base64')));
    });
}

function keyOf(publicKey: string): KeyObject {
  const [, text = ''] = /^whpk_([A-Za-z0-9+/]+=*)$/.exec(publicKey) ?? [];
  const bytes = Buffer.from(text, 'base64');
  if (bytes.length !== KEY_BYTES)
    throw new WebhookInvalid('the public key is not whpk_ followed by 32 bytes in base64');
  return createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: bytes.toString('base64url') }, format: 'jwk' });
}

function headerOf(headers: WebhookHeaders, name: string): string | undefined {
  if (headers instanceof Headers) return headers.get(name) ?? undefined;
  const entry = Object.entries(headers).find(([key]) => key.toLowerCase() === name);
  return typeof entry?.[1] === 'string' ? entry[1] : undefined;
}

function messageIn(id: string, text: string): WebhookMessage {
  try {
    const value: unknown = JSON.parse(text);
    if (
      isJsonObject(value) &&
      typeof value.type === 'string' &&
      typeof value.timestamp === 'string' &&
      isJsonObject(value.data)
    )
      return { id, type: value.type, timestamp: value.timestamp, data: value.data };
  } catch {
    // The error is thrown below.
  }
  throw new WebhookInvalid('the body is not a webhook message');
}

const isJsonObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
