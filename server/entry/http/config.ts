// HTTP handlers for the documents in which the service describes itself. Pages of any origin may read them.
import { createHash } from 'node:crypto';
import type { ServiceDocuments } from '../../domain/config/service-documents.ts';
import type { Identities } from '../../domain/consumers/identities.ts';
import type { HandlerInput } from './bind.ts';
import type { HttpResponse } from './http-response.ts';

const PUBLIC_HEADERS = {
  'cache-control': 'public, max-age=60',
  'access-control-allow-origin': '*',
  'access-control-expose-headers': 'etag',
  'cross-origin-resource-policy': 'cross-origin',
} as const;

export const configHandlers = (documents: ServiceDocuments, identities: Pick<Identities, 'publicDescription'>) => ({
  readConfig: async ({ headers, query }: HandlerInput<'readConfig'>): Promise<HttpResponse> => {
    const consumer =
      query.application === undefined ? undefined : await identities.publicDescription(query.application);
    return cacheableResponse({ ...documents.config(), ...(consumer ? { consumer } : {}) }, headers['if-none-match']);
  },

  readAuthorizationServer: async ({ headers }: HandlerInput<'readAuthorizationServer'>): Promise<HttpResponse> =>
    cacheableResponse(documents.authorizationServer(), headers['if-none-match']),
});

/** Returns a response with an ETag. Pages of any origin may read it. */
export const cacheableResponse = (body: object, ifNoneMatch: string | undefined): HttpResponse =>
  conditionalResponse(body, ifNoneMatch, PUBLIC_HEADERS);

/** A response with an ETag of the content, or 304 if the caller already has the content. */
export function conditionalResponse(
  body: object,
  ifNoneMatch: string | undefined,
  extraHeaders: Readonly<Record<string, string>>,
): HttpResponse {
  const etag = `"${createHash('sha256').update(JSON.stringify(body)).digest('base64url').slice(0, 22)}"`;
  const headers = { ...extraHeaders, etag };
  const isCurrent = ifNoneMatch?.split(',').some(one => ['*', etag, `W/${etag}`].includes(one.trim()));
  return isCurrent ? { status: 304, headers } : { body, headers };
}
