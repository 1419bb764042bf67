// Tokens with which hosts of a fleet pass requests to each other. Each token is for one host, method and path, and is
// valid for a few seconds. Tokens are made with the secret that the hosts share. They do not replace the credential of
// the request, which is also passed on.
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../../kit/clock.ts';
import { parseJson } from '../../kit/foreign.ts';
import { type ForwardedFrom, noteForwarded } from '../../kit/forwarded.ts';
import { type HostId, isUuid } from '../../kit/ids.ts';
import type { Secret } from '../../kit/secret.ts';
import { fault } from '../faults.ts';

export const HOST_TOKEN_HEADER = 'x-berth-host-token';
/**
 * Validity of a token. It is longer than the clock skew between hosts: a host whose clock differs by more than five
 * seconds is refused when it starts.
 */
const TOKEN_LIFETIME_MS = 15_000;
const TOKEN_CHARACTERS_MAX = 8192;

export interface PassedRequest {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
}

export class HostTokens {
  readonly #secret: Secret;
  readonly #host: HostId;
  readonly #clock: Clock;

  constructor(secret: Secret, host: HostId, clock: Clock) {
    this.#secret = secret;
    this.#host = host;
    this.#clock = clock;
  }

  make(to: HostId, { method, path }: PassedRequest, { ip, address, port }: Omit<ForwardedFrom, 'host'>): string {
    const expiresAtMs = this.#clock.now().getTime() + TOKEN_LIFETIME_MS;
    const payload = JSON.stringify([this.#host, to, method, path, expiresAtMs, ip, address, port ?? null]);
    return `${Buffer.from(payload).toString('base64url')}.${this.#sign(payload)}`;
  }

  /**
   * Returns where the request came from.
   * @throws Fault `permission_denied` for a token that no host of this fleet made for this request.
   */
  read(token: string, { method, path }: PassedRequest): ForwardedFrom {
    const [encodedPayload = '', signature = '', ...extraParts] =
      token.length > TOKEN_CHARACTERS_MAX ? [] : token.split('.');
    const payload = Buffer.from(encodedPayload, 'base64url').toString();
    if (extraParts.length > 0 || !equalsInConstantTime(signature, this.#sign(payload)))
      throw tokenRefused('was not issued by this fleet');
    const claims = parseJson(payload);
    const [from, to, forMethod, forPath, expiresAtMs, ip, address, port]: unknown[] = Array.isArray(claims)
      ? claims
      : [];
    if (to !== this.#host) throw tokenRefused('is for another host');
    if (from === this.#host) throw tokenRefused('was issued by this host, so the request was forwarded in a loop');
    if (forMethod !== method || forPath !== path) throw tokenRefused('is for another request');
    if (!(Number(expiresAtMs) > this.#clock.now().getTime())) throw tokenRefused('has expired');
    if (typeof from !== 'string' || !isUuid(from)) throw tokenRefused('was not issued by this fleet');
    return {
      ...{ host: from, ip: String(ip), address: String(address) },
      ...(typeof port === 'number' ? { port } : {}),
    };
  }

  #sign(payload: string): string {
    return createHmac('sha256', this.#secret.reveal()).update(`host token:${payload}`).digest('base64url');
  }
}

/**
 * Records that another host passed the request on. A request without a token comes from a client. A request with an
 * invalid token is refused.
 */
export function acceptForwarded(
  tokens: HostTokens | undefined,
  request: Parameters<typeof noteForwarded>[0] & {
    readonly method?: string | undefined;
    readonly url?: string | undefined;
  },
): void {
  const token = request.headers[HOST_TOKEN_HEADER];
  if (token === undefined) return;
  if (!tokens || typeof token !== 'string')
    throw tokenRefused('is not expected by this host, which is not part of a fleet');
  noteForwarded(request, tokens.read(token, { method: request.method ?? '', path: request.url ?? '' }));
}

/** Hosts with the same secret have the same mark. The mark reveals nothing about the secret. */
export const secretMarkOf = (secret: Secret): string =>
  createHmac('sha256', secret.reveal()).update('fleet secret mark').digest('hex').slice(0, 32);

function equalsInConstantTime(actual: string, expected: string): boolean {
  const [one, other] = [Buffer.from(actual), Buffer.from(expected)];
  return one.length === other.length && timingSafeEqual(one, other);
}

const tokenRefused = (why: string): Error =>
  fault('permission_denied', `The token in ${HOST_TOKEN_HEADER} ${why}.`, {
    advice: 'Only hosts of a fleet may send this header. Remove the header from the request.',
  });
