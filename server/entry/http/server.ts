// The HTTP server: limits, hooks for every request, routes and errors. Operations are bound in bind.ts.
import { rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { Socket } from 'node:net';
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { Registry } from 'prom-client';
import { operation } from '../../../contract/operations.ts';
import type { ServiceDocuments } from '../../domain/config/service-documents.ts';
import type { ConsumerServices } from '../../domain/consumers/open-consumers.ts';
import type { ContextMethods } from '../../domain/contexts/contexts.ts';
import type { DeviceMethods } from '../../domain/device/device.ts';
import type { Events } from '../../domain/events/api.ts';
import { fault } from '../../domain/faults.ts';
import type { Forwarding } from '../../domain/fleet/forwarding.ts';
import type { Idempotency } from '../../domain/idempotency/idempotency.ts';
import type { IdentityServices } from '../../domain/identity/identity.ts';
import type { Limits } from '../../domain/limits/limits.ts';
import type { RateLimiter } from '../../domain/limits/request-rates.ts';
import type { WaitingBytes } from '../../domain/limits/waiting-bytes.ts';
import type { FrontEnd } from '../../domain/live/front-end.ts';
import type { LiveView } from '../../domain/live/live-view.ts';
import type { Logs } from '../../domain/logs/api.ts';
import type { People } from '../../domain/people/open-people.ts';
import type { Recordings } from '../../domain/recordings/api.ts';
import type { Sessions } from '../../domain/sessions/api.ts';
import type { Usage } from '../../domain/usage/usage.ts';
import type { Clock } from '../../kit/clock.ts';
import type { Fault } from '../../kit/fault.ts';
import { listenFailure } from '../../kit/listen-failure.ts';
import { Pace } from '../../kit/pace.ts';
import type { Runtime } from '../../kit/runtime.ts';
import type { Closeable } from '../../kit/scope.ts';
import type { Workers } from '../../kit/worker-pool.ts';
import { accountHandlers } from './account.ts';
import { type ActionMethods, actionHandlers } from './actions.ts';
import { agentKeyHandlers } from './agent-keys.ts';
import { ApplicationOrigins } from './application-origins.ts';
import { applicationHandlers } from './applications.ts';
import { type AuditMethods, auditHandlers } from './audit.ts';
import { bindOperations } from './bind.ts';
import { type CertificateMethods, certificateHandlers } from './certificates.ts';
import { compatHandlers, compatResponseBuilders } from './compat.ts';
import { configHandlers } from './config.ts';
import { type ConfiguredOperationMethods, configuredOperationHandlers } from './configured-operations.ts';
import { connectHandlers, type Discover } from './connect.ts';
import { type FrameAncestorsOf, serveConsole } from './console.ts';
import { serveConsumerCallback } from './consumer-callback.ts';
import { type ConsumerCookie, consumerCookie } from './consumer-cookie.ts';
import { type ConsumerDataParts, consumerDataHandlers } from './consumer-data.ts';
import { type ConsumerHandoffParts, consumerHandoffHandlers } from './consumer-handoffs.ts';
import { serveConsumerPages } from './consumer-pages.ts';
import { type ConsumerParts, consumerHandlers } from './consumers.ts';
import { contextHandlers } from './contexts.ts';
import { type CreditMethods, creditHandlers } from './credits.ts';
import { deviceHandlers } from './device.ts';
import { serveDevtools } from './devtools.ts';
import { serveDocs } from './docs.ts';
import { keepReadingBody } from './early-response.ts';
import { eventHandlers } from './events.ts';
import { type ExtensionMethods, extensionHandlers } from './extensions.ts';
import { failureOf } from './failures.ts';
import { type FileMethods, fileHandlers } from './files.ts';
import { FORM_TYPE, readFormBody } from './form-body.ts';
import { gracefulClose } from './graceful-close.ts';
import { type HandoffMethods, handoffHandlers } from './handoffs.ts';
import { type HostMethods, hostHandlers } from './host.ts';
import { identityHandlers } from './identity.ts';
import { type InboxMethods, inboxHandlers } from './inbox.ts';
import { enforceMinRate, IncomingFiles } from './incoming-files.ts';
import { type ApplicationInvocationMethods, type InvocationMethods, invocationHandlers } from './invocations.ts';
import { BODY_BYTES_MAX, readJsonBody } from './json-body.ts';
import { limitHandlers } from './limits.ts';
import { liveHandlers } from './live.ts';
import { serveLiveView } from './live-page.ts';
import { logHandlers } from './logs.ts';
import { mailHandlers, type OutboxMethods } from './mails.ts';
import { type McpParts, mcpHandlers } from './mcp.ts';
import { type MemberMethods, memberHandlers } from './members.ts';
import type { OfferedChoices } from './normalize-create.ts';
import { oauthFailure } from './oauth-failure.ts';
import { refuseOtherMethods } from './other-methods.ts';
import { recordingHandlers } from './recordings.ts';
import { Repeats } from './repeats.ts';
import { RequestTracker } from './request-tracker.ts';
import { limitResponses } from './response-limits.ts';
import { serviceHandlers } from './service.ts';
import { sessionHandlers, sessionResponseBuilders } from './sessions.ts';
import { signInHandlers } from './sign-in.ts';
import { type SignInCookie, signInCookie } from './sign-in-cookie.ts';
import { type SigningKeyMethods, signingKeyHandlers } from './signing-keys.ts';
import { type StoredCredentialMethods, storedCredentialHandlers } from './stored-credentials.ts';
import type { ToOwnerParts } from './to-owner.ts';
import { tokenHandlers } from './tokens.ts';
import { type TopUpMethods, topUpHandlers } from './topups.ts';
import { usageHandlers } from './usage.ts';
import { WebFiles } from './web-files.ts';
import { refuseWebDriver } from './webdriver.ts';
import { type WebhookMethods, webhookHandlers } from './webhooks.ts';

const HEADER_BYTES_MAX = 16 * 1024;
const HEADERS_TIMEOUT_MS = 15_000;
/** The maximum time from the headers of a request to the end of its body. Responses and uploads may take longer. */
const REQUEST_TIMEOUT_MS = 60_000;
/**
 * Longer than the 60 s for which proxies keep idle connections, so that a proxy never uses a connection that is being
 * closed here.
 */
const KEEP_ALIVE_TIMEOUT_MS = 75_000;
/** The maximum number of TCP connections at once, including CDP clients and viewers. Further ones are closed. */
const CONNECTIONS_MAX = 5000;
const LOG_INTERVAL_MS = 60_000;

const SECURITY_HEADERS = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'x-frame-options': 'DENY',
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
} as const;

export interface HttpParts extends Pick<Runtime, 'clock' | 'log' | 'trace'> {
  readonly listen: { readonly host: string; readonly port: number };
  /** The origin of this service as callers see it. Defaults to the listening address. */
  readonly publicUrl?: string;
  readonly compat: boolean;
  /** Address ranges of trusted reverse proxies. */
  readonly trustedProxies?: readonly string[];
  readonly offeredChoices: OfferedChoices;
  /** Where uploads are stored while they are received. */
  readonly incomingDir: string;
  readonly waitingBytes: WaitingBytes;
  readonly version: string;
  readonly identity: IdentityServices;
  readonly rates: RateLimiter;
  readonly people: People;
  readonly consumers: ConsumerServices;
  readonly consumerParts: ConsumerParts & ConsumerDataParts & ConsumerHandoffParts;
  readonly members: MemberMethods;
  readonly device: DeviceMethods;
  readonly actions: ActionMethods;
  readonly documents: ServiceDocuments;
  readonly sessions: Sessions;
  readonly limits: Pick<Limits, 'read' | 'replace' | 'effective'>;
  readonly usage: Pick<Usage, 'read'>;
  readonly credits: CreditMethods;
  readonly topUps: TopUpMethods;
  readonly host: HostMethods;
  readonly audit: AuditMethods;
  readonly outbox: OutboxMethods;
  readonly inbox: InboxMethods;
  readonly signingKeys: SigningKeyMethods;
  readonly idempotency: Pick<Idempotency, 'begin' | 'digestOf'>;
  readonly contexts: ContextMethods;
  readonly certificates: CertificateMethods;
  readonly extensions: ExtensionMethods;
  readonly events: Events;
  readonly handoffs: HandoffMethods;
  readonly webhooks: WebhookMethods;
  readonly files: FileMethods;
  readonly logs: Logs;
  readonly recordings: Recordings;
  readonly discover: Discover;
  readonly mcp: Pick<McpParts, 'operations' | 'stateKey'> & {
    readonly tools: McpParts['tools'] & { onlySession: ToOwnerParts['onlySession'] };
  };
  readonly invocations: InvocationMethods;
  readonly applicationInvocations: ApplicationInvocationMethods;
  readonly configuredOperations: ConfiguredOperationMethods;
  readonly storedCredentials: StoredCredentialMethods;
  readonly live: Pick<LiveView, 'urls' | 'revoke' | 'resolveUploader' | 'resolveInspector'>;
  readonly frontEnd: Pick<FrontEnd, 'of' | 'folderOf'>;
  readonly forwarding: Forwarding;
  readonly linkedObject: (token: string) => string | undefined;
  readonly metrics: Registry;
  readonly workers: Workers;
  /** The folder of the built console and docs site, and the origins from which the console may load signed links. */
  readonly web?: { readonly folder: string; readonly linkOrigins: readonly string[] };
}

export interface Http extends Closeable {
  /** Node's HTTP server; entry/cdp handles its `upgrade` event. */
  readonly server: Server;
  /** The listening address. If the configured port is 0, it contains the assigned port. */
  readonly url: string;
  close(): Promise<void>;
}

export async function openHttp(parts: HttpParts): Promise<Http> {
  await rm(parts.incomingDir, { recursive: true, force: true }); // Removes partial uploads of a server that was killed.
  const { app, server } = await buildHttp(parts);
  const close = gracefulClose(app, server, parts.clock);
  limitConnections(server, parts);
  const url = await listen(app, parts.listen, close);
  return { server, url, close };
}

/** Requests are checked against the schemas of the contract instead. */
const refuseSchema = (): never => {
  throw new Error('a route must not have a Fastify schema: describe the operation in contract/');
};

/**
 * Builds the server without listening. The routes are registered in several turns of the event loop, because adopted
 * sessions are already in progress.
 */
async function buildHttp(parts: HttpParts): Promise<{ app: FastifyInstance; server: Server }> {
  const tracker = new RequestTracker(parts.clock, parts.log, parts.trace, parts.metrics);
  const server = createServer({
    maxHeaderSize: HEADER_BYTES_MAX,
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: 0, // limitRequestTime is used instead
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    // Offers of protocols other than WebSocket, such as h2c, are ignored (RFC 9110, section 7.8).
    shouldUpgradeCallback: ({ headers }) => headers.upgrade?.toLowerCase() === 'websocket',
  });
  const app = fastify({
    // Unknown values of the Expect header are ignored, because Node would respond with 417 without an explanation.
    serverFactory: handle => server.on('request', handle).on('checkExpectation', handle),
    bodyLimit: BODY_BYTES_MAX,
    genReqId: request => tracker.requestId(request.headers['x-request-id']),
    requestIdHeader: false,
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    // No path is longer, because Node counts the request target as part of the headers.
    routerOptions: { maxParamLength: HEADER_BYTES_MAX },
    // No route has a Fastify schema. Without these two options, Fastify loads its schema compilers (3 MiB).
    schemaController: { compilersFactory: { buildValidator: refuseSchema, buildSerializer: refuseSchema } },
    clientErrorHandler: (error, socket) => refuseBrokenRequest(error, socket, tracker.requestId(undefined)),
    frameworkErrors: (error, request, reply) => sendFailure(error, request, reply, tracker),
  });
  registerBodyParsers(app, tracker);
  trackRequests(app, tracker, parts);
  limitResponses(app, { waitingBytes: parts.waitingBytes, callerOf: request => tracker.recordOf(request).caller });
  app.setErrorHandler((error, request, reply) => sendFailure(error, request, reply, tracker));
  const incomingFiles = new IncomingFiles({ folder: parts.incomingDir, clock: parts.clock });
  const cookie = signInCookie(parts.publicUrl ?? `http://${parts.listen.host}:${parts.listen.port}`);
  const cookieOfConsumer = consumerCookie(parts.publicUrl ?? `http://${parts.listen.host}:${parts.listen.port}`);
  const methodsByUrl = await bindOperations(app, {
    handlers: handlersOf(parts, cookie, cookieOfConsumer),
    callers: parts.identity.callers,
    rates: parts.rates,
    tracker,
    repeats: repeatsOf(parts),
    compat: parts.compat,
    trustedProxies: parts.trustedProxies ?? [],
    cookie,
    consumerCookie: cookieOfConsumer,
    origins: new ApplicationOrigins({
      isOwn: origin => cookie.isOwnOrigin(origin),
      allows: (appId, origin) => parts.consumers.identities.allowsOrigin(appId, origin),
    }),
    clock: parts.clock,
    incomingFiles,
    toOwnerParts: { ...parts, onlySession: caller => parts.mcp.tools.onlySession(caller) },
    allowUpload: (...upload) => parts.files.uploads.allow(...upload),
  });
  const pace = new Pace();
  for (const [url, supported] of methodsByUrl) {
    if (pace.isDue) await pace.rest();
    refuseOtherMethods(app, url, supported);
  }
  refuseWebDriver(app);
  serveDocs(app, parts.version, parts.web && WebFiles.read(parts.web.folder, 'docs'));
  serveLiveView(
    app,
    { ...parts, incomingFiles, uploads: parts.files.uploads },
    parts.web && WebFiles.read(parts.web.folder, 'live-view'),
  );
  serveConsumerCallback(app, parts.consumers.upstream, parts.trustedProxies ?? []);
  serveConsumerPages(app, parts.web && WebFiles.read(parts.web.folder, 'consumer'), cookie.isOwnOrigin);
  serveDevtools(app, parts);
  const frameAncestorsOf: FrameAncestorsOf = appId => parts.consumers.identities.originsOf(appId);
  const consoleFiles = parts.web && WebFiles.read(parts.web.folder, 'console');
  serveConsole(app, consoleFiles, cookie.isOwnOrigin, frameAncestorsOf, parts.web?.linkOrigins);
  app.setNotFoundHandler(request => {
    throw fault('route_not_found', `There is no operation ${request.method} ${pathOf(request)}.`, {
      advice: 'See the reference at /docs for all paths.',
    });
  });
  return { app, server };
}

const repeatsOf = ({ sessions, offeredChoices, idempotency, log }: HttpParts): Repeats =>
  new Repeats({
    idempotency,
    builders: { ...sessionResponseBuilders(sessions, offeredChoices), ...compatResponseBuilders },
    log,
  });

const handlersOf = (
  {
    audit,
    outbox,
    inbox,
    clock,
    log,
    device,
    actions,
    documents,
    sessions,
    contexts,
    events,
    logs,
    recordings,
    limits,
    usage,
    credits,
    topUps,
    host,
    files,
    certificates,
    extensions,
    identity,
    people,
    consumers,
    consumerParts,
    members,
    offeredChoices,
    discover,
    version,
    live,
    mcp,
    invocations,
    applicationInvocations,
    handoffs,
    webhooks,
    configuredOperations,
    storedCredentials,
    listen,
    publicUrl = `http://${listen.host}:${listen.port}`,
    signingKeys,
  }: HttpParts,
  cookie: SignInCookie,
  cookieOfConsumer: ConsumerCookie,
) => ({
  ...sessionHandlers(sessions, offeredChoices),
  ...contextHandlers(contexts),
  ...eventHandlers({ events, ...identity, clock, log }),
  ...logHandlers({ logs, ...identity, clock, log }),
  ...recordingHandlers({ recordings }),
  ...applicationHandlers(identity.applications),
  ...limitHandlers(limits),
  ...usageHandlers(usage),
  ...creditHandlers(credits),
  ...topUpHandlers(topUps),
  ...liveHandlers(live),
  ...mcpHandlers({ ...mcp, publicUrl, version, log }),
  ...invocationHandlers(invocations, applicationInvocations),
  ...handoffHandlers(handoffs, { publicUrl, frameAncestorsOf: appId => consumers.identities.originsOf(appId) }),
  ...webhookHandlers(webhooks),
  ...configuredOperationHandlers(configuredOperations),
  ...storedCredentialHandlers(storedCredentials),
  ...fileHandlers(files),
  ...certificateHandlers(certificates),
  ...extensionHandlers(extensions),
  ...agentKeyHandlers(identity.agentKeys),
  ...tokenHandlers(identity.tokens),
  ...auditHandlers(audit),
  ...mailHandlers(outbox),
  ...inboxHandlers(inbox),
  ...signInHandlers(people, cookie),
  ...accountHandlers(people, cookie),
  ...memberHandlers(members),
  ...identityHandlers(consumers),
  ...consumerHandlers(consumers, consumerParts, cookieOfConsumer),
  ...consumerDataHandlers(consumers, consumerParts),
  ...consumerHandoffHandlers(consumerParts),
  ...signingKeyHandlers(signingKeys),
  ...deviceHandlers(device),
  ...configHandlers(documents, consumers.identities),
  ...actionHandlers(actions),
  ...connectHandlers(discover),
  ...compatHandlers({ sessions, applications: identity.applications, limits, offeredChoices }),
  ...hostHandlers(host),
  ...serviceHandlers({ version }),
});

// ---- hooks of every request ----------------------------------------------------------------------------------------

function registerBodyParsers(app: FastifyInstance, tracker: RequestTracker): void {
  app.removeAllContentTypeParsers();
  const type = 'application/json';
  app.addContentTypeParser(type, { parseAs: 'string' }, async (request: FastifyRequest, text: string) =>
    tracker.attribute(request, () => readJsonBody(text)),
  );
  // Only the OAuth operations accept forms. An operation that accepts forms can be called from a form on another site.
  app.addContentTypeParser(FORM_TYPE, { parseAs: 'string' }, async (request: FastifyRequest, text: string) => {
    const id = request.routeOptions.config.operation;
    if (id === undefined || !operation(id).oauth) throw unsupportedMediaType();
    return tracker.attribute(request, () => readFormBody(text));
  });
}

const unsupportedMediaType = (): Error =>
  fault('unsupported_media_type', 'The operation does not accept the content type of the body.', {
    advice: 'Send Content-Type: application/json.',
  });

function trackRequests(
  app: FastifyInstance,
  tracker: RequestTracker,
  { clock, forwarding }: Pick<HttpParts, 'clock' | 'forwarding'>,
): void {
  app.addHook('onRequest', async (request, reply) => {
    tracker.begin(request, request.routeOptions.config.operation);
    limitRequestTime(request, clock);
    reply.headers({ ...SECURITY_HEADERS, 'x-request-id': request.id });
    reply.raw.once('close', () => tracker.end(request, reply.raw.statusCode, reply.raw.writableFinished));
    forwarding.acceptForwarded(request.raw);
  });
}

/** Node's requestTimeout is not used, because it is the same for large uploads and small bodies. */
function limitRequestTime(request: FastifyRequest, clock: Clock): void {
  if (request.routeOptions.config.upload) return void enforceMinRate(request, clock);
  const { raw } = request;
  // A request without a body emits no `end`. It is complete, and its response may be a stream that takes hours.
  const destroyIfIncomplete = (): void => void (raw.complete || raw.socket.destroy());
  const timeout = setTimeout(destroyIfIncomplete, REQUEST_TIMEOUT_MS).unref();
  const clearTimer = (): void => clearTimeout(timeout);
  raw.once('end', clearTimer);
  raw.once('close', clearTimer);
}

function sendFailure(error: unknown, request: FastifyRequest, reply: FastifyReply, tracker: RequestTracker): void {
  const id = request.routeOptions?.config?.operation;
  const isWrite = id === undefined ? !['GET', 'HEAD'].includes(request.method) : operation(id).isWrite;
  const failure = failureOf(error, request.id, isWrite);
  if (failure.isServerFailure) tracker.logFailure(request, error);
  tracker.recordOf(request).code = failure.body.code;
  keepReadingBody(request, reply);
  void reply
    .code(failure.status)
    .headers({ ...failure.headers, 'x-request-id': request.id })
    .type('application/json; charset=utf-8')
    .send(JSON.stringify(id !== undefined && operation(id).oauth ? oauthFailure(failure.body) : failure.body));
}

// ---- requests that are not operations ------------------------------------------------------------------------------

const pathOf = ({ url }: FastifyRequest): string => url.split('?', 1)[0] ?? url;

/** Sends the error body even for malformed requests, which reach no route. */
function refuseBrokenRequest(error: NodeJS.ErrnoException, socket: Socket, requestId: string): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
  const { status, body } = failureOf(brokenRequestFault(error.code), requestId, false);
  const text = JSON.stringify(body);
  socket.end(
    `HTTP/1.1 ${status} ${body.error}\r\ncontent-type: application/json; charset=utf-8\r\nx-request-id: ${requestId}\r\ncontent-length: ${Buffer.byteLength(text)}\r\nconnection: close\r\n\r\n${text}`,
  );
}

function brokenRequestFault(code: string | undefined): Fault {
  if (code === 'HPE_HEADER_OVERFLOW')
    return fault('headers_too_large', `The request headers are larger than ${HEADER_BYTES_MAX} bytes.`, {
      advice: 'Send fewer or shorter headers.',
    });
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return fault(
      'invalid_request',
      `The request headers were not received within ${HEADERS_TIMEOUT_MS / 1000} seconds.`,
      { advice: 'Send the request again, with all headers at once.' },
    );
  return fault('invalid_request', 'The request is not well-formed HTTP.', {
    advice: 'Send a complete HTTP/1.1 request.',
  });
}

function limitConnections(server: Server, { clock, log }: Pick<HttpParts, 'clock' | 'log'>): void {
  server.maxConnections = CONNECTIONS_MAX;
  let lastLoggedMs = Number.NEGATIVE_INFINITY;
  server.on('drop', () => {
    if (clock.monotonicMs() - lastLoggedMs < LOG_INTERVAL_MS) return;
    lastLoggedMs = clock.monotonicMs();
    log.warn('http.connections_full', { max: CONNECTIONS_MAX });
  });
}

// ---- listening -----------------------------------------------------------------------------------------------------

async function listen(
  app: FastifyInstance,
  { host, port }: HttpParts['listen'],
  close: () => Promise<void>,
): Promise<string> {
  try {
    return await app.listen({ host, port });
  } catch (error) {
    await close();
    throw listenFailure(`${host}:${port}`, error, 'Choose another address with BERTH_LISTEN.');
  }
}
