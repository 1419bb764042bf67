// Converts cookies between the format that Chromium returns and the format that it accepts.

import { isObject, type JsonObject } from '../../kit/json.ts';
/** An unchanged CDP `Network.Cookie`. */
export type Cookie = JsonObject;

/** The fields that `Storage.setCookies` accepts. The other fields of a cookie are derived from them. */
const SETTABLE_FIELDS = [
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

export const cookiesIn = (response: JsonObject): readonly Cookie[] =>
  Array.isArray(response.cookies) ? response.cookies.filter(isObject) : [];

/**
 * Returns the settable fields of a cookie. A session cookie has no expiry. Returns undefined for a cookie with an
 * opaque partition key, which cannot be set.
 */
export function cookieToSet(cookie: Cookie): JsonObject | undefined {
  if (cookie.partitionKeyOpaque === true) return undefined;
  const settableFields = Object.fromEntries(
    SETTABLE_FIELDS.flatMap(name => (cookie[name] === undefined ? [] : [[name, cookie[name]]])),
  );
  const isPersistent = cookie.session !== true && typeof cookie.expires === 'number' && cookie.expires >= 0;
  return { ...settableFields, ...(isPersistent ? { expires: cookie.expires ?? -1 } : {}) };
}
