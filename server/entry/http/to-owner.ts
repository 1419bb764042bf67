// Requests that another host of the fleet answers: those about something that it has, and those that start a browser.
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type OperationId, OWNED, PLACED } from '../../../contract/operations.ts';
import type { Forwarding } from '../../domain/fleet/forwarding.ts';
import { isRoomElsewhere, ROOM_ELSEWHERE_HEADER } from '../../domain/fleet/room-elsewhere.ts';
import type { Caller } from '../../domain/identity/caller.ts';
import { forwardedFrom } from '../../kit/forwarded.ts';
import type { HostId } from '../../kit/ids.ts';

/** Hosts that a create asks for a slot. */
const ATTEMPTS_MAX = 16;

export interface ToOwnerParts {
  readonly forwarding: Forwarding;
  /** `kind:id` of the file that a signed link names. Undefined if the link is not valid. */
  readonly linkedObject: (token: string) => string | undefined;
}

/** Passes the request on before its body is read, if another host has what it is about. */
export async function passToOwner(
  id: OperationId,
  request: FastifyRequest,
  reply: FastifyReply,
  caller: Caller | undefined,
  { forwarding, linkedObject }: ToOwnerParts,
): Promise<void> {
  const kind = OWNED[id];
  if (kind === undefined || forwarding.isAlone || forwardedFrom(request.raw)) return;
  const params: Readonly<Record<string, string | undefined>> = Object(request.params);
  const [owned, named] =
    kind === 'link' ? downloadOf(linkedObject(params.token ?? '')) : ([kind, params.id ?? ''] as const);
  const application = caller?.kind === 'agentKey' ? caller.applicationId : undefined;
  const owner = await forwarding.elsewhere(owned, named, application);
  if (owner) await forwarding.pass(owner, request.raw, { requestId: request.id, begin: () => taken(reply) });
}

/** The same for requests that are no operations. */
export async function passSession(
  session: string,
  request: FastifyRequest,
  reply: FastifyReply,
  forwarding: Forwarding,
): Promise<void> {
  if (forwarding.isAlone || forwardedFrom(request.raw)) return;
  const owner = await forwarding.elsewhere('session', session);
  if (owner) await forwarding.pass(owner, request.raw, { requestId: request.id, begin: () => taken(reply) });
}

const downloadOf = (object = ''): readonly ['download', string] => ['download', object.replace(/^download:/, '')];

/**
 * Answers a request that starts a browser: here, or on the host that has the most room. `answer` is called if it is this one; if it
 * has no free slot after all, the next host is asked. Undefined if another host has answered.
 */
export async function placed<T>(
  id: OperationId,
  request: FastifyRequest,
  reply: FastifyReply,
  { forwarding }: ToOwnerParts,
  answer: () => Promise<T>,
): Promise<T | undefined> {
  if (!PLACED.has(id) || forwarding.isAlone) return answer();
  if (forwardedFrom(request.raw))
    return answer().catch(error => {
      if (isRoomElsewhere(error)) reply.header(ROOM_ELSEWHERE_HEADER, '1');
      throw error;
    });
  const { region } = Object(request.body);
  const tried = new Set<HostId>();
  let refused: unknown;
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
    const host = forwarding.place(typeof region === 'string' ? region : undefined, tried);
    if (host === undefined) break;
    tried.add(host === 'here' ? forwarding.host : host.id);
    if (host === 'here') {
      const answered = await answer().then(
        value => ({ value }),
        error => ({ error }),
      );
      if ('value' in answered) return answered.value;
      if (!isRoomElsewhere(answered.error)) throw answered.error;
      refused = answered.error;
      continue;
    }
    const body = Buffer.from(JSON.stringify(request.body ?? {}));
    const passed = await forwarding.pass(host, request.raw, { body, requestId: request.id, begin: () => taken(reply) });
    if (passed === 'answered') return undefined;
  }
  if (refused !== undefined) throw refused;
  return answer();
}

function taken(reply: FastifyReply) {
  reply.hijack();
  return reply.raw;
}
