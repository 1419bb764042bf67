// Handlers that only the compatibility mount has: projects, and the two routes that Stagehand 3 asks for.
import { type Project, TIMEOUT_DEFAULT_SECONDS } from '../../../contract/sessions.ts';
import { notFound } from '../../domain/faults.ts';
import type { Applications } from '../../domain/identity/applications.ts';
import type { AgentCaller } from '../../domain/identity/caller.ts';
import type { Sessions } from '../../domain/sessions/api.ts';
import { type Answer, answer } from './answer.ts';
import type { In } from './bind.ts';
import { normaliseCreate } from './normalise-create.ts';
import { releaseAgain } from './sessions.ts';

export interface CompatParts {
  readonly sessions: Sessions;
  readonly applications: Pick<Applications, 'ofAgent'>;
  readonly regions: readonly string[];
  /** Shown as `concurrency` of a project. */
  readonly slots: number;
}

export const compatHandlers = ({ sessions, applications, regions, slots }: CompatParts) => ({
  listProjects: async ({ caller }: In<'listProjects'>): Promise<Answer> =>
    answer([await projectOf(caller, applications, slots)]),

  readProject: async ({ caller, params }: In<'readProject'>): Promise<Answer> => {
    demandOwn(caller, params.id);
    return answer(await projectOf(caller, applications, slots));
  },

  readProjectUsage: async ({ caller, params }: In<'readProjectUsage'>): Promise<Answer> => {
    demandOwn(caller, params.id);
    return answer(await sessions.usage(caller));
  },

  startSession: async ({ caller, body, signal }: In<'startSession'>): Promise<Answer> => {
    if (body.browserbaseSessionID !== undefined)
      return started((await sessions.read(caller, body.browserbaseSessionID)).id);
    const wish = normaliseCreate(body.browserbaseSessionCreateParams ?? {}, { mount: 'compat', regions });
    return started((await sessions.create(caller, wish, { signal })).session.id);
  },

  endSession: async ({ caller, params }: In<'endSession'>): Promise<Answer> => {
    await releaseAgain(sessions, caller, params.id, { status: 'REQUEST_RELEASE' });
    return answer({ success: true });
  },
});

/** `available: false` makes the client drive the browser itself. */
const started = (sessionId: string): Answer => answer({ success: true, data: { sessionId, available: false } });

function demandOwn({ applicationId }: AgentCaller, id: string): void {
  if (id !== applicationId) throw notFound('Project', id);
}

async function projectOf(
  caller: AgentCaller,
  applications: Pick<Applications, 'ofAgent'>,
  slots: number,
): Promise<Project> {
  const { id, name, billingAccountId, createdAt, updatedAt } = await applications.ofAgent(caller);
  return {
    id,
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
    name,
    ownerId: billingAccountId,
    defaultTimeout: TIMEOUT_DEFAULT_SECONDS,
    concurrency: slots,
  };
}
