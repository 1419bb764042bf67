// Serves DevTools for a page of a session. The issued address redirects to the front-end files, which come from
// Chromium, and passes the address of the page's socket as a parameter. The files contain no session data. Their path
// contains the version, so that browsers may cache them forever.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { fault } from '../../domain/faults.ts';
import type { Forwarding } from '../../domain/fleet/forwarding.ts';
import type { FrontEnd } from '../../domain/live/front-end.ts';
import type { LiveView } from '../../domain/live/live-view.ts';
import { passToSessionOwner } from './to-owner.ts';
import { WebFiles } from './web-files.ts';

const FILES_PREFIX = '/devtools/';
const PAGE = 'devtools_app.html';

export interface DevtoolsParts {
  readonly live: Pick<LiveView, 'resolveInspector'>;
  readonly frontEnd: Pick<FrontEnd, 'of' | 'folderOf'>;
  readonly publicUrl?: string;
  readonly forwarding: Forwarding;
}

/**
 * The front end displays untrusted page content on the console's origin, so it may access only its own files and
 * socket.
 */
export function devtoolsPolicy(publicUrl: string): string {
  const origin = new URL(publicUrl).origin;
  const socketPrefix = `${origin.replace(/^http/, 'ws')}/v1/browsers/live/`;
  return [
    "default-src 'none'",
    `script-src ${origin}${FILES_PREFIX}`,
    `style-src ${origin}${FILES_PREFIX} 'unsafe-inline'`, // the front end uses style attributes
    `img-src ${origin}${FILES_PREFIX} data: blob:`,
    `font-src ${origin}${FILES_PREFIX}`,
    `connect-src ${origin}${FILES_PREFIX} ${socketPrefix} data:`,
    `worker-src ${origin}${FILES_PREFIX}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

export function serveDevtools(
  app: FastifyInstance,
  { live, frontEnd, publicUrl = '', forwarding }: DevtoolsParts,
): void {
  const headers = publicUrl === '' ? {} : { 'content-security-policy': devtoolsPolicy(publicUrl) };
  const filesByVersion = new Map<string, WebFiles>();
  const filesOf = (version: string): WebFiles | undefined => {
    const knownFiles = filesByVersion.get(version);
    const folder = frontEnd.folderOf(version);
    if (knownFiles || folder === undefined) return knownFiles;
    const files = WebFiles.of(folder);
    filesByVersion.set(version, files);
    return files;
  };

  const passToOwner = async (request: FastifyRequest, reply: FastifyReply): Promise<void> =>
    passToSessionOwner(String(Object(request.params).id), request, reply, forwarding);
  app.get('/v1/browsers/live/:id/devtools', { onRequest: passToOwner }, async (request, reply) => {
    const { id, token, page } = { token: '', page: undefined, ...Object(request.query), ...Object(request.params) };
    const pageId = page === undefined ? undefined : String(page);
    const inspector = await live.resolveInspector(String(token), String(id), pageId);
    const version = await frontEnd.of(inspector.live.browser.version.product);
    const { protocol, host } = new URL(publicUrl);
    const socketAddress = `${host}/v1/browsers/live/${inspector.live.id}/devtools/socket`;
    const query = new URLSearchParams({ token: String(token), page: inspector.page });
    const address = new URLSearchParams({ [protocol === 'https:' ? 'wss' : 'ws']: `${socketAddress}?${query}` });
    return reply.redirect(`${FILES_PREFIX}${version}/${PAGE}?${address}`, 302);
  });

  app.get(`${FILES_PREFIX}*`, async (request, reply) => {
    const [version = '', ...rest] = (request.url.split('?', 1)[0] ?? '').slice(FILES_PREFIX.length).split('/');
    const files = filesOf(version);
    const path = rest.join('/');
    if (!files?.has(path))
      throw fault('route_not_found', 'DevTools has no file at this path.', {
        advice: 'Open the devtoolsUrl of the page again.',
      });
    reply.headers(headers);
    return files.send(path, request, reply, true);
  });
}
