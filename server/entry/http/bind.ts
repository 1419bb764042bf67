// Registers every operation at its routes. A route checks the credential and the scope, validates the input, calls the
// handler and sends the response.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { TSchema } from 'typebox';
import type { Issue, Warning } from '../../../contract/common.ts';
import { propertiesOf } from '../../../contract/openapi.ts';
import type { Credential } from '../../../contract/operation.ts';
import {
  isRateLimited,
  OPERATION_IDS,
  type OPERATIONS,
  type OperationId,
  type OperationInput,
  operation,
  pathsOf,
} from '../../../contract/operations.ts';
import { deviceCodeHashIn } from '../../domain/device/device-code.ts';
import { fault, invalidRequest, notFound, scopeMissing } from '../../domain/faults.ts';
import type { UploadAllowance } from '../../domain/files/uploads.ts';
import { ticketOf } from '../../domain/fleet/line-ticket.ts';
import type { IdempotencyRun } from '../../domain/idempotency/idempotency.ts';
import type {
  AccountCaller,
  AgentCaller,
  Caller,
  ConsumerCaller,
  HumanCaller,
  RequestSource,
} from '../../domain/identity/caller.ts';
import { type Callers, type PresentedCredentials, sourceOf } from '../../domain/identity/callers.ts';
import type { AcceptedCredential } from '../../domain/identity/credential-faults.ts';
import { presentedCredentialsOf } from '../../domain/identity/presented.ts';
import { assertSteppedUp } from '../../domain/identity/step-up.ts';
import type { RateLimiter } from '../../domain/limits/request-rates.ts';
import type { CreateOptions } from '../../domain/sessions/api.ts';
import type { Clock } from '../../kit/clock.ts';
import { isFault } from '../../kit/fault.ts';
import { forwardedFrom } from '../../kit/forwarded.ts';
import { isUuid } from '../../kit/ids.ts';
import { Pace } from '../../kit/pace.ts';
import type { ApplicationOrigins } from './application-origins.ts';
import { callerConnection } from './caller-connection.ts';
import type { ConsumerCookie } from './consumer-cookie.ts';
import { EVENT_STREAM } from './event-stream.ts';
import { isFormType } from './form-body.ts';
import { emptyResponse, type HttpResponse } from './http-response.ts';
import type { IncomingFiles } from './incoming-files.ts';
import { acceptMultipart, type UploadedFile } from './multipart.ts';
import { readPreferences } from './preferences.ts';
import { type RefusedField, refusedFields } from './protecting-fields.ts';
import type { Repeats } from './repeats.ts';
import type { RequestTracker } from './request-tracker.ts';
import { fieldPaths, hasIds, unknownFields, withLowerIds } from './schema-walk.ts';
import type { SignInCookie } from './sign-in-cookie.ts';
import { passToOwner, respondOrPlace, routeMcpCall, type ToOwnerParts } from './to-owner.ts';
import { refuseUnknownQuery } from './unknown-query.ts';
import { readQuery, validatorOf } from './validate.ts';

export type MountName = 'native' | 'compat';

/**
 * The caller for each kind of credential. An operation that also accepts credentials of a hand-off may have no caller.
 */
interface CallerByCredential {
  agentKey: AgentCaller;
  account: AccountCaller;
  human: HumanCaller;
  consumer: ConsumerCaller;
  agentKeyOrAccount: AgentCaller | AccountCaller;
  handoffReader: AgentCaller | AccountCaller | undefined;
  handoffClaimer: HumanCaller | undefined;
}

type CallerFor<Id extends OperationId> = (typeof OPERATIONS)[Id]['credential'] extends infer Kind extends
  keyof CallerByCredential
  ? CallerByCredential[Kind]
  : undefined;

type UploadFor<Id extends OperationId> = (typeof OPERATIONS)[Id] extends { readonly upload: object }
  ? UploadedFile
  : undefined;

/** The validated input of a handler. */
export interface HandlerInput<Id extends OperationId> extends OperationInput<Id> {
  readonly caller: CallerFor<Id>;
  readonly mount: MountName;
  /** The path of the request, without the query. */
  readonly path: string;
  /** Warnings about unknown body fields, for operations that do not refuse them. */
  readonly warnings: readonly Warning[];
  /** Aborted if the caller disconnects before the response is sent. */
  readonly signal: AbortSignal;
  /** The uploaded file, for operations that receive one. */
  readonly file: UploadFor<Id>;
  /** How a session is created. Used only by operations that create one. */
  readonly options: CreateOptions;
  readonly presented: PresentedCredentials;
  /** The credential in the Authorization header, if it is a bearer token. */
  readonly bearer: string | undefined;
  /** Returns the value of the cookie with this name. Not used for the cookie of a human session. */
  readonly cookieNamed: (name: string) => string | undefined;
  readonly source: RequestSource;
  /** True if the body was a form, not JSON. */
  readonly isForm: boolean;
  /** The origin of the page that sent the request, or the public origin. Passkeys are verified for this origin. */
  readonly origin: URL;
  readonly wantsHtml: boolean;
  /** True for a HEAD request, for which the body of the response is not sent. */
  readonly isHead: boolean;
  /** The Accept header. */
  readonly accepts: string;
  /** Set if the caller accepts server-sent events. */
  readonly stream: { readonly lastEventId?: string } | undefined;
}

export type Handlers = { readonly [Id in OperationId]: (handlerInput: HandlerInput<Id>) => Promise<HttpResponse> };

type AnyHandler = (input: never) => Promise<HttpResponse>;

declare module 'fastify' {
  interface FastifyContextConfig {
    operation?: OperationId;
    /** True if the body is a file, which may take a long time to arrive. */
    upload?: boolean;
  }
}

export interface BindParts {
  readonly handlers: Handlers;
  readonly callers: Pick<Callers, 'authenticate'>;
  readonly rates: RateLimiter;
  readonly tracker: RequestTracker;
  readonly repeats: Repeats;
  readonly compat: boolean;
  readonly trustedProxies: readonly string[];
  readonly cookie: SignInCookie;
  readonly consumerCookie: ConsumerCookie;
  readonly origins: ApplicationOrigins;
  readonly clock: Clock;
  readonly incomingFiles: IncomingFiles;
  readonly toOwnerParts: ToOwnerParts;
  /**
   * Called before the body of an upload into a session is read. Returns whether the upload is allowed, and how large it
   * may be.
   */
  readonly allowUpload: (caller: AgentCaller, session: string, mayBeRepeat: boolean) => Promise<UploadAllowance>;
}

/** Registers every operation at all of its paths. Returns the supported methods of each path. */
export async function bindOperations(
  app: FastifyInstance,
  parts: BindParts,
): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  acceptMultipart(app);
  const methodsByUrl = new Map<string, Set<string>>();
  const pace = new Pace();
  for (const id of OPERATION_IDS) {
    if (pace.isDue) await pace.rest();
    for (const { path, mount } of pathsOf(id, parts.compat)) {
      const routePath = path.replace(/\{(\w+)\}/g, ':$1');
      for (const url of operation(id).allowsTrailingSlash ? [routePath, `${routePath}/`] : [routePath]) {
        bind(app, id, url, mount, parts);
        methodsByUrl.set(url, (methodsByUrl.get(url) ?? new Set()).add(operation(id).method));
        if (!operation(id).allowsRegisteredOrigins) continue;
        parts.origins.handlePreflights(app, url);
        methodsByUrl.get(url)?.add('OPTIONS');
      }
    }
  }
  return methodsByUrl;
}

function bind(app: FastifyInstance, id: OperationId, url: string, mount: MountName, parts: BindParts): void {
  const { method, upload } = operation(id);
  const readRequest = readerOf(id, mount);
  const perform = performerOf(id, mount, parts);
  app.route({
    method,
    url,
    config: { operation: id, upload: upload !== undefined },
    onRequest: async (request, reply) => {
      if (operation(id).allowsRegisteredOrigins) await parts.origins.admit(request, reply);
      await identify(id, request, parts);
      await passToOwner(id, request, reply, parts.tracker.recordOf(request).caller, parts.toOwnerParts);
    },
    handler: async (request, reply) => {
      const requestInput = parts.tracker.attribute(request, () => readRequest(request));
      const { caller } = parts.tracker.recordOf(request);
      if (id === 'callMcp') {
        const callHere = () => perform(request, reply, requestInput, undefined);
        return routeMcpCall(request, reply, caller, parts.toOwnerParts, callHere);
      }
      if (!upload)
        return respondOrPlace(id, request, reply, caller, parts.toOwnerParts, () =>
          perform(request, reply, requestInput, undefined),
        );
      const agent = requireAgentCaller(request, parts);
      const { maxBytes } = upload;
      // `readerOf` has validated the id.
      const session: string | undefined = maxBytes === undefined ? Object(requestInput.params).id : undefined;
      const mayBeRepeat = request.headers['idempotency-key'] !== undefined;
      const owner = { application: agent.applicationId, ...(session === undefined ? {} : { session }) };
      return parts.incomingFiles.receive(
        request,
        owner,
        () => (session === undefined ? { maxBytes: maxBytes ?? 0 } : parts.allowUpload(agent, session, mayBeRepeat)),
        file => perform(request, reply, requestInput, file),
      );
    },
  });
}

function requireAgentCaller(request: FastifyRequest, { tracker }: BindParts): AgentCaller {
  const { caller } = tracker.recordOf(request);
  if (caller?.kind !== 'agentKey') throw new Error('an upload was sent without an agent key');
  return caller;
}

type RequestInput = ReturnType<ReturnType<typeof readerOf>>;

/** Returns a function that runs the handler for a request that has been read, and sends the response. */
function performerOf(id: OperationId, mount: MountName, parts: BindParts) {
  const handler = parts.handlers[id] as AnyHandler; // The handler accepts what the schemas of this id allow.
  const status = Number(Object.keys(operation(id).responses)[0] ?? 200);
  return async (
    request: FastifyRequest,
    reply: FastifyReply,
    requestInput: RequestInput,
    file: UploadedFile | undefined,
  ) => {
    // The body by which repeated requests are compared. For a file, it consists of the name and digest.
    const body = file ? { fileName: file.fileName, checksum: file.checksum } : requestInput.body;
    const detailedInput = { ...requestInput, file, ...requestDetails(id, request, reply, mount, parts, body) };
    // Every part has been validated by `readerOf`.
    const handle = (options: CreateOptions): Promise<HttpResponse> =>
      parts.tracker.runInSpan(request, () => handler({ ...detailedInput, options } as never));
    const handleRequest =
      isResent(request) && operation(id).method === 'DELETE'
        ? () => ignoreNotFound(handle(detailedInput.options))
        : handle;
    const key = parts.repeats.keyOf(id, request.headers['idempotency-key']);
    const sendResponse = (result: HttpResponse): FastifyReply =>
      parts.tracker.attribute(request, () => send(reply, status, result));
    if (key === undefined) return sendResponse(await handleRequest(detailedInput.options));
    const markReplayed = (): void => void reply.header('idempotency-replayed', 'true');
    const keyedOperation = { id, key, path: pathOf(request) };
    const runFirst = (run: IdempotencyRun): Promise<HttpResponse> => handleRequest({ ...detailedInput.options, run });
    return sendResponse(
      await parts.repeats.respond(keyedOperation, { ...detailedInput, body }, runFirst, markReplayed),
    );
  };
}

/** Official clients resend a DELETE whose response was lost. On such a retry, a missing resource counts as deleted. */
const ignoreNotFound = (removal: Promise<HttpResponse>): Promise<HttpResponse> =>
  removal.catch(error => {
    if (isFault(error, 'not_found')) return emptyResponse();
    throw error;
  });

// ---- credential and scope ------------------------------------------------------------------------------------------

async function identify(id: OperationId, request: FastifyRequest, parts: BindParts): Promise<void> {
  const { callers, rates, tracker, cookie, clock } = parts;
  const { credential, scopes, stepUp, ownPageOnly, ownOriginOnly, isWrite } = operation(id);
  if (ownPageOnly && credential === 'public') cookie.assertOwnPage(request.method, request.headers);
  if (credential === 'public' || credential === 'connect') return;
  if (credential === 'deviceCode') return void deviceCodeHashIn(request.headers.authorization);
  const presented = credentialsIn(id, request, parts);
  const acceptedCredential = acceptedCredentialFor(credential, bearerOf(presented.authorization));
  if (!acceptedCredential) return;
  const caller = await callers.authenticate(presented, acceptedCredential);
  tracker.recordOf(request).caller = caller;
  if (ownOriginOnly) cookie.assertOwnOrigin(request.headers);
  // A request that another host passed on was already counted there.
  if (isRateLimited(id) && !forwardedFrom(request.raw)) await rates.take(caller, isWrite);
  const isPerson = caller.kind === 'account' && caller.via.kind === 'human_session';
  if (isPerson) cookie.assertOwnPage(request.method, request.headers);
  if (isPerson && isWrite) cookie.assertNotCrossSite(request.headers);
  if (scopes && !scopes.some(scope => caller.scopes.has(scope))) throw scopeMissing(scopes);
  if (caller.kind === 'consumer') {
    // Other sites can make a browser send the cookie.
    if (presented.cookie !== undefined || ownPageOnly) cookie.assertOwnPage(request.method, request.headers);
    assertOwnPath(caller, Object(request.params));
  }
  if (stepUp && (isPerson || caller.kind === 'consumer')) assertSteppedUp(caller, clock.now());
}

/** Throws if the consumer session belongs to an application or a provider other than those in the path. */
function assertOwnPath(caller: ConsumerCaller, { appId, providerId }: { appId?: string; providerId?: string }): void {
  if (appId?.toLowerCase() !== caller.applicationId || providerId !== caller.providerId)
    throw notFound('Consumer', caller.consumerId);
}

function credentialsIn(
  id: OperationId,
  request: FastifyRequest,
  { trustedProxies, cookie, consumerCookie }: Pick<BindParts, 'trustedProxies' | 'cookie' | 'consumerCookie'>,
): PresentedCredentials {
  const { appId = '' }: { appId?: string } = Object(request.params);
  const isConsumer = operation(id).credential === 'consumer';
  return {
    ...presentedCredentialsOf(request, trustedProxies),
    requestId: request.id,
    cookie: isConsumer ? consumerCookie.read(request.headers, appId) : cookie.read(request.headers),
  };
}

/**
 * Returns the kind of credential that is authenticated here. Undefined if the request has one of a hand-off's own
 * credentials, which the handlers of the hand-off check.
 */
function acceptedCredentialFor(
  credential: Exclude<Credential, 'public' | 'connect' | 'deviceCode'>,
  bearer: string | undefined,
): AcceptedCredential | undefined {
  if (credential === 'handoffLease') {
    if (bearer === undefined) throw missingLeaseFault();
    return undefined;
  }
  if (credential !== 'handoffReader' && credential !== 'handoffClaimer') return credential;
  if (bearer !== undefined && /^bh[cl]_/.test(bearer)) return undefined;
  return credential === 'handoffReader' ? 'agentKeyOrAccount' : 'human';
}

const missingLeaseFault = (): Error =>
  fault('missing_credentials', 'The request has no lease token.', {
    advice: 'Send the header Authorization: Bearer with the lease token (bhl_…) of the hand-off.',
    details: { expected: 'handoff_lease' },
  });

const bearerOf = (authorization: string | undefined): string | undefined =>
  authorization === undefined ? undefined : /^bearer +(\S+) *$/i.exec(authorization)?.[1];

const cookieIn = ({ cookie = '' }: FastifyRequest['headers'], name: string): string | undefined =>
  cookie
    .split(/; */)
    .find(text => text.startsWith(`${name}=`))
    ?.slice(name.length + 1);

// ---- validation ----------------------------------------------------------------------------------------------------

/**
 * Returns a function that reads and validates the parts of a request. The function throws a fault that names every
 * problem.
 */
function readerOf(id: OperationId, mount: MountName) {
  const {
    params,
    query,
    headers,
    body,
    tag,
    unknownFields: unknownFieldPolicy = 'ignore',
    protectingFields,
  } = operation(id);
  const checkQuery = query && validatorOf(query);
  const checkHeaders = headers && validatorOf(headers);
  const checkBody = body && validatorOf(body);
  const ids = params ? idsOf(params) : [];
  const bodyHasIds = body !== undefined && hasIds(body);
  // Health probes and official clients may add parameters of their own, which are ignored.
  const refusesUnknown = mount === 'native' && operation(id).tag !== 'Service';
  const bodyPaths = body && protectingFields ? fieldPaths(body) : [];
  const queryNames = query ? Object.keys(propertiesOf(query)) : [];
  return (request: FastifyRequest) => {
    if (request.isMultipart() && !operation(id).upload) throw unsupportedMediaType();
    const pathParams = params ? withCheckedIds(tag, ids, Object(request.params)) : request.params;
    if (refusesUnknown) refuseUnknownQuery(Object(request.query), queryNames);
    const queryValues = query ? readQuery(query, request.query) : undefined;
    const bodyValue = body && request.body === undefined ? {} : request.body;
    const unknownNames = body && unknownFieldPolicy !== 'ignore' ? unknownFields(body, bodyValue) : [];
    const issues = [
      ...(checkQuery?.(queryValues) ?? []),
      ...(checkHeaders?.(request.headers) ?? []),
      ...(checkBody?.(bodyValue) ?? []),
    ];
    const refusesFields = unknownFieldPolicy === 'refuse' || readPreferences(request.headers.prefer).isStrict;
    assertNoIssues(issues, refusesFields ? unknownNames : []);
    if (protectingFields) refuseMisspelledFields(refusedFields(unknownNames, protectingFields, bodyPaths));
    return {
      params: pathParams,
      query: queryValues,
      headers: request.headers,
      body: bodyHasIds ? withLowerIds(body, bodyValue) : bodyValue,
      warnings: unknownNames.map(unknownFieldWarning),
    };
  };
}

const unsupportedMediaType = () =>
  fault('unsupported_media_type', 'The operation does not accept the content type of the body.', {
    advice: 'Send Content-Type: application/json.',
  });

/** Returns the path parameters with ids in lower case. Responds with 404 if an id is not a valid UUID. */
function withCheckedIds(noun: string, names: readonly string[], params: Readonly<Record<string, string>>) {
  const ids = Object.fromEntries(names.map(name => [name, (params[name] ?? '').toLowerCase()]));
  const invalidName = names.find(name => !isUuid(ids[name] ?? ''));
  if (invalidName !== undefined) throw notFound(noun.replace(/s$/, ''), params[invalidName] ?? '');
  return { ...params, ...ids };
}

/** The names of the parameters that are ids. */
const idsOf = (params: TSchema): readonly string[] =>
  Object.entries<{ format?: string }>(Object(propertiesOf(params))).flatMap(([name, { format }]) =>
    format === 'uuid' ? [name] : [],
  );

function assertNoIssues(issues: readonly Issue[], unknownNames: readonly string[]): void {
  if (unknownNames.length === 0 && issues.length === 0) return;
  if (unknownNames.length === 0) throw invalidRequest(issues);
  throw fault('unknown_field', `The operation has no field ${unknownNames.join(' or ')}.`, {
    advice: 'Remove the field or correct its spelling.',
    details: {
      issues: [...unknownNames.map(path => ({ path, message: 'is not a field of this operation' })), ...issues],
    },
  });
}

function refuseMisspelledFields(fields: readonly RefusedField[]): void {
  if (fields.length === 0) return;
  const suggestionText = ({ suggestion }: RefusedField): string =>
    suggestion === undefined ? '' : `; did you mean ${suggestion}?`;
  const sentences = fields.map(field => `There is no field ${field.path}${suggestionText(field) || '.'}`);
  throw fault('invalid_request', sentences.join(' '), {
    advice:
      'Correct or remove the field. Nothing was created, because the field is probably a misspelled or misplaced restriction that would have been ignored.',
    details: {
      issues: fields.map(field => ({
        path: field.path,
        message: `is not a field of this operation${suggestionText(field)}`,
        ...(field.suggestion === undefined ? {} : { nearest: field.suggestion }),
      })),
    },
  });
}

function unknownFieldWarning(name: string): Warning {
  // The path is stored in PostgreSQL, which refuses NUL and lone surrogates.
  const path = name.replaceAll('\0', '\ufffd').toWellFormed();
  return { code: 'unknown_field', path, message: `There is no field ${path}; it was ignored.` };
}

// ---- other input of a handler, and its response --------------------------------------------------------------------

function requestDetails(
  id: OperationId,
  request: FastifyRequest,
  reply: FastifyReply,
  mount: MountName,
  parts: BindParts,
  body: unknown,
) {
  const { tracker, repeats, cookie } = parts;
  const { disconnectSignal: signal, whenDelivered } = callerConnection(reply.raw);
  const caller: Caller | undefined = tracker.recordOf(request).caller;
  const lineTicket = ticketOf(request.raw);
  const presented = credentialsIn(id, request, parts);
  return {
    caller,
    mount,
    path: pathOf(request),
    signal,
    options: {
      signal,
      ...applyPreferences(id, request, reply),
      ...(lineTicket ? { line: lineTicket } : {}),
      ...(needsResendDetection(id, request)
        ? { delivery: deliveryOf(request, repeats.digestOf(id, body), whenDelivered) }
        : {}),
    },
    presented,
    bearer: bearerOf(presented.authorization),
    cookieNamed: (name: string) => cookieIn(request.headers, name),
    source: sourceOf(presented),
    isForm: isFormType(request.headers['content-type']),
    origin: cookie.originOf(request.headers),
    wantsHtml: (request.headers.accept ?? '').includes('text/html'),
    isHead: request.method === 'HEAD',
    accepts: request.headers.accept ?? '',
    stream: requestedStream(request),
  };
}

/** Undefined for HEAD, because the response would wait for the end of the stream. */
function requestedStream({ method, headers }: FastifyRequest): { lastEventId?: string } | undefined {
  if (method !== 'GET' || !(headers.accept ?? '').includes(EVENT_STREAM)) return undefined;
  const id = headers['last-event-id'];
  return typeof id === 'string' ? { lastEventId: id } : {};
}

/** Applies the Prefer header, and reports in Preference-Applied which preferences were honored. */
function applyPreferences(id: OperationId, { headers }: FastifyRequest, reply: FastifyReply): { waitSeconds?: number } {
  const { mayWait, unknownFields } = operation(id);
  const { isStrict, waitSeconds } = readPreferences(headers.prefer);
  const willWait = mayWait && waitSeconds !== undefined;
  const appliedPreferences = [
    ...(isStrict && unknownFields === 'warn' ? ['handling=strict'] : []),
    ...(willWait ? [`wait=${waitSeconds}`] : []),
  ];
  if (appliedPreferences.length > 0) reply.header('preference-applied', appliedPreferences.join(', '));
  if (!willWait) return {};
  reply.header('x-berth-waited', '0');
  return { waitSeconds };
}

const RETRY_COUNT_HEADER = 'x-stainless-retry-count';

/**
 * Whether a resend of the request must be recognized by its digest. Official clients count their attempts in a header.
 * A request with an idempotency key is recognized by its key instead.
 */
const needsResendDetection = (id: OperationId, { headers }: FastifyRequest): boolean =>
  operation(id).mayWait === true &&
  headers[RETRY_COUNT_HEADER] !== undefined &&
  headers['idempotency-key'] === undefined;

const isResent = ({ headers }: Pick<FastifyRequest, 'headers'>): boolean => Number(headers[RETRY_COUNT_HEADER]) >= 1;

const deliveryOf = ({ headers }: FastifyRequest, digest: Buffer, whenDelivered: Promise<boolean>) => ({
  digest,
  isResend: isResent({ headers }),
  whenDelivered,
});

const pathOf = ({ url }: FastifyRequest): string => url.split('?', 1)[0] ?? url;

function send(
  reply: FastifyReply,
  status: number,
  { body, headers = {}, contentType, status: ownStatus }: HttpResponse,
) {
  reply.code(ownStatus ?? status).headers(headers);
  if (body === undefined) return reply.send();
  if (contentType) return reply.type(contentType).send(body);
  return reply.type('application/json; charset=utf-8').send(JSON.stringify(body));
}
