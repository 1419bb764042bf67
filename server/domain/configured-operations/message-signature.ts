// HTTP Message Signatures (RFC 9421) for operations that are configured to sign their calls. Pure. Every signature
// covers the same components, so that a receiver can require all of them.
import { createHash } from 'node:crypto';

/** The components, in the order in which they are signed. */
const SIGNED_COMPONENTS = [
  '@method',
  '@target-uri',
  'content-digest',
  'date',
  'idempotency-key',
  'berth-invocation-id',
] as const;
/** Names the purpose of the signature, so that it cannot be mistaken for a signature with another purpose. */
const SIGNATURE_TAG = 'berth-operation';
const SIGNATURE_LABEL = 'berth';

/** Headers of a signed call, in lower case. Only the service sets these headers. */
export const SIGNATURE_HEADERS: ReadonlySet<string> = new Set([
  ...['content-digest', 'date', 'idempotency-key', 'berth-invocation-id', 'signature', 'signature-input'],
]);
export const IDEMPOTENCY_KEY_HEADER = 'idempotency-key';

/** Signs with Ed25519. `kid` is the id of the key in the published key set. */
export interface MessageSigner {
  readonly kid: string;
  sign(bytes: Uint8Array): Buffer;
}

export interface SignedMessage {
  readonly method: string;
  readonly url: string;
  readonly body?: Uint8Array;
  readonly invocationId: string;
}

/** Returns the headers to add. Without a body, `content-digest` is the digest of an empty body. */
export function signatureHeaders(message: SignedMessage, at: Date, signer: MessageSigner): Record<string, string> {
  const { method, url, body = Buffer.alloc(0), invocationId } = message;
  const digest = createHash('sha256').update(body).digest('base64');
  const addedHeaders = {
    'content-digest': `sha-256=:${digest}:`,
    date: at.toUTCString(),
    'idempotency-key': invocationId,
    'berth-invocation-id': invocationId,
  };
  const componentValues = { ...addedHeaders, '@method': method, '@target-uri': targetUri(url) };
  const createdSeconds = Math.floor(at.getTime() / 1000);
  const parameters = `(${SIGNED_COMPONENTS.map(name => `"${name}"`).join(' ')});created=${createdSeconds};keyid="${signer.kid}";alg="ed25519";tag="${SIGNATURE_TAG}"`;
  const signatureBase = [
    ...SIGNED_COMPONENTS.map(name => `"${name}": ${componentValues[name]}`),
    `"@signature-params": ${parameters}`,
  ].join('\n');
  return {
    ...addedHeaders,
    'signature-input': `${SIGNATURE_LABEL}=${parameters}`,
    signature: `${SIGNATURE_LABEL}=:${signer.sign(Buffer.from(signatureBase)).toString('base64')}:`,
  };
}

/** Returns the URL as the receiver sees it: without a fragment, the standard port, or the `?` of an empty query. */
function targetUri(text: string): string {
  const { origin, pathname, search } = new URL(text);
  return `${origin}${pathname}${search}`;
}
