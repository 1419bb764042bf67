// Where a credential may be used: hosts that it may be sent to, and web origins where it may be typed. Pure.
import type { Issue } from '../../../contract/common.ts';
import type { StoredCredentialType } from '../../../contract/stored-credentials.ts';

/**
 * Returns the host with its optional port, as normalized by the URL standard. The port is omitted if it is the default
 * port of https.
 */
export function hostIn(text: string): string | undefined {
  if (!/^[^\s/?#@\\]+$/.test(text) || text.includes('*')) return undefined;
  const url = URL.parse(`https://${text}`);
  return url && url.hostname !== '' && url.pathname === '/' ? url.host : undefined;
}

export function originIn(text: string): string | undefined {
  const url = URL.parse(text);
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:')) return undefined;
  return text === url.origin || text === `${url.origin}/` ? url.origin : undefined;
}

export function placeIssues(type: StoredCredentialType, hosts: readonly string[], origins: readonly string[]): Issue[] {
  const isLogin = type === 'login';
  return [
    ...(isLogin && origins.length === 0 ? [{ path: 'origins', message: 'is required for a login' }] : []),
    ...(!isLogin && hosts.length === 0 ? [{ path: 'hosts', message: `is required for the type ${type}` }] : []),
    ...(isLogin && hosts.length > 0
      ? [{ path: 'hosts', message: 'is not allowed for a login, which is only typed into pages' }]
      : []),
    ...hosts.flatMap((host, index) =>
      hostIn(host) === undefined
        ? [{ path: `hosts[${index}]`, message: 'is not a valid host; expected a host such as api.shop.example' }]
        : [],
    ),
    ...origins.flatMap((origin, index) =>
      originIn(origin) === undefined
        ? [
            {
              path: `origins[${index}]`,
              message: 'is not a valid origin; expected an origin such as https://bank.example',
            },
          ]
        : [],
    ),
  ];
}
