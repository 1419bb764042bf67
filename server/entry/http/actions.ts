// HTTP handlers for Actions.
import type { AgentActions } from '../../domain/actions/agent-actions.ts';
import type { ApplicationActions } from '../../domain/actions/application-actions.ts';
import { peerOf } from '../../domain/device/from-session.ts';
import { type Answer, answer } from './answer.ts';
import type { In } from './bind.ts';
import { invoked, waitOf } from './invocations.ts';

export interface ActionVerbs {
  readonly agent: Pick<AgentActions, 'prepare' | 'read' | 'execute' | 'cancel'>;
  readonly ofApplication: Pick<ApplicationActions, 'list' | 'read' | 'readApproval' | 'challenge' | 'decide'>;
}

export const actionHandlers = ({ agent, ofApplication }: ActionVerbs) => ({
  prepareAction: async ({ caller, params, body, headers }: In<'prepareAction'>): Promise<Answer> => {
    const { appId, operationId } = params;
    const { action, isReplayed } = await agent.prepare(caller, appId, operationId, body, headers['idempotency-key']);
    return { status: 201, body: action, ...(isReplayed ? { headers: { 'idempotency-replayed': 'true' } } : {}) };
  },

  readAction: async ({ caller, params, query, signal }: In<'readAction'>): Promise<Answer> =>
    answer(await agent.read(caller, params.appId, params.jobId, query, signal)),

  executeAction: async ({ caller, params, body, headers, signal }: In<'executeAction'>): Promise<Answer> => {
    const options = { waitSeconds: waitOf(headers.prefer), signal };
    const { invocation } = await agent.execute(caller, params.appId, params.jobId, body, options);
    return invoked(params.appId, invocation, {});
  },

  cancelAction: async ({ caller, params }: In<'cancelAction'>): Promise<Answer> =>
    answer(await agent.cancel(caller, params.appId, params.jobId)),

  listApplicationActions: async ({ caller, params, query }: In<'listApplicationActions'>): Promise<Answer> =>
    answer(await ofApplication.list(caller, params.appId, query)),

  readApplicationAction: async ({ caller, params }: In<'readApplicationAction'>): Promise<Answer> =>
    answer(await ofApplication.read(caller, params.appId, params.jobId)),

  readApproval: async ({ caller, params }: In<'readApproval'>): Promise<Answer> =>
    answer(await ofApplication.readApproval(caller, params.jobId)),

  challengeAction: async ({ caller, params, origin }: In<'challengeAction'>): Promise<Answer> =>
    answer(await ofApplication.challenge(caller, params.appId, params.jobId, origin)),

  decideAction: async ({ caller, params, body, origin, presented }: In<'decideAction'>): Promise<Answer> => {
    const sender = { origin, peer: peerOf(presented) };
    return answer(await ofApplication.decide(caller, params.appId, params.jobId, body, sender));
  },
});
