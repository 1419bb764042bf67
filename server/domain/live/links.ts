// Tokens in live view addresses. A token contains the right, the session, the page and the expiry. Tokens are not
// stored: revoking increments the session's epoch, and tokens of earlier epochs are refused.
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../../kit/clock.ts';
import { parseJson } from '../../kit/foreign.ts';
import { type HandoffId, isUuid, type KeyId, type SessionId } from '../../kit/ids.ts';
import type { Secret } from '../../kit/secret.ts';
import { fault } from '../faults.ts';

export type LiveRight = 'view' | 'control';

export interface LinkClaims {
  readonly session: SessionId;
  readonly right: LiveRight;
  /** A CDP target id. If absent, the token is for every page. */
  readonly page?: string;
  readonly expiresAt: Date;
  readonly epoch: number;
  /** The agent key that the address was issued to. Absent if it was issued to a person. */
  readonly keyId?: KeyId;
  /** If set, the address works only while this hand-off has control with this fence. */
  readonly lease?: { readonly handoffId: HandoffId; readonly fence: number };
}

const NO_KEY = '';
const TOKEN_PATTERN = /^lv_([\w-]{1,512})\.([\w-]{43})$/;

export class LiveLinks {
  readonly #secret: Secret;
  readonly #clock: Clock;

  constructor(secret: Secret, clock: Clock) {
    this.#secret = secret;
    this.#clock = clock;
  }

  tokenOf({ session, right, page = '', expiresAt, epoch, keyId, lease }: LinkClaims): string {
    const leaseClaims = lease ? [lease.handoffId, lease.fence] : [];
    const claims = JSON.stringify([
      session,
      right,
      page,
      Math.ceil(expiresAt.getTime() / 1000),
      epoch,
      keyId ?? NO_KEY,
      ...leaseClaims,
    ]);
    const body = Buffer.from(claims).toString('base64url');
    return `lv_${body}.${this.#sign(body)}`;
  }

  /**
   * Throws 403 if the token was altered, has expired, or belongs to another session. Does not check whether the token
   * was revoked; the caller must do so.
   */
  read(token: string, session: string): LinkClaims {
    const claims = this.readSigned(token, session);
    if (claims.expiresAt <= this.#clock.now()) throw linkExpired('has expired');
    return claims;
  }

  /** Like `read`, but accepts expired tokens. */
  readSigned(token: string, session: string): LinkClaims {
    const [, body, signature] = TOKEN_PATTERN.exec(token) ?? [];
    if (!body || !signature || !this.#isSigned(body, signature)) throw invalidLink();
    const claims = claimsOf(parseJson(Buffer.from(body, 'base64url')));
    if (!claims || claims.session !== session) throw invalidLink();
    return claims;
  }

  #sign(body: string): string {
    return createHmac('sha256', this.#secret.reveal()).update(`live:${body}`).digest('base64url');
  }

  #isSigned(body: string, signature: string): boolean {
    return timingSafeEqual(Buffer.from(this.#sign(body)), Buffer.from(signature));
  }
}

/**
 * Returns the claims in the token. Undefined if they do not have the current format: the content is authentic, so
 * another version of Berth wrote it.
 */
function claimsOf(value: unknown): LinkClaims | undefined {
  const [session, right, page, expires, epoch, keyId, handoffId, fence]: unknown[] = Array.isArray(value) ? value : [];
  if (typeof session !== 'string' || !isUuid(session) || (right !== 'view' && right !== 'control')) return undefined;
  if (typeof page !== 'string' || typeof expires !== 'number' || typeof epoch !== 'number') return undefined;
  if (typeof keyId !== 'string' || !(keyId === NO_KEY || isUuid(keyId))) return undefined;
  if (handoffId !== undefined && (typeof handoffId !== 'string' || typeof fence !== 'number')) return undefined;
  const lease = { handoffId: handoffId as HandoffId, fence: Number(fence) };
  return {
    ...{ session: session as SessionId, right, expiresAt: new Date(1000 * expires), epoch },
    ...(keyId === NO_KEY ? {} : { keyId: keyId as KeyId }),
    ...(handoffId === undefined ? {} : { lease }),
    ...(page === '' ? {} : { page }),
  };
}

const NEW_ADDRESS_ADVICE = 'Call GET /v1/browsers/sessions/{id}/debug to get new addresses.';
const invalidLink = () =>
  fault('signed_url_invalid', 'The token of this live view address is not valid.', { advice: NEW_ADDRESS_ADVICE });
/** The address is valid, but does not allow this request. */
export const linkInsufficient = () =>
  fault('signed_url_invalid', 'This live view address does not allow the request.', {
    advice: 'Use an address that grants control of the session.',
  });
export const linkExpired = (reason: string) =>
  fault('signed_url_expired', `This live view address ${reason}.`, { advice: NEW_ADDRESS_ADVICE });
