// Opens the HTTP side: limits, hooks that every request passes, routes, errors. What an operation does is in bind.ts and beside it.
import { rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { Socket } from 'node:net';
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { Registry } from 'prom-client';
import { operation } from '../../../contract/operations.ts';
import type { ContextVerbs } from '../../domain/contexts/contexts.ts';
import type { Events } from '../../domain/events/api.ts';
import { fault } from '../../domain/faults.ts';
import type { Idempotency } from '../../domain/idempotency/idempotency.ts';
import type { IdentityVerbs } from '../../domain/identity/identity.ts';
import type { Limits } from '../../domain/limits/limits.ts';
import type { WaitingBytes } from '../../domain/limits/waiting-bytes.ts';
import type { FrontEnd } from '../../domain/live/front-end.ts';
import type { LiveView } from '../../domain/live/live-view.ts';
import type { Logs } from '../../domain/logs/api.ts';
import type { Recordings } from '../../domain/recordings/api.ts';
import type { Sessions } from '../../domain/sessions/api.ts';
import type { Clock } from '../../kit/clock.ts';
import type { Log } from '../../kit/log.ts';
import type { Closeable } from '../../kit/scope.ts';
import type { Tracer } from '../../kit/trace.ts';
import type { Workers } from '../../kit/worker-pool.ts';
import { agentKeyHandlers } from './agent-keys.ts';
import { boundAnswers } from './answer-flow.ts';
import { applicationHandlers } from './applications.ts';
import { bindOperations } from './bind.ts';
import { type CertificateVerbs, certificateHandlers } from './certificates.ts';
import { compatHandlers, compatMakers } from './compat.ts';
import { connectHandlers, type Discover } from './connect.ts';
import { serveConsole } from './console.ts';
import { contextHandlers } from './contexts.ts';
import { serveDevtools } from './devtools.ts';
import { serveDocs } from './docs.ts';
import { answerBeforeTheBody } from './early-answer.ts';
import { eventHandlers } from './events.ts';
import { type ExtensionVerbs, extensionHandlers } from './extensions.ts';
import { failureOf } from './failures.ts';
import { type FileVerbs, fileHandlers } from './files.ts';
import { demandProgress, IncomingFiles } from './incoming-files.ts';
import { BODY_BYTES_MAX, readJsonBody } from './json-body.ts';
import { limitHandlers } from './limits.ts';
import { liveHandlers } from './live.ts';
import { serveLiveView } from './live-page.ts';
import { logHandlers } from './logs.ts';
import { recordingHandlers } from './recordings.ts';
import { Repeats } from './repeats.ts';
import { type Ready, serviceHandlers } from './service.ts';
import { sessionHandlers, sessionMakers } from './sessions.ts';
import { tokenHandlers } from './tokens.ts';
import { Visits } from './visits.ts';
import { WebFiles } from './web-files.ts';
import { refuseWebDriver } from './webdriver.ts';

const HEADER_BYTES_MAX = 16 * 1024;
const HEADERS_MS = 15_000;
/** From the headers of a request to the last byte of its body. Answers may take longer, and so may files that come in. */
const REQUEST_MS = 60_000;
/** Above the 60 s that proxies in front keep a connection, so that it is never ours that closes first. */
const KEEP_ALIVE_MS = 75_000;
/** TCP connections at once, those of CDP clients and viewers among them. What comes beyond is closed, and what is open stays. */
const CONNECTIONS_MAX = 5000;
const SAID_EVERY_MS = 60_000;
/** How long requests may still take when the server closes. */
const CLOSE_GRACE_MS = 5000;

const SECURITY_HEADERS = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'x-frame-options': 'DENY',
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
} as const;

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;

export interface HttpParts {
  readonly listen: { readonly host: string; readonly port: number };
  /** Origin that callers use, for the examples in the reference. Absent: the address listened on. */
  readonly publicUrl?: string;
  readonly compat: boolean;
  /** Address ranges of proxies in front. */
  readonly trustedProxies?: readonly string[];
  readonly regions: readonly string[];
  /** Where uploads stand while they come in. */
  readonly incomingDir: string;
  readonly waiting: WaitingBytes;
  readonly version: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly trace: Tracer;
  readonly identity: IdentityVerbs;
  readonly sessions: Sessions;
  readonly limits: Pick<Limits, 'read' | 'replace' | 'effective'>;
  readonly idempotency: Pick<Idempotency, 'begin' | 'digestOf'>;
  readonly contexts: ContextVerbs;
  readonly certificates: CertificateVerbs;
  readonly extensions: ExtensionVerbs;
  readonly events: Events;
  readonly files: FileVerbs;
  readonly logs: Logs;
  readonly recordings: Recordings;
  readonly discover: Discover;
  readonly ready: () => Promise<Ready>;
  readonly live: Pick<LiveView, 'urls' | 'revoke' | 'resolveUploader' | 'resolveInspector'>;
  readonly frontEnd: Pick<FrontEnd, 'of' | 'folderOf'>;
  readonly metrics: Registry;
  readonly workers: Workers;
  /** Where the built console and docs site stand, and the origins of signed links that the console may load. */
  readonly web?: { readonly folder: string; readonly linkOrigins: readonly string[] };
}

export interface Http extends Closeable {
  /** Node's own server: entry/cdp listens to its `upgrade`. */
  readonly server: Server;
  /** The address that is listened on, with the port that was given to us. */
  readonly url: string;
  close(): Promise<void>;
}

export async function openHttp(parts: HttpParts): Promise<Http> {
  await rm(parts.incomingDir, { recursive: true, force: true }); // What a killed server was receiving.
  const { app, server } = buildHttp(parts);
  const sockets = new Set<Socket>();
  server.on('connection', socket => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  boundConnections(server, parts);
  const url = await listen(app, parts.listen);
  return { server, url, close: () => closeWithin(app, sockets, CLOSE_GRACE_MS) };
}

/** The same without listening, for tests and generators. */
export function buildHttp(parts: HttpParts): { app: FastifyInstance; server: Server } {
  const visits = new Visits(parts.clock, parts.log, parts.trace, parts.metrics);
  const server = createServer({
    maxHeaderSize: HEADER_BYTES_MAX,
    headersTimeout: HEADERS_MS,
    requestTimeout: 0, // hurry() does it
    keepAliveTimeout: KEEP_ALIVE_MS,
  });
  const app = fastify({
    // What a request expects beside 100-continue is not looked at: Node would answer 417, which tells nothing.
    serverFactory: handle => server.on('request', handle).on('checkExpectation', handle),
    bodyLimit: BODY_BYTES_MAX,
    genReqId: request => visits.requestId(request.headers['x-request-id']),
    requestIdHeader: false,
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    routerOptions: { maxParamLength: HEADER_BYTES_MAX }, // No part of a path is longer than the headers it comes with.
    clientErrorHandler: (error, socket) => refuseBrokenRequest(error, socket, visits.requestId(undefined)),
    frameworkErrors: (error, request, reply) => sendFailure(error, request, reply, visits),
  });
  readOnlyJson(app, visits);
  followVisits(app, visits, parts.clock);
  boundAnswers(app, { waiting: parts.waiting, callerOf: request => visits.of(request).caller });
  app.setErrorHandler((error, request, reply) => sendFailure(error, request, reply, visits));
  const incoming = new IncomingFiles({ folder: parts.incomingDir, clock: parts.clock });
  const methods = bindOperations(app, {
    handlers: handlersOf(parts),
    callers: parts.identity.callers,
    visits,
    repeats: repeatsOf(parts),
    compat: parts.compat,
    trustedProxies: parts.trustedProxies ?? [],
    clock: parts.clock,
    incoming,
    allowUpload: (caller, session) => parts.files.uploads.allow(caller, session),
  });
  refuseOtherMethods(app, methods);
  refuseWebDriver(app);
  serveDocs(app, parts.version, parts.web && WebFiles.read(parts.web.folder, 'docs'));
  serveLiveView(
    app,
    { ...parts, incoming, uploads: parts.files.uploads },
    parts.web && WebFiles.read(parts.web.folder, 'live-view'),
  );
  serveDevtools(app, parts);
  serveConsole(app, parts.web && WebFiles.read(parts.web.folder, 'console'), parts.web?.linkOrigins);
  app.setNotFoundHandler(request => {
    throw fault('route_not_found', `No operation has the path ${pathOf(request)} (${request.method}).`, {
      advice: 'See the reference at /docs for all paths.',
    });
  });
  return { app, server };
}

const repeatsOf = ({ sessions, regions, idempotency, log }: HttpParts): Repeats =>
  new Repeats({ idempotency, makers: { ...sessionMakers(sessions, regions), ...compatMakers }, log });

const handlersOf = ({
  clock,
  log,
  sessions,
  contexts,
  events,
  logs,
  recordings,
  limits,
  files,
  certificates,
  extensions,
  identity,
  regions,
  discover,
  version,
  ready,
  live,
  metrics,
}: HttpParts) => ({
  ...sessionHandlers(sessions, regions),
  ...contextHandlers(contexts),
  ...eventHandlers({ events, ...identity, clock, log }),
  ...logHandlers({ logs, ...identity, clock, log }),
  ...recordingHandlers({ recordings }),
  ...applicationHandlers(identity.applications),
  ...limitHandlers(limits),
  ...liveHandlers(live),
  ...fileHandlers(files),
  ...certificateHandlers(certificates),
  ...extensionHandlers(extensions),
  ...agentKeyHandlers(identity.agentKeys),
  ...tokenHandlers(identity.tokens),
  ...connectHandlers(discover),
  ...compatHandlers({ sessions, applications: identity.applications, limits, regions }),
  ...serviceHandlers({ version, ready, metrics }),
});

// ---- what every request passes -------------------------------------------------------------------------------------

function readOnlyJson(app: FastifyInstance, visits: Visits): void {
  app.removeAllContentTypeParsers();
  const type = 'application/json';
  app.addContentTypeParser(type, { parseAs: 'string' }, async (request: FastifyRequest, text: string) =>
    visits.doing(request, () => readJsonBody(text)),
  );
}

function followVisits(app: FastifyInstance, visits: Visits, clock: Clock): void {
  app.addHook('onRequest', async (request, reply) => {
    visits.begin(request, request.routeOptions.config.operation);
    hurry(request, clock);
    reply.headers({ ...SECURITY_HEADERS, 'x-request-id': request.id });
    reply.raw.once('close', () => visits.end(request, reply.raw.statusCode, reply.raw.writableFinished));
  });
}

/** Node's own limit knows no difference between a file of gigabytes and a few fields that never come. */
function hurry(request: FastifyRequest, clock: Clock): void {
  if (request.routeOptions.config.upload) return void demandProgress(request, clock);
  const { raw } = request;
  // A request without a body has no end that anybody hears of; it is complete, and its answer may be a stream of hours.
  const expire = (): void => void (raw.complete || raw.socket.destroy());
  const late = setTimeout(expire, REQUEST_MS).unref();
  const arrived = (): void => clearTimeout(late);
  raw.once('end', arrived);
  raw.once('close', arrived);
}

function sendFailure(error: unknown, request: FastifyRequest, reply: FastifyReply, visits: Visits): void {
  const id = request.routeOptions?.config?.operation;
  const isWrite = id === undefined ? !['GET', 'HEAD'].includes(request.method) : operation(id).isWrite;
  const failure = failureOf(error, request.id, isWrite);
  if (failure.isOurs) visits.broke(request, error);
  visits.of(request).code = failure.body.code;
  answerBeforeTheBody(request, reply);
  void reply
    .code(failure.status)
    .headers({ ...failure.headers, 'x-request-id': request.id })
    .type('application/json; charset=utf-8')
    .send(JSON.stringify(failure.body));
}

// ---- what is no operation ------------------------------------------------------------------------------------------

function refuseOtherMethods(app: FastifyInstance, methods: ReadonlyMap<string, ReadonlySet<string>>): void {
  for (const [url, known] of methods) {
    const allowed = METHODS.filter(method => known.has(method) || (method === 'HEAD' && known.has('GET')));
    app.route({
      method: METHODS.filter(method => !allowed.includes(method)),
      url,
      onRequest: async (request, reply) => {
        reply.header('allow', allowed.join(', '));
        throw fault('method_not_allowed', `${pathOf(request)} does not support the method ${request.method}.`, {
          advice: `Use ${allowed.join(' or ')}.`,
        });
      },
      handler: async () => undefined,
    });
  }
}

const pathOf = ({ url }: FastifyRequest): string => url.split('?', 1)[0] ?? url;

/** Requests that are not HTTP enough to reach a route: they get the error body all the same. */
function refuseBrokenRequest(error: NodeJS.ErrnoException, socket: Socket, requestId: string): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
  const thrown =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? fault('headers_too_large', `The request headers are larger than ${HEADER_BYTES_MAX} bytes.`)
      : fault('invalid_request', 'This is not a well-formed HTTP request, or it took too long.');
  const { status, body } = failureOf(thrown, requestId, false);
  const text = JSON.stringify(body);
  socket.end(
    `HTTP/1.1 ${status} ${body.error}\r\ncontent-type: application/json; charset=utf-8\r\nx-request-id: ${requestId}\r\ncontent-length: ${Buffer.byteLength(text)}\r\nconnection: close\r\n\r\n${text}`,
  );
}

function boundConnections(server: Server, { clock, log }: Pick<HttpParts, 'clock' | 'log'>): void {
  server.maxConnections = CONNECTIONS_MAX;
  let saidMs = Number.NEGATIVE_INFINITY;
  server.on('drop', () => {
    if (clock.monotonicMs() - saidMs < SAID_EVERY_MS) return;
    saidMs = clock.monotonicMs();
    log.warn('http.connections_full', { max: CONNECTIONS_MAX });
  });
}

// ---- listening and closing -----------------------------------------------------------------------------------------

async function listen(app: FastifyInstance, { host, port }: HttpParts['listen']): Promise<string> {
  try {
    return await app.listen({ host, port });
  } catch (error) {
    await app.close();
    if (error instanceof Error && 'code' in error && error.code === 'EADDRINUSE')
      throw new Error(
        `${host}:${port} is in use by another program; free it, or choose another address with BERTH_LISTEN.`,
        {
          cause: error,
        },
      );
    throw error;
  }
}

/** Lets running requests finish for a while; then every socket is cut, upgraded ones too. */
async function closeWithin(app: FastifyInstance, sockets: ReadonlySet<Socket>, ms: number): Promise<void> {
  for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy(); // Nobody has asked anything on it.
  const cut = setTimeout(() => {
    for (const socket of sockets) socket.destroy();
  }, ms);
  try {
    await app.close();
  } finally {
    clearTimeout(cut);
  }
}
