// The cookie of a signed-in person: its name and attributes, and which requests may use it. Other sites can make a
// browser send requests with the cookie, so a request that changes something must come from a page of this service.
import type { IncomingHttpHeaders } from 'node:http';
import { fault } from '../../domain/faults.ts';
import { isLoopback } from '../../kit/loopback.ts';

export interface SignInCookie {
  /** Returns the cookie's value in these headers. */
  read(headers: IncomingHttpHeaders): string | undefined;
  /** Returns the Set-Cookie header. If `value` is undefined, the header removes the cookie. */
  write(value: string | undefined, maxAgeSeconds: number): string;
  /** @throws Fault `cross_site_request` if a request that changes something was not sent by a page of this service. */
  assertOwnPage(method: string, headers: IncomingHttpHeaders): void;
  /**
   * @throws Fault `cross_site_request` if the browser reports that another site sent the request, even if there is no
   * `Origin`.
   */
  assertNotCrossSite(headers: IncomingHttpHeaders): void;
  /**
   * @throws Fault `origin_not_allowed` if a page of another origin sent the request, whatever credential the request
   * has.
   */
  assertOwnOrigin(headers: IncomingHttpHeaders): void;
  /** Whether this service serves the pages of this origin. */
  isOwnOrigin(origin: string): boolean;
  /** The origin of the page that sent the request, or the public origin of this service. */
  originOf(headers: IncomingHttpHeaders): URL;
}

const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * The prefix `__Host-` of the name prevents other hosts of the domain from setting the cookie. Browsers support the
 * prefix only over https.
 */
export function signInCookie(publicUrl: string): SignInCookie {
  const ownUrl = new URL(publicUrl);
  const isSecure = ownUrl.protocol === 'https:';
  const name = isSecure ? '__Host-berth' : 'berth';
  const attributes = `Path=/; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`;
  const isOwn = (origin: string | undefined): boolean => {
    if (origin === ownUrl.origin) return true;
    // A service on loopback has several names: 127.0.0.1, ::1 and localhost.
    if (origin === undefined || !isLoopback(ownUrl.hostname) || !URL.canParse(origin)) return false;
    const { protocol, hostname, port } = new URL(origin);
    return protocol === ownUrl.protocol && port === ownUrl.port && isLoopback(hostname);
  };
  return {
    read: ({ cookie = '' }) => {
      const pair = cookie.split(/; */).find(text => text.startsWith(`${name}=`));
      return pair?.slice(name.length + 1);
    },
    write: (value, maxAgeSeconds) =>
      `${name}=${value ?? ''}; ${attributes}; Max-Age=${value === undefined ? 0 : maxAgeSeconds}`,
    assertOwnPage: (method, headers) => {
      if (SAFE_METHODS.has(method)) return;
      if (isCrossSite(headers) || !isOwn(headers.origin)) throw crossSiteFault(ownUrl.origin);
    },
    assertNotCrossSite: headers => {
      if (isCrossSite(headers)) throw crossSiteFault(ownUrl.origin);
    },
    assertOwnOrigin: ({ origin }) => {
      if (origin === undefined || isOwn(origin)) return;
      throw fault('origin_not_allowed', `This request was sent by a page whose origin is not ${ownUrl.origin}.`, {
        advice: `Use the page at ${ownUrl.origin} instead.`,
      });
    },
    isOwnOrigin: isOwn,
    originOf: ({ origin }) => (origin !== undefined && isOwn(origin) ? new URL(origin) : ownUrl),
  };
}

const isCrossSite = (headers: IncomingHttpHeaders): boolean => headers['sec-fetch-site'] === 'cross-site';

const crossSiteFault = (ownOrigin: string): Error =>
  fault('cross_site_request', `This request must be sent by a page at ${ownOrigin}.`, {
    advice: `Open the page at ${ownOrigin}. In a program, use a token instead.`,
  });
