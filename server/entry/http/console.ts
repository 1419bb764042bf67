// Serves the web console under /console: its built files, and its page for every other path. The content security
// policy allows only content from this origin, so that an injected script can neither run nor send data.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { fault } from '../../domain/faults.ts';
import { notBuiltFault, type WebFiles } from './web-files.ts';

/** Whether this service serves the pages of this origin, so that people can sign in there. */
export type IsOwnOrigin = (origin: string) => boolean;

/** Returns the origins whose pages may show hand-off pages of this application in a frame. */
export type FrameAncestorsOf = (appId: string) => Promise<readonly string[]>;

const PREFIX = '/console/';
/** A page of the console that people open from outside the console. */
const HANDOFF_PAGE = '/handoffs/:id';
/**
 * The pages opened from outside the console that ask for a passkey. The page of a hand-off asks for a passkey only
 * after it has asked the person to sign in.
 */
const PASSKEY_PAGES = ['/signin', '/device', '/approve/:jobId'];
const OUTSIDE_PAGES = [...PASSKEY_PAGES, HANDOFF_PAGE];

/**
 * `linkOrigins` are the origins of signed links to recordings and downloads that this service does not serve itself,
 * such as the origin of the object store. They are inserted into the policy unchanged, so all of them must have plain
 * host names.
 */
function consolePolicy(linkOrigins: readonly string[] = [], frameAncestors: readonly string[] = []): string {
  const linkSources = linkOrigins.map(origin => ` ${origin}`).join('');
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    `img-src 'self' data: blob:${linkSources}`,
    `connect-src 'self'${linkSources}`,
    `media-src 'self' blob:${linkSources}`,
    "frame-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    `frame-ancestors ${frameAncestors.length > 0 ? frameAncestors.join(' ') : "'none'"}`,
  ].join('; ');
}

/**
 * The page that runs snippets of the playground. Running code that somebody types needs `unsafe-eval`, so this page has
 * an opaque origin (`sandbox` without `allow-same-origin`). It has no credential, no storage and no access to the console
 * around it. It can only load its own script and open WebSockets to this service.
 */
const RUNNER_POLICY = [
  "default-src 'none'",
  "script-src 'self' 'unsafe-eval'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'self'",
  'sandbox allow-scripts',
].join('; ');
const RUNNER_PREFIX = 'runner/';
const RUNNER_HEADERS = { 'content-security-policy': RUNNER_POLICY, 'x-frame-options': 'SAMEORIGIN' };

/** The pages in `OUTSIDE_PAGES` show no content from an object store. */
const OUTSIDE_PAGE_HEADERS = { 'content-security-policy': consolePolicy() };

export function serveConsole(
  app: FastifyInstance,
  files: WebFiles | undefined,
  isOwnOrigin: IsOwnOrigin,
  frameAncestorsOf: FrameAncestorsOf,
  linkOrigins?: readonly string[],
): void {
  const headers = { 'content-security-policy': consolePolicy(linkOrigins) };
  for (const url of ['/console', `${PREFIX}*`, ...OUTSIDE_PAGES])
    app.get(url, async (request, reply) => {
      if (!files) throw notBuiltFault('console');
      const redirectAddress = PASSKEY_PAGES.includes(url) ? localhostAddress(request, isOwnOrigin) : undefined;
      if (redirectAddress) return reply.redirect(redirectAddress);
      const path = OUTSIDE_PAGES.includes(url) ? '' : pathOf(request).slice(PREFIX.length);
      const pageHeaders = OUTSIDE_PAGES.includes(url) ? OUTSIDE_PAGE_HEADERS : headers;
      reply.headers(path.startsWith(RUNNER_PREFIX) ? RUNNER_HEADERS : pageHeaders);
      if (url === HANDOFF_PAGE) await allowFrameAncestors(request, reply, frameAncestorsOf);
      if (files.has(path) && path !== 'index.html') return files.send(path, request, reply, path.startsWith('assets/'));
      if (path.startsWith('assets/'))
        throw fault('route_not_found', 'The console has no file at this path.', RELOAD_ADVICE);
      return files.send('index.html', request, reply, false);
    });
}

/**
 * Returns the address on `localhost` to redirect to, if any. A passkey is bound to a host name, so on a local machine
 * these pages are served, and their cookie is set, on `localhost`. Browsers keep the fragment across a redirect. Behind
 * a proxy, the origin on `localhost` is usually not an origin of this service, because its scheme, host name or port
 * differs.
 */
export function localhostAddress(
  { headers: { host = '' }, url }: FastifyRequest,
  isOwnOrigin: IsOwnOrigin,
): string | undefined {
  const match = /^(?:127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?$/.exec(host);
  const origin = `http://localhost${match?.[1] ?? ''}`;
  return match && isOwnOrigin(origin) ? `${origin}${url}` : undefined;
}

/**
 * Lets a site show the page in a frame if the application in the page's address has registered that site. The page
 * requests the hand-off from this application, so an application can allow its sites only for its own hand-offs.
 */
async function allowFrameAncestors(
  request: FastifyRequest,
  reply: FastifyReply,
  frameAncestorsOf: FrameAncestorsOf,
): Promise<void> {
  const { app }: { app?: unknown } = Object(request.query);
  const frameAncestors = typeof app === 'string' ? await frameAncestorsOf(app) : [];
  if (frameAncestors.length === 0) return;
  reply.header('content-security-policy', consolePolicy([], frameAncestors)).removeHeader('x-frame-options');
}

const RELOAD_ADVICE = { advice: 'Reload the console. A newer version may have been installed.' };

const pathOf = ({ url }: FastifyRequest): string => url.split('?', 1)[0] ?? url;
