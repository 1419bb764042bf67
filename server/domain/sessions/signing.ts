// The key in a session's connect address: derived from the id and the server's secret, so that it can be answered
// again without being stored. It is dead when the session is.
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { SessionId } from '../../kit/ids.ts';
import type { Secret } from '../../kit/secret.ts';
import type { ConnectFields } from './session.ts';

const PREFIX = 'k_';

export class Signing {
  readonly #secret: Secret;
  readonly #publicUrl: string;

  constructor(secret: Secret, publicUrl: string) {
    this.#secret = secret;
    this.#publicUrl = publicUrl;
  }

  keyOf(id: SessionId): string {
    return PREFIX + createHmac('sha256', this.#secret.reveal()).update(`connect:${id}`).digest('base64url');
  }

  verify(id: SessionId, key: string): boolean {
    const expected = Buffer.from(this.keyOf(id));
    const given = Buffer.from(key);
    return given.length === expected.length && timingSafeEqual(given, expected);
  }

  fieldsOf(id: SessionId): ConnectFields {
    const signingKey = this.keyOf(id);
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
