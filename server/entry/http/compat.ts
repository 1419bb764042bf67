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
import { type Answer, answer } from './answer.ts';
import type { In } from './bind.ts';
import { normaliseCreate, type Offered } from './normalise-create.ts';
import { admittedHeaders, releaseIdempotently } from './sessions.ts';

export interface CompatParts {
  readonly sessions: Sessions;
  readonly applications: Pick<Applications, 'ofAgent'>;
  readonly limits: Pick<Limits, 'effective'>;
  readonly offered: Offered;
}

export const compatHandlers = ({ sessions, applications, limits, offered }: CompatParts) => ({
  listProjects: async ({ caller }: In<'listProjects'>): Promise<Answer> =>
    answer([await projectOf(caller, applications, limits)]),

  readProject: async ({ caller, params }: In<'readProject'>): Promise<Answer> => {
    assertOwn(caller, params.id);
    return answer(await projectOf(caller, applications, limits));
  },

  readProjectUsage: async ({ caller, params }: In<'readProjectUsage'>): Promise<Answer> => {
    assertOwn(caller, params.id);
    return answer(await sessions.usage(caller));
  },

  startSession: async ({ caller, body, options }: In<'startSession'>): Promise<Answer> => {
    if (body.browserbaseSessionID !== undefined)
      return started((await sessions.read(caller, body.browserbaseSessionID)).id);
    const request = normaliseCreate(body.browserbaseSessionCreateParams ?? {}, { ...offered, mount: 'compat' });
    const created = await sessions.create(caller, request, options);
    return { ...started(created.session.id), headers: admittedHeaders(created, options) };
  },

  endSession: async ({ caller, params }: In<'endSession'>): Promise<Answer> => {
    await releaseIdempotently(sessions, caller, params.id, { status: 'REQUEST_RELEASE' });
    return answer({ success: true });
  },

  listRecordingEvents: async ({ caller, params }: In<'listRecordingEvents'>): Promise<Answer> => {
    await sessions.read(caller, params.id);
    return answer([]);
  },
});

/** Rebuilds the response when a start is repeated with the same idempotency key. */
export const compatAnswerBuilders = {
  startSession: {
    keep: (body: JsonObject): JsonObject => body,
    again: async (_: unknown, id: SessionId): Promise<Answer> => started(id),
  },
};

/** `available: false` tells the client to control the browser itself. */
const started = (sessionId: string): Answer => answer({ success: true, data: { sessionId, available: false } });

function assertOwn({ applicationId }: AgentCaller, id: string): void {
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
