// Passes requests on to the host of the fleet that answers them: requests about a resource to the owner of the
// resource, and requests that start a browser to a host that admits them.
import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  BODY_SUBJECTS,
  type OperationId,
  OWNER_SUBJECTS,
  operation,
  PLACED_OPERATIONS,
} from '../../../contract/operations.ts';
import type { Forwarding } from '../../domain/fleet/forwarding.ts';
import { noteTicket, type QueueTicket } from '../../domain/fleet/line-ticket.ts';
import { notedRefusal, REFUSAL_HEADER, refusalError, refusalText } from '../../domain/fleet/not-here.ts';
import type { AgentCaller, Caller } from '../../domain/identity/caller.ts';
import { type Refusal, refusalFault } from '../../domain/limits/refusals.ts';
import { forwardedFrom } from '../../kit/forwarded.ts';
import type { HostId } from '../../kit/ids.ts';
import { callerConnection } from './caller-connection.ts';
import { mcpDestinationOf } from './mcp-place.ts';
import { readPreferences } from './preferences.ts';

/** The maximum number of hosts that are asked for a slot for one create. */
const ATTEMPTS_MAX = 16;

export interface ToOwnerParts {
  readonly forwarding: Forwarding;
  /** `kind:id` of the file that a signed link names. Undefined if the link is not valid. */
  readonly linkedObject: (token: string) => string | undefined;
  /** Returns the only session that an agent key has open. MCP calls with this key do not have to name that session. */
  readonly onlySession: (caller: AgentCaller) => Promise<string | undefined>;
}

/** Passes the request on before its body is read, if another host owns the resource that the request is about. */
export async function passToOwner(
  id: OperationId,
  request: FastifyRequest,
  reply: FastifyReply,
  caller: Caller | undefined,
  { forwarding, linkedObject }: ToOwnerParts,
): Promise<void> {
  const kind = OWNER_SUBJECTS[id];
  if (kind === undefined || forwarding.isAlone || forwardedFrom(request.raw)) return;
  const params: Readonly<Record<string, string | undefined>> = Object(request.params);
  const [ownedKind, ownedId] =
    kind === 'link'
      ? downloadOf(linkedObject(params.token ?? ''))
      : ([kind, (kind === 'action' ? params.jobId : params.id) ?? ''] as const);
  const application = caller?.kind === 'agentKey' ? caller.applicationId : undefined;
  const owner = await forwarding.otherOwner(ownedKind, ownedId, application);
  if (owner) await forwarding.pass(owner, request.raw, { requestId: request.id, begin: () => takeReply(reply) });
}

/** Like `passToOwner`, for requests that are not operations. */
export async function passToSessionOwner(
  session: string,
  request: FastifyRequest,
  reply: FastifyReply,
  forwarding: Forwarding,
): Promise<void> {
  if (forwarding.isAlone || forwardedFrom(request.raw)) return;
  const owner = await forwarding.otherOwner('session', session);
  if (owner) await forwarding.pass(owner, request.raw, { requestId: request.id, begin: () => takeReply(reply) });
}

const downloadOf = (object = ''): readonly ['download', string] => ['download', object.replace(/^download:/, '')];

/**
 * Passes on a request whose body names a session or a hand-off of another host. Returns false if the request must be
 * answered here.
 */
async function passToNamedOwner(
  id: OperationId,
  request: FastifyRequest,
  reply: FastifyReply,
  caller: Caller | undefined,
  forwarding: Forwarding,
): Promise<boolean> {
  const kind = BODY_SUBJECTS[id];
  if (kind === undefined || forwarding.isAlone || forwardedFrom(request.raw)) return false;
  const { sessionId, id: handoffId, input } = Object(request.body);
  const subjectId = kind === 'handoff' ? handoffId : (sessionId ?? Object(input).sessionId);
  if (typeof subjectId !== 'string') return false;
  const application = caller && caller.kind !== 'account' ? caller.applicationId : undefined;
  const owner = await forwarding.otherOwner(kind, subjectId, application);
  if (!owner) return false;
  const body = Buffer.from(JSON.stringify(request.body));
  const passOutcome = await forwarding.pass(owner, request.raw, {
    body,
    requestId: request.id,
    begin: () => takeReply(reply),
  });
  // If the other host has not answered, the request is handled as if it named no session. For an operation of the
  // application, `sessionId` may be an ordinary input field, and the call may need a browser on any host.
  return passOutcome === 'answered';
}

/**
 * Answers a request that starts a browser, on this host or on another one (domain/fleet/placement.ts). `run` is called
 * if this host is chosen. If a host does not admit the request after all, the next host is tried. If no host admits the
 * request, the request waits if its caller allows this. Returns undefined if another host has answered.
 */
export async function respondOrPlace<T>(
  id: OperationId,
  request: FastifyRequest,
  reply: FastifyReply,
  caller: Caller | undefined,
  { forwarding }: ToOwnerParts,
  run: () => Promise<T>,
): Promise<T | undefined> {
  if (await passToNamedOwner(id, request, reply, caller, forwarding)) return undefined;
  if (!PLACED_OPERATIONS.has(id) || forwarding.isAlone) return run();
  if (forwardedFrom(request.raw)) return run().catch(error => throwWithRefusalHeader(error, reply));
  const region = regionOf(id, request);
  const placedRequest: PlacedRequest<T> = { forwarding, region, request, reply, run };
  const firstAdmission = await askHosts(placedRequest, { waitedMs: 0 });
  if ('got' in firstAdmission) return firstAdmission.got;
  const { waitSeconds } = operation(id).mayWait ? readPreferences(request.headers.prefer) : {};
  const application = caller?.kind === 'agentKey' ? caller.applicationId : undefined;
  if (waitSeconds === undefined || application === undefined) {
    forwarding.countRefusal(firstAdmission.refused.why);
    throw firstAdmission.error;
  }
  const outcome = await forwarding.wait<T | undefined>({
    ...{ application, region: forwarding.regionFor(region), refused: firstAdmission.refused },
    waitMs: 1000 * waitSeconds,
    attempt: ticket => askHosts(placedRequest, ticket),
    signal: callerConnection(reply.raw).disconnectSignal,
  });
  if ('got' in outcome) return outcome.got;
  forwarding.countRefusal(outcome.refused.why);
  throw refusalFault(outcome.refused, outcome.waited);
}

interface PlacedRequest<T> {
  readonly forwarding: Forwarding;
  /** The region that the request names. */
  readonly region: string | undefined;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly run: () => Promise<T>;
}

type Admission<T> = { readonly got: T | undefined } | { readonly refused: Refusal; readonly error: Error };

/**
 * Tries one host after another until one admits the create, or until a limit of the application is reached, which is
 * the same on all hosts.
 */
async function askHosts<T>(placedRequest: PlacedRequest<T>, ticket: QueueTicket): Promise<Admission<T>> {
  const { forwarding, region, request, reply } = placedRequest;
  const triedHosts = new Set<HostId>();
  let lastAdmission: Admission<T> | undefined;
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
    const host = forwarding.chooseHost(region, triedHosts);
    if (host === undefined) break;
    triedHosts.add(host === 'here' ? forwarding.host : host.id);
    if (host === 'here') lastAdmission = await runHere(placedRequest, ticket);
    else {
      const body = bodyOf(request);
      const options = { body, requestId: request.id, begin: () => takeReply(reply), ticket };
      const passOutcome = await forwarding.pass(host, request.raw, options);
      if (passOutcome === 'answered') return { got: undefined };
      if (passOutcome === 'unreached') continue;
      lastAdmission = { ...passOutcome, error: refusalError(passOutcome.refused) };
    }
    if ('got' in lastAdmission || lastAdmission.refused.why !== 'host') return lastAdmission;
  }
  return lastAdmission ?? runHere(placedRequest, ticket);
}

/** A request without a body has no content type either, so it is passed on without a body. */
const bodyOf = ({ body }: FastifyRequest): Buffer =>
  body === undefined || body === null ? Buffer.alloc(0) : Buffer.from(JSON.stringify(body));

/** Handles the request on this host. Returns the refusal if the create is not admitted, and throws any other error. */
async function runHere<T>({ request, run }: PlacedRequest<T>, ticket: QueueTicket): Promise<Admission<T>> {
  noteTicket(request.raw, ticket);
  try {
    return { got: await run() };
  } catch (error) {
    const refusal = notedRefusal(error);
    if (!refusal || !(error instanceof Error)) throw error;
    return { refused: refusal, error };
  }
}

function throwWithRefusalHeader(error: unknown, reply: FastifyReply): never {
  const refusal = notedRefusal(error);
  if (refusal) reply.header(REFUSAL_HEADER, refusalText(refusal));
  throw error;
}

function regionOf(id: OperationId, { body }: FastifyRequest): string | undefined {
  const { region } = Object(id === 'startSession' ? Object(body).browserbaseSessionCreateParams : body);
  return typeof region === 'string' ? region : undefined;
}

/**
 * Answers an MCP message. A message about a session or a call is answered by the host of that session or call, because
 * the references in a snapshot are valid only on that host. Messages that open a browser are placed like creates. This
 * host answers all other messages.
 */
export async function routeMcpCall<T>(
  request: FastifyRequest,
  reply: FastifyReply,
  caller: Caller | undefined,
  parts: ToOwnerParts,
  run: () => Promise<T>,
): Promise<T | undefined> {
  const { forwarding, onlySession } = parts;
  if (forwarding.isAlone || caller?.kind !== 'agentKey') return run();
  const destination = mcpDestinationOf(request.body);
  if (destination === 'placed') return placeMcpCall(request, reply, caller, parts, run);
  if (destination === 'here' || forwardedFrom(request.raw)) return run();
  const onlySessionId = destination === 'only_session' ? await onlySession(caller) : undefined;
  const { kind, id } =
    destination === 'only_session' ? { kind: 'session' as const, id: onlySessionId ?? '' } : destination;
  const owner = await forwarding.otherOwner(kind, id, caller.applicationId);
  // An Action without a session may open a browser.
  if (!owner) return kind === 'action' ? respondOrPlace('callMcp', request, reply, caller, parts, run) : run();
  const body = Buffer.from(JSON.stringify(request.body));
  await forwarding.pass(owner, request.raw, { body, requestId: request.id, begin: () => takeReply(reply) });
  return undefined;
}

/**
 * Places an MCP call on a host. If no host admits the call, the client gets a tool result with the reason. If this host
 * does not admit a call that another host passed on to it, that other host gets such a result and tries the next host.
 */
async function placeMcpCall<T>(
  request: FastifyRequest,
  reply: FastifyReply,
  caller: Caller,
  parts: ToOwnerParts,
  run: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await respondOrPlace('callMcp', request, reply, caller, parts, run);
  } catch (error) {
    const refusal = notedRefusal(error);
    if (!refusal) throw error;
    noteTicket(request.raw, { waitedMs: 0, finalRefusal: refusal });
    return run();
  }
}

function takeReply(reply: FastifyReply) {
  reply.hijack();
  return reply.raw;
}
