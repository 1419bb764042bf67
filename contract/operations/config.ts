// How the service describes itself to clients.
import { AuthorizationServer, ConfigQuery, IfNoneMatchHeader, ServiceConfig } from '../config.ts';
import type { Operation } from '../operation.ts';
import { ANY_ORIGIN_HEADERS } from './shared.ts';

const PUBLIC = { tag: 'Service', method: 'GET', credential: 'public', isWrite: false, mount: 'native' } as const;
const HEADERS = { ETag: 'Version of this content. Send it as `If-None-Match`.', ...ANY_ORIGIN_HEADERS } as const;
const NOT_MODIFIED_RESPONSE = { description: 'The version that you have is current.', headers: HEADERS } as const;

export const CONFIG_OPERATIONS = {
  readConfig: {
    ...PUBLIC,
    path: '/v1/config',
    summary: 'Read the configuration',
    description:
      'Returns where people sign in and where devices are authorized. The response may be cached for a minute.',
    query: ConfigQuery,
    headers: IfNoneMatchHeader,
    responses: {
      200: { description: 'The configuration.', schema: ServiceConfig, headers: HEADERS },
      304: NOT_MODIFIED_RESPONSE,
    },
    errors: [],
  },
  readAuthorizationServer: {
    ...PUBLIC,
    path: '/.well-known/oauth-authorization-server',
    summary: 'Read the authorization server metadata',
    description:
      'Returns the same configuration as OAuth authorization server metadata (RFC 8414). The response may be cached for a minute.',
    headers: IfNoneMatchHeader,
    responses: {
      200: { description: 'The metadata.', schema: AuthorizationServer, headers: HEADERS },
      304: NOT_MODIFIED_RESPONSE,
    },
    errors: [],
  },
} as const satisfies Readonly<Record<string, Operation>>;
