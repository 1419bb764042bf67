// HTTP handlers that exist only on the compatibility mount: projects, recording events (always empty), and the two
// routes of Stagehand 3.
import type { Project } from '../../../contract/sessions.ts';
import { notFound } from '../../domain/faults.ts';
import type { Applications } from '../../domain/identity/applications.ts';
import type { AgentCaller } from '../../domain/identity/caller.ts';
import type { Limits } from '../../domain/limits/limits.ts';
import type { Sessions } from '../../domain/sessions/api.ts';
import type { SessionId } from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';
import type { HandlerInput } from './bind.ts';
import { type HttpResponse, jsonResponse } from './http-response.ts';
import { normalizeCreate, type OfferedChoices } from './normalize-create.ts';
import { admittedHeaders, releaseIdempotently } from './sessions.ts';

export interface CompatParts {
  readonly sessions: Sessions;
  readonly applications: Pick<Applications, 'ofAgent'>;
  readonly limits: Pick<Limits, 'effective'>;
  readonly offeredChoices: OfferedChoices;
}

export const compatHandlers = ({ sessions, applications, limits, offeredChoices }: CompatParts) => ({
  listProjects: async ({ caller }: HandlerInput<'listProjects'>): Promise<HttpResponse> =>
    jsonResponse([await projectOf(caller, applications, limits)]),

  readProject: async ({ caller, params }: HandlerInput<'readProject'>): Promise<HttpResponse> => {
    assertOwnApplication(caller, params.id);
    return jsonResponse(await projectOf(caller, applications, limits));
  },

  readProjectUsage: async ({ caller, params }: HandlerInput<'readProjectUsage'>): Promise<HttpResponse> => {
    assertOwnApplication(caller, params.id);
    return jsonResponse(await sessions.usage(caller));
  },

  startSession: async ({ caller, body, warnings, options }: HandlerInput<'startSession'>): Promise<HttpResponse> => {
    if (body.browserbaseSessionID !== undefined)
      return startedResponse((await sessions.read(caller, body.browserbaseSessionID.toLowerCase())).id);
    const request = normalizeCreate(body.browserbaseSessionCreateParams ?? {}, { ...offeredChoices, mount: 'compat' });
    // Warnings about Stagehand's own fields are left out, because these fields are not fields of a session.
    const createWarnings = warnings.filter(({ path }) => path.startsWith('browserbaseSessionCreateParams.'));
    const createdSession = await sessions.create(
      caller,
      { ...request, warnings: [...createWarnings, ...request.warnings] },
      options,
    );
    return { ...startedResponse(createdSession.session.id), headers: admittedHeaders(createdSession, options) };
  },

  endSession: async ({ caller, params }: HandlerInput<'endSession'>): Promise<HttpResponse> => {
    await releaseIdempotently(sessions, caller, params.id, { status: 'REQUEST_RELEASE' });
    return jsonResponse({ success: true });
  },

  listRecordingEvents: async ({ caller, params }: HandlerInput<'listRecordingEvents'>): Promise<HttpResponse> => {
    await sessions.read(caller, params.id);
    return jsonResponse([]);
  },
});

/** Rebuilds the response when a start is repeated with the same idempotency key. */
export const compatResponseBuilders = {
  startSession: {
    pickStoredParts: (body: JsonObject): JsonObject => body,
    rebuild: async (_: unknown, id: SessionId): Promise<HttpResponse> => startedResponse(id),
  },
};

/** With `available: false`, the client controls the browser itself. */
const startedResponse = (sessionId: string): HttpResponse =>
  jsonResponse({ success: true, data: { sessionId, available: false } });

function assertOwnApplication({ applicationId }: AgentCaller, id: string): void {
  if (id !== applicationId) throw notFound('Project', id);
}

async function projectOf(
  caller: AgentCaller,
  applications: Pick<Applications, 'ofAgent'>,
  limits: CompatParts['limits'],
): Promise<Project> {
  const { defaultTimeout, maxConcurrent } = await limits.effective(caller.applicationId);
  const { id, name, billingAccountId, createdAt, updatedAt } = await applications.ofAgent(caller);
  return {
    id,
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
    name,
    ownerId: billingAccountId,
    defaultTimeout,
    concurrency: maxConcurrent,
  };
}
