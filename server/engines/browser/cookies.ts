// Cookies as Chromium gives them, and as it takes them back. Pure.

import { isObject, type JsonObject } from '../../kit/json.ts';
/** A cookie in the words of CDP (`Network.Cookie`), kept as it came. */
export type Cookie = JsonObject;

/** What `Storage.setCookies` knows; the rest of a cookie follows from these. */
const TAKEN = [
  'name',
  'value',
  'domain',
  'path',
  'secure',
  'httpOnly',
  'sameSite',
  'priority',
  'sourceScheme',
  'sourcePort',
  'partitionKey',
] as const;

export const cookiesIn = (answer: JsonObject): readonly Cookie[] =>
  Array.isArray(answer.cookies) ? answer.cookies.filter(isObject) : [];

/** A session cookie has no end. One whose partition has no name cannot be set by anybody. */
export function cookieToSet(cookie: Cookie): JsonObject | undefined {
  if (cookie.partitionKeyOpaque === true) return undefined;
  const taken = Object.fromEntries(TAKEN.flatMap(name => (cookie[name] === undefined ? [] : [[name, cookie[name]]])));
  const lasts = cookie.session !== true && typeof cookie.expires === 'number' && cookie.expires >= 0;
  return { ...taken, ...(lasts ? { expires: cookie.expires ?? -1 } : {}) };
}

export const isSessionCookie = (cookie: Cookie): boolean =>
  cookie.session === true || typeof cookie.expires !== 'number' || cookie.expires < 0;
