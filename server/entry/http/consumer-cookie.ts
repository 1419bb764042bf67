// The cookie of a consumer who signed in on a page of this service. Each application has its own cookie, because a
// person may be a consumer of several.
import type { IncomingHttpHeaders } from 'node:http';

export interface ConsumerCookie {
  /** Returns the value of the application's cookie in these headers. */
  read(headers: IncomingHttpHeaders, appId: string): string | undefined;
  /** Returns the Set-Cookie header. If `value` is undefined, the header removes the cookie. */
  write(appId: string, value: string | undefined, maxAgeSeconds: number): string;
}

export function consumerCookie(publicUrl: string): ConsumerCookie {
  const isSecure = new URL(publicUrl).protocol === 'https:';
  const attributes = `Path=/; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`;
  const cookieNameOf = (appId: string): string =>
    `${isSecure ? '__Host-' : ''}berth-consumer-${appId.toLowerCase().replaceAll('-', '')}`;
  return {
    read: ({ cookie = '' }, appId) => {
      const cookiePrefix = `${cookieNameOf(appId)}=`;
      return cookie
        .split(/; */)
        .find(text => text.startsWith(cookiePrefix))
        ?.slice(cookiePrefix.length);
    },
    write: (appId, value, maxAgeSeconds) =>
      `${cookieNameOf(appId)}=${value ?? ''}; ${attributes}; Max-Age=${value === undefined ? 0 : maxAgeSeconds}`,
  };
}
