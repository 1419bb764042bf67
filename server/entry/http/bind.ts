// The one path of every operation: credential, scope, validation, handler, answer. Handlers repeat none of it.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { TSchema } from 'typebox';
import type { Issue, Warning } from '../../../contract/common.ts';
import { propertiesOf } from '../../../contract/openapi.ts';
import {
  type Asked,
  OPERATION_IDS,
  type OPERATIONS,
  type OperationId,
  operation,
  pathsOf,
} from '../../../contract/operations.ts';
import { fault, invalidRequest, notFound, scopeMissing } from '../../domain/faults.ts';
import type { UploadRoom } from '../../domain/files/uploads.ts';
import type { IdempotencyRun } from '../../domain/idempotency/idempotency.ts';
import type { AccountCaller, AgentCaller, Caller } from '../../domain/identity/caller.ts';
import type { Callers, Presented } from '../../domain/identity/callers.ts';
import { clientAddress } from '../../domain/identity/client-address.ts';
import type { CreateManner } from '../../domain/sessions/api.ts';
import type { Clock } from '../../kit/clock.ts';
import { isFault } from '../../kit/fault.ts';
import { isUuid } from '../../kit/ids.ts';
import { type Answer, nothing } from './answer.ts';
import { EVENT_STREAM } from './event-stream.ts';
import type { IncomingFiles } from './incoming-files.ts';
import { acceptMultipart, type UploadedFile } from './multipart.ts';
import { readPreferences } from './preferences.ts';
import { type RefusedField, refusedFields } from './protecting-fields.ts';
import type { Repeats } from './repeats.ts';
import { fieldPaths, hasIds, unknownFields, withLowerIds } from './schema-walk.ts';
import { refuseUnknownQuery } from './unknown-query.ts';
import { readQuery, validatorOf } from './validate.ts';
import type { Visits } from './visits.ts';

export type MountName = 'native' | 'compat';

type CallerFor<Id extends OperationId> = (typeof OPERATIONS)[Id]['credential'] extends 'agentKey'
  ? AgentCaller
  : (typeof OPERATIONS)[Id]['credential'] extends 'account'
    ? AccountCaller
    : undefined;

type UploadFor<Id extends OperationId> = (typeof OPERATIONS)[Id] extends { readonly upload: object }
  ? UploadedFile
  : undefined;

/** What a handler gets: all of it validated. */
export interface In<Id extends OperationId> extends Asked<Id> {
  readonly caller: CallerFor<Id>;
  readonly mount: MountName;
  /** As it was asked for, without the query. */
  readonly path: string;
  /** Body fields that the operation does not know, where it only warns of them. */
  readonly warnings: readonly Warning[];
  /** Aborted when the caller goes away before the answer. */
  readonly signal: AbortSignal;
  /** The upload, for operations that have one. */
  readonly file: UploadFor<Id>;
  /** For operations that create a session. */
  readonly manner: CreateManner;
  readonly presented: Presented;
  readonly wantsHtml: boolean;
  /** Nobody reads the body of the answer. */
  readonly isHead: boolean;
  /** The Accept header as it came. */
  readonly accepts: string;
  /** Present when the caller accepts server-sent events; the id is that of the last one it has. */
  readonly stream: { readonly lastEventId?: string } | undefined;
}

export type Handlers = { readonly [Id in OperationId]: (asked: In<Id>) => Promise<Answer> };

type AnyHandler = (asked: never) => Promise<Answer>;

declare module 'fastify' {
  interface FastifyContextConfig {
    operation?: OperationId;
    /** Its body is a file, which may take long to come. */
    upload?: boolean;
  }
}

export interface BindParts {
  readonly handlers: Handlers;
  readonly callers: Pick<Callers, 'authenticate'>;
  readonly visits: Visits;
  readonly repeats: Repeats;
  readonly compat: boolean;
  readonly trustedProxies: readonly string[];
  readonly clock: Clock;
  readonly incoming: IncomingFiles;
  /** Before a byte of an upload into a session is read: whether it may come, and how much of it. */
  readonly allowUpload: (caller: AgentCaller, session: string) => Promise<UploadRoom>;
}

/** Registers every operation at every path it has. Returns the methods there are at each path. */
export function bindOperations(app: FastifyInstance, parts: BindParts): ReadonlyMap<string, ReadonlySet<string>> {
  acceptMultipart(app);
  const methods = new Map<string, Set<string>>();
  for (const id of OPERATION_IDS)
    for (const { path, mount } of pathsOf(id, parts.compat)) {
      const plain = path.replace(/\{(\w+)\}/g, ':$1');
      for (const url of operation(id).alsoWithSlash ? [plain, `${plain}/`] : [plain]) {
        bind(app, id, url, mount, parts);
        methods.set(url, (methods.get(url) ?? new Set()).add(operation(id).method));
      }
    }
  return methods;
}

function bind(app: FastifyInstance, id: OperationId, url: string, mount: MountName, parts: BindParts): void {
  const { method, upload } = operation(id);
  const read = readerOf(id, mount);
  const perform = performerOf(id, mount, parts);
  app.route({
    method,
    url,
    config: { operation: id, upload: upload !== undefined },
    onRequest: async request => identify(id, request, parts),
    handler: async (request, reply) => {
      const given = parts.visits.doing(request, () => read(request));
      if (!upload) return perform(request, reply, given, undefined);
      const caller = uploader(request, parts);
      const { maxBytes } = upload;
      // Its id was looked at by the reader.
      const session: string | undefined = maxBytes === undefined ? Object(given.params).id : undefined;
      const owner = { application: caller.applicationId, ...(session === undefined ? {} : { session }) };
      return parts.incoming.receive(
        request,
        owner,
        () => (session === undefined ? { maxBytes: maxBytes ?? 0 } : parts.allowUpload(caller, session)),
        file => perform(request, reply, given, file),
      );
    },
  });
}

function uploader(request: FastifyRequest, { visits }: BindParts): AgentCaller {
  const { caller } = visits.of(request);
  if (caller?.kind !== 'agentKey') throw new Error('an upload without an agent key');
  return caller;
}

type Given = ReturnType<ReturnType<typeof readerOf>>;

/** From a request that was read to its answer. */
function performerOf(id: OperationId, mount: MountName, parts: BindParts) {
  const handler = parts.handlers[id] as AnyHandler; // The table gives each id its own validated shape; the loop over it cannot say which.
  const status = Number(Object.keys(operation(id).responses)[0] ?? 200);
  return async (request: FastifyRequest, reply: FastifyReply, given: Given, file: UploadedFile | undefined) => {
    // What a repetition is compared by: of a file its name and digest.
    const body = file ? { fileName: file.fileName, checksum: file.checksum } : given.body;
    const asked = { ...given, file, ...circumstances(id, request, reply, mount, parts, body) };
    // `read` has just validated every part.
    const handle = (manner: CreateManner): Promise<Answer> =>
      parts.visits.around(request, () => handler({ ...asked, manner } as never));
    const work =
      isResent(request) && operation(id).method === 'DELETE' ? () => removedBefore(handle(asked.manner)) : handle;
    const key = parts.repeats.keyOf(id, request.headers['idempotency-key']);
    const answered = (answer: Answer): FastifyReply => parts.visits.doing(request, () => send(reply, status, answer));
    if (key === undefined) return answered(await work(asked.manner));
    const replayed = (): void => void reply.header('idempotency-replayed', 'true');
    const write = { id, key, path: pathOf(request) };
    const first = (run: IdempotencyRun): Promise<Answer> => work({ ...asked.manner, run });
    return answered(await parts.repeats.answer(write, { ...asked, body }, first, replayed));
  };
}

/** Official clients send a removal again after an answer that was lost; what is gone then was removed by the first one. */
const removedBefore = (removing: Promise<Answer>): Promise<Answer> =>
  removing.catch(error => {
    if (isFault(error, 'not_found')) return nothing();
    throw error;
  });

// ---- credential and scope ------------------------------------------------------------------------------------------

async function identify(
  id: OperationId,
  request: FastifyRequest,
  { callers, visits, trustedProxies }: BindParts,
): Promise<void> {
  const { credential, scopes } = operation(id);
  if (credential === 'public' || credential === 'connect') return;
  const caller = await callers.authenticate(presentedBy(request, trustedProxies), credential);
  visits.of(request).caller = caller;
  if (scopes && !scopes.some(scope => caller.scopes.has(scope))) throw scopeMissing(scopes);
}

const presentedBy = ({ headers, socket }: FastifyRequest, trusted: readonly string[]): Presented => ({
  authorization: headers.authorization,
  apiKey: headers['x-bb-api-key']?.toString(),
  ip: clientAddress({ remoteAddress: socket.remoteAddress, forwardedFor: headers['x-forwarded-for'] }, trusted),
});

// ---- validation ----------------------------------------------------------------------------------------------------

/** Reads the parts of a request and throws what is wrong with them. */
function readerOf(id: OperationId, mount: MountName) {
  const { params, query, headers, body, tag, unknownFields: onUnknown = 'ignore', protectingFields } = operation(id);
  const checkQuery = query && validatorOf(query);
  const checkHeaders = headers && validatorOf(headers);
  const checkBody = body && validatorOf(body);
  const ids = params ? idsOf(params) : [];
  const bodyHasIds = body !== undefined && hasIds(body);
  // Probes come with parameters of their makers, and official clients with those of other services.
  const refusesUnknown = mount === 'native' && operation(id).tag !== 'Service';
  const bodyPaths = body && protectingFields ? fieldPaths(body) : [];
  const queryNames = query ? Object.keys(propertiesOf(query)) : [];
  return (request: FastifyRequest) => {
    if (request.isMultipart() && !operation(id).upload) throw onlyJson();
    const named = params ? withIds(tag, ids, Object(request.params)) : request.params;
    if (refusesUnknown) refuseUnknownQuery(Object(request.query), queryNames);
    const asked = query ? readQuery(query, request.query) : undefined;
    const given = body && request.body === undefined ? {} : request.body;
    const strangers = body && onUnknown !== 'ignore' ? unknownFields(body, given) : [];
    const issues = [
      ...(checkQuery?.(asked) ?? []),
      ...(checkHeaders?.(request.headers) ?? []),
      ...(checkBody?.(given) ?? []),
    ];
    if (protectingFields) refuseUnprotected(refusedFields(strangers, protectingFields, bodyPaths));
    refuse(issues, onUnknown === 'refuse' || readPreferences(request.headers.prefer).isStrict ? strangers : []);
    return {
      params: named,
      query: asked,
      headers: request.headers,
      body: bodyHasIds ? withLowerIds(body, given) : given,
      warnings: strangers.map(unknownWarning),
    };
  };
}

const onlyJson = () =>
  fault('unsupported_media_type', 'The operation does not accept the content type of the body.', {
    advice: 'Send Content-Type: application/json.',
  });

/** The parameters of a path, ids in lower case. A path with something that cannot be an id names nothing. */
function withIds(noun: string, names: readonly string[], params: Readonly<Record<string, string>>) {
  const ids = Object.fromEntries(names.map(name => [name, (params[name] ?? '').toLowerCase()]));
  const bad = names.find(name => !isUuid(ids[name] ?? ''));
  if (bad !== undefined) throw notFound(noun.replace(/s$/, ''), params[bad] ?? '');
  return { ...params, ...ids };
}

/** The parameters that are ids. */
const idsOf = (params: TSchema): readonly string[] =>
  Object.entries<{ format?: string }>(Object(propertiesOf(params))).flatMap(([name, { format }]) =>
    format === 'uuid' ? [name] : [],
  );

function refuse(issues: readonly Issue[], strangers: readonly string[]): void {
  if (strangers.length === 0 && issues.length === 0) return;
  if (strangers.length === 0) throw invalidRequest(issues);
  throw fault('unknown_field', `There is no field ${strangers.join(', ')}.`, {
    advice: 'Remove the field or correct its spelling.',
    details: { issues: [...strangers.map(path => ({ path, message: 'is not a field of this operation' })), ...issues] },
  });
}

function refuseUnprotected(fields: readonly RefusedField[]): void {
  if (fields.length === 0) return;
  const question = ({ meant }: RefusedField): string => (meant === undefined ? '' : `; did you mean ${meant}?`);
  const said = fields.map(field => `There is no field ${field.path}${question(field) || '.'}`);
  throw fault('unknown_field', said.join(' '), {
    advice: 'Correct or remove it. Nothing was created, because the field would restrict what is created.',
    details: {
      issues: fields.map(field => ({
        path: field.path,
        message: `is not a field of this operation${question(field)}`,
        ...(field.meant === undefined ? {} : { nearest: field.meant }),
      })),
    },
  });
}

const unknownWarning = (path: string): Warning => ({
  code: 'unknown_field',
  path,
  message: `There is no field ${path}; it was ignored.`,
});

// ---- the rest of what a handler gets, and the answer ---------------------------------------------------------------

function circumstances(
  id: OperationId,
  request: FastifyRequest,
  reply: FastifyReply,
  mount: MountName,
  { visits, repeats, trustedProxies }: BindParts,
  body: unknown,
) {
  const gone = new AbortController();
  const arrived = new Promise<boolean>(resolve => {
    reply.raw.once('close', () => {
      if (!reply.raw.writableFinished) gone.abort(new Error('the caller went away'));
      resolve(reply.raw.writableFinished);
    });
  });
  const caller: Caller | undefined = visits.of(request).caller;
  return {
    caller,
    mount,
    path: pathOf(request),
    signal: gone.signal,
    manner: {
      signal: gone.signal,
      ...preferred(id, request, reply),
      ...(isResendable(id, request) ? { delivery: deliveryOf(request, repeats.digestOf(id, body), arrived) } : {}),
    },
    presented: presentedBy(request, trustedProxies),
    wantsHtml: (request.headers.accept ?? '').includes('text/html'),
    isHead: request.method === 'HEAD',
    accepts: request.headers.accept ?? '',
    stream: streamWish(request),
  };
}

/** Not for HEAD, which would read a stream that has no end. */
function streamWish({ method, headers }: FastifyRequest): { lastEventId?: string } | undefined {
  if (method !== 'GET' || !(headers.accept ?? '').includes(EVENT_STREAM)) return undefined;
  const id = headers['last-event-id'];
  return typeof id === 'string' ? { lastEventId: id } : {};
}

/** Notes on the answer which of the caller's preferences count. */
function preferred(id: OperationId, { headers }: FastifyRequest, reply: FastifyReply): { waitSeconds?: number } {
  const { mayWait, unknownFields } = operation(id);
  const { isStrict, waitSeconds } = readPreferences(headers.prefer);
  const waits = mayWait && waitSeconds !== undefined;
  const applied = [
    ...(isStrict && unknownFields === 'warn' ? ['handling=strict'] : []),
    ...(waits ? [`wait=${waitSeconds}`] : []),
  ];
  if (applied.length > 0) reply.header('preference-applied', applied.join(', '));
  if (!waits) return {};
  reply.header('x-berth-waited', '0');
  return { waitSeconds };
}

const RETRY_COUNT = 'x-stainless-retry-count';

/** Official clients count their attempts; what has a key is recognised by that. */
const isResendable = (id: OperationId, { headers }: FastifyRequest): boolean =>
  operation(id).mayWait === true && headers[RETRY_COUNT] !== undefined && headers['idempotency-key'] === undefined;

const isResent = ({ headers }: Pick<FastifyRequest, 'headers'>): boolean => Number(headers[RETRY_COUNT]) >= 1;

const deliveryOf = ({ headers }: FastifyRequest, digest: Buffer, arrived: Promise<boolean>) => ({
  digest,
  isResend: isResent({ headers }),
  arrived,
});

const pathOf = ({ url }: FastifyRequest): string => url.split('?', 1)[0] ?? url;

function send(reply: FastifyReply, status: number, { body, headers = {}, contentType, status: named }: Answer) {
  reply.code(named ?? status).headers(headers);
  if (body === undefined) return reply.send();
  if (contentType) return reply.type(contentType).send(body);
  return reply.type('application/json; charset=utf-8').send(JSON.stringify(body));
}
