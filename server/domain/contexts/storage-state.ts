// Converts cookies between Chromium's format, which is stored, and Playwright's, which the API uses. Pure.
import type { StorageState } from '../../../contract/contexts.ts';
import type { CookieList } from '../../engines/profiles/profiles.ts';

type StateCookie = StorageState['cookies'][number];

export const exportedCookies = (cookies: CookieList): StateCookie[] =>
  cookies.map(cookie => ({
    name: textOf(cookie.name),
    value: textOf(cookie.value),
    domain: textOf(cookie.domain),
    path: textOf(cookie.path),
    expires: cookie.session === true || typeof cookie.expires !== 'number' ? -1 : cookie.expires,
    httpOnly: cookie.httpOnly === true,
    secure: cookie.secure === true,
    sameSite: cookie.sameSite === 'Strict' || cookie.sameSite === 'None' ? cookie.sameSite : 'Lax',
    ...partitionOf(cookie.partitionKey),
  }));

export const importedCookies = (cookies: readonly StateCookie[]): CookieList =>
  cookies.map(({ expires, partitionKey, ...cookie }) => ({
    ...cookie,
    ...(expires < 0 ? { session: true, expires: -1 } : { session: false, expires }),
    ...(partitionKey === undefined
      ? {}
      : { partitionKey: { topLevelSite: partitionKey, hasCrossSiteAncestor: false } }),
  }));

function partitionOf(key: unknown): { partitionKey?: string } {
  if (typeof key !== 'object' || key === null || !('topLevelSite' in key)) return {};
  return { partitionKey: textOf(key.topLevelSite) };
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
