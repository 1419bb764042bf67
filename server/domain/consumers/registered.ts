// Validates the origins and redirect URIs that an application registers.

import type { Issue } from '../../../contract/common.ts';
import { isLoopback } from '../../kit/loopback.ts';

/**
 * Whether the host contains only plain characters. URLs allow other characters, but in the content security policy of a
 * page, `*` matches other hosts and `;` begins another directive.
 */
const hasPlainHost = ({ hostname }: URL): boolean => /^(?:[a-z0-9._-]+|\[[0-9a-f:]+\])$/.test(hostname);

const isSafeUrl = (url: URL): boolean =>
  hasPlainHost(url) && (url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname)));

export function isOrigin(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && isSafeUrl(url) && url.origin === text;
}

const NOT_AN_ORIGIN =
  'is not an origin such as https://shop.example (http only for loopback addresses); list each host in letters, digits, dots and hyphens, without *';

/** Returns the issues of the origins and redirect URIs. Empty if all are valid. */
export function registrationIssues({
  origins,
  redirectUris,
}: Readonly<Record<'origins' | 'redirectUris', readonly string[]>>): Issue[] {
  return [
    ...origins.flatMap((text, at) => (isOrigin(text) ? [] : [{ path: `origins[${at}]`, message: NOT_AN_ORIGIN }])),
    ...redirectUris.flatMap((text, at) => {
      const url = URL.parse(text);
      const isClean = url && isSafeUrl(url) && !url.username && !url.password && !text.includes('#');
      if (isClean && !/[\s\p{Cc}\\]/u.test(text)) return [];
      const message =
        'must be an https URL with a plain host name, and without a user name, password or fragment (http only for loopback addresses)';
      return [{ path: `redirectUris[${at}]`, message }];
    }),
  ];
}

/**
 * Whether the address is registered. Addresses are compared byte for byte, except that the port of a loopback address
 * may differ, because native applications use any free port (RFC 8252).
 */
export const isRegistered = (uri: string, registeredUris: readonly string[]): boolean =>
  registeredUris.includes(uri) ||
  registeredUris.some(one => isOnLoopback(one) && isOnLoopback(uri) && withoutPort(one) === withoutPort(uri));

const LOOPBACK_PATTERN = /^http:\/\/(?:127\.0\.0\.1|\[::1\]|localhost)(?::\d{1,5})?(?=[/?]|$)/;

const isOnLoopback = (address: string): boolean => LOOPBACK_PATTERN.test(address) && !/[\s\p{Cc}\\#@]/u.test(address);

const withoutPort = (address: string): string => address.replace(/^(http:\/\/(?:\[::1\]|[^/:?]+)):\d{1,5}/, '$1');
