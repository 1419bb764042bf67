// The signing key in a session's connect address. The key is derived from the session, the agent key that it is issued
// to and the server's secret, so that it can be issued again without being stored. It is valid as long as the session
// and the agent key are valid.
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { KeyId, SessionId } from '../../kit/ids.ts';
import { Secret } from '../../kit/secret.ts';
import type { AgentCaller } from '../identity/caller.ts';
import type { ConnectFields } from './session.ts';

export const CONNECT_SCOPE = 'browsers:connect';
const SIGNING_KEY_PREFIX = 'k_';
/** `k_`, the agent key's id without its dashes, and 43 characters of signature. */
const SIGNING_KEY_PATTERN = /^k_([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})[\w-]{43}$/;

export class Signing {
  readonly #secret: Secret;
  readonly #publicUrl: string;

  constructor(secret: Secret, publicUrl: string) {
    this.#secret = secret;
    this.#publicUrl = publicUrl;
  }

  keyOf(id: SessionId, agentKeyId: KeyId): string {
    const signature = createHmac('sha256', this.#secret.reveal()).update(`connect:${id}:${agentKeyId}`);
    return `${SIGNING_KEY_PREFIX}${agentKeyId.replaceAll('-', '')}${signature.digest('base64url')}`;
  }

  /** The pass with which the service itself connects to an exclusive session. Never sent in a response. */
  passOf(id: SessionId): Secret {
    return new Secret(createHmac('sha256', this.#secret.reveal()).update(`pass:${id}`).digest('base64url'));
  }

  isPass(id: SessionId, pass: string): boolean {
    const expectedBytes = Buffer.from(this.passOf(id).reveal());
    const passBytes = Buffer.from(pass);
    return passBytes.length === expectedBytes.length && timingSafeEqual(passBytes, expectedBytes);
  }

  /** The agent key that the signing key was issued to. Undefined if `key` is not a signing key of this session. */
  agentKeyIdOf(id: SessionId, key: string): KeyId | undefined {
    const [, ...parts] = SIGNING_KEY_PATTERN.exec(key) ?? [];
    if (parts.length === 0) return undefined;
    const agentKeyId = parts.join('-') as KeyId; // Not verified yet. The key is compared below.
    const expectedBytes = Buffer.from(this.keyOf(id, agentKeyId));
    const keyBytes = Buffer.from(key);
    return keyBytes.length === expectedBytes.length && timingSafeEqual(keyBytes, expectedBytes)
      ? agentKeyId
      : undefined;
  }

  /** The connect fields. Undefined if this caller may not connect. */
  fieldsFor({ scopes, keyId }: AgentCaller, id: SessionId): ConnectFields | undefined {
    return scopes.has(CONNECT_SCOPE) ? this.fieldsOf(id, keyId) : undefined;
  }

  fieldsOf(id: SessionId, agentKeyId: KeyId): ConnectFields {
    const signingKey = this.keyOf(id, agentKeyId);
    return {
      connectUrl: `${this.webSocketUrlOf(id)}?signingKey=${signingKey}`,
      seleniumRemoteUrl: `${this.#publicUrl}/v1/browsers/webdriver`,
      signingKey,
    };
  }

  webSocketUrlOf(id: SessionId): string {
    return `${this.#publicUrl.replace(/^http/, 'ws')}/v1/browsers/sessions/${id}/connect`;
  }
}
