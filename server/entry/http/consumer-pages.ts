// Serves the pages for consumers: sign-in and their own data. No other page may show them in a frame, and they load
// nothing from other origins.
import type { FastifyInstance } from 'fastify';
import { fault } from '../../domain/faults.ts';
import { type IsOwnOrigin, localhostAddress } from './console.ts';
import { notBuiltFault, type WebFiles } from './web-files.ts';

const PREFIX = '/consumer/';
/** This page shows the live view, which this service serves, in a frame. */
const HANDOFF_PAGE = '/consumer/:appId/handoffs/:id';
const policy = (...directives: readonly string[]): string =>
  [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    ...directives,
  ].join('; ');

const PAGES: Readonly<Record<string, string>> = {
  '/consumer/signin/:appId/:signIn': 'signin.html',
  '/consumer/:appId': 'home.html',
  '/consumer/:appId/receipts': 'home.html',
  '/consumer/:appId/memory': 'home.html',
  '/consumer/:appId/account': 'home.html',
  '/consumer/:appId/approve/:jobId': 'home.html',
  '/consumer/:appId/consent/:keyId': 'home.html',
  [HANDOFF_PAGE]: 'home.html',
};

export function serveConsumerPages(app: FastifyInstance, files: WebFiles | undefined, isOwnOrigin: IsOwnOrigin): void {
  for (const [url, page] of Object.entries(PAGES))
    app.get(url, async (request, reply) => {
      if (!files) throw notBuiltFault('consumer site');
      const redirectAddress = localhostAddress(request, isOwnOrigin);
      if (redirectAddress) return reply.redirect(redirectAddress);
      reply.header('content-security-policy', url === HANDOFF_PAGE ? policy("frame-src 'self'") : policy());
      return files.send(page, request, reply, false);
    });
  app.get(`${PREFIX}assets/*`, async (request, reply) => {
    const path = (request.url.split('?', 1)[0] ?? '').slice(PREFIX.length);
    if (!files) throw notBuiltFault('consumer site');
    if (!files.has(path))
      throw fault('route_not_found', 'The site for consumers has no file at this path.', {
        advice: 'Load the page again.',
      });
    return files.send(path, request, reply, true);
  });
}
