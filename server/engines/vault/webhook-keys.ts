// The keys that sign webhook messages, and the signatures in the format of Standard Webhooks (scheme `v1a`).
import { createPrivateKey, createPublicKey, generateKeyPairSync, sign } from 'node:crypto';
import { Secret } from '../../kit/secret.ts';

export interface NewWebhookKey {
  /** `whpk_`, followed by the key's 32 bytes in base64. */
  readonly publicKey: string;
  /** In PKCS #8 format, DER. */
  readonly privateKey: Secret<Buffer>;
}

export function newWebhookKey(): NewWebhookKey {
  const { privateKey } = generateKeyPairSync('ed25519');
  const { x = '' } = createPublicKey(privateKey).export({ format: 'jwk' });
  return {
    publicKey: `whpk_${Buffer.from(x, 'base64url').toString('base64')}`,
    privateKey: new Secret(privateKey.export({ format: 'der', type: 'pkcs8' })),
  };
}

/** Returns `v1a,`, followed by the signature of `id.timestamp.body` in base64. */
export function webhookSignature(privateKey: Secret<Buffer>, content: string): string {
  const key = createPrivateKey({ key: privateKey.reveal(), format: 'der', type: 'pkcs8' });
  return `v1a,${sign(null, Buffer.from(content), key).toString('base64')}`;
}
