// HTTP handlers for the documents in which the service describes itself. Pages of any origin may read them.
import { createHash } from 'node:crypto';
import type { ServiceDocuments } from '../../domain/config/service-documents.ts';
import type { Identities } from '../../domain/consumers/identities.ts';
import type { Answer } from './answer.ts';
import type { In } from './bind.ts';

const PUBLIC_HEADERS = {
  'cache-control': 'public, max-age=60',
  'access-control-allow-origin': '*',
  'access-control-expose-headers': 'etag',
  'cross-origin-resource-policy': 'cross-origin',
} as const;

export const configHandlers = (documents: ServiceDocuments, identities: Pick<Identities, 'offered'>) => ({
  readConfig: async ({ headers, query }: In<'readConfig'>): Promise<Answer> => {
    const consumer = query.application === undefined ? undefined : await identities.offered(query.application);
    return cached({ ...documents.config(), ...(consumer ? { consumer } : {}) }, headers['if-none-match']);
  },

  readAuthorizationServer: async ({ headers }: In<'readAuthorizationServer'>): Promise<Answer> =>
    cached(documents.authorizationServer(), headers['if-none-match']),
});

/** A response with an ETag, which pages of any origin may read. */
export const cached = (body: object, known: string | undefined): Answer => conditional(body, known, PUBLIC_HEADERS);

/** A response with an ETag of the content, or 304 if the caller already has the content. */
export function conditional(body: object, known: string | undefined, more: Readonly<Record<string, string>>): Answer {
  const etag = `"${createHash('sha256').update(JSON.stringify(body)).digest('base64url').slice(0, 22)}"`;
  const headers = { ...more, etag };
  const isCurrent = known?.split(',').some(one => ['*', etag, `W/${etag}`].includes(one.trim()));
  return isCurrent ? { status: 304, headers } : { body, headers };
}
