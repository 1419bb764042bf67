// HTTP handlers for sessions on both mounts. The compatibility mount shows region names that official clients
// recognize, and accepts repeated releases.
import type { Warning } from '../../../contract/common.ts';
import { COMPAT_REGIONS, type Session, type UpdateSession } from '../../../contract/sessions.ts';
import type { AgentCaller } from '../../domain/identity/caller.ts';
import type { CreatedSession, CreateOptions, Sessions, SessionView } from '../../domain/sessions/api.ts';
import { isFault } from '../../kit/fault.ts';
import type { SessionId } from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';
import type { HandlerInput, MountName } from './bind.ts';
import { type HttpResponse, jsonResponse } from './http-response.ts';
import { normalizeCreate, type OfferedChoices } from './normalize-create.ts';

/**
 * The region shown to official clients if neither the real region nor the requested one has a name that they recognize.
 */
const COMPAT_REGION_DEFAULT = 'us-west-2';

export const sessionHandlers = (sessions: Sessions, choices: OfferedChoices) => ({
  createSession: async ({
    caller,
    body,
    mount,
    warnings,
    options,
  }: HandlerInput<'createSession'>): Promise<HttpResponse> => {
    const request = normalizeCreate(body, { ...choices, mount });
    const createdSession = await sessions.create(
      caller,
      { ...request, warnings: [...warnings, ...request.warnings] },
      options,
    );
    const httpResponse = createdResponse(createdSession.session, mount, createdSession.warnings);
    return { ...httpResponse, headers: { ...httpResponse.headers, ...admittedHeaders(createdSession, options) } };
  },

  listSessions: async ({ caller, query, mount }: HandlerInput<'listSessions'>): Promise<HttpResponse> => {
    const page = await sessions.list(caller, query);
    return jsonResponse(
      page.sessions.map(session => publicView(session, mount)),
      page.nextBefore === undefined ? {} : { 'x-next-before': page.nextBefore },
    );
  },

  readSession: async ({ caller, params, mount }: HandlerInput<'readSession'>): Promise<HttpResponse> =>
    jsonResponse(publicView(await sessions.read(caller, params.id), mount)),

  updateSession: async ({
    caller,
    params,
    body,
    mount,
    warnings,
  }: HandlerInput<'updateSession'>): Promise<HttpResponse> => {
    const session =
      mount === 'compat'
        ? await releaseIdempotently(sessions, caller, params.id, body)
        : await sessions.update(caller, params.id, body);
    return jsonResponse(withWarnings(publicView(session, mount), warnings));
  },
});

/**
 * Rebuilds the response to a repeated create: the session in its current state, with the warnings of the first
 * response.
 */
export const sessionResponseBuilders = (sessions: Sessions, choices: OfferedChoices) => ({
  createSession: {
    pickStoredParts: ({ warnings = [] }: JsonObject): JsonObject => ({ warnings }),
    rebuild: async (
      input: HandlerInput<'createSession'>,
      id: SessionId,
      storedBody: JsonObject,
    ): Promise<HttpResponse> => {
      const { caller, body, mount, warnings } = input;
      const session = await sessions.awaitExisting(caller, id);
      // A run that was interrupted stored no warnings, but the same body leads to the same warnings.
      const storedWarnings = storedBody.warnings as readonly Warning[] | undefined;
      return createdResponse(
        session,
        mount,
        storedWarnings ?? [...warnings, ...normalizeCreate(body, { ...choices, mount }).warnings],
      );
    },
  },
});

const createdResponse = (session: SessionView, mount: MountName, warnings: readonly Warning[]): HttpResponse =>
  jsonResponse({ ...publicView(session, mount), warnings }, { location: `/v1/browsers/sessions/${session.id}` });

/** Returns the rate limit headers, and the header that reports how long the create waited in the queue. */
export function admittedHeaders({ quota, waitedMs }: CreatedSession, { waitSeconds }: CreateOptions) {
  const quotaHeaders = quota
    ? {
        'x-ratelimit-limit': String(quota.limit),
        'x-ratelimit-remaining': String(quota.remaining),
        'x-ratelimit-reset': String(quota.resetSeconds),
      }
    : { 'idempotency-replayed': 'true' };
  return { ...quotaHeaders, ...(waitSeconds === undefined ? {} : { 'x-berth-waited': String(waitedMs) }) };
}

/**
 * On the compatibility mount, releasing an ended session succeeds, because official clients resend the release and
 * throw if it fails.
 */
export async function releaseIdempotently(
  sessions: Sessions,
  caller: AgentCaller,
  id: string,
  change: UpdateSession,
): Promise<SessionView> {
  try {
    return await sessions.update(caller, id, change);
  } catch (error) {
    if (change.status !== 'REQUEST_RELEASE' || !isFault(error, 'session_not_running')) throw error;
    return sessions.read(caller, id);
  }
}

/**
 * Returns the session as the API shows it. Under the paths of official clients, a region that they do not know is
 * replaced by the requested region, or by the default.
 */
export function publicView({ regionAsked, ...session }: SessionView, mount: MountName): Session {
  if (mount === 'native' || isOfficialName(session.region)) return session;
  return { ...session, region: regionAsked ?? COMPAT_REGION_DEFAULT };
}

const isOfficialName = (region: string): boolean => COMPAT_REGIONS.some(officialName => officialName === region);

const withWarnings = (session: Session, warnings: readonly Warning[]): Session =>
  warnings.length === 0 ? session : { ...session, warnings: [...warnings] };
