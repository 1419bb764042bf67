// HTTP handlers for Actions.
import type { AgentActions } from '../../domain/actions/agent-actions.ts';
import type { ApplicationActions } from '../../domain/actions/application-actions.ts';
import { peerOf } from '../../domain/device/from-session.ts';
import type { HandlerInput } from './bind.ts';
import { type HttpResponse, jsonResponse } from './http-response.ts';
import { invocationResponse, waitSecondsOf } from './invocations.ts';

export interface ActionMethods {
  readonly agent: Pick<AgentActions, 'prepare' | 'read' | 'execute' | 'cancel'>;
  readonly applicationActions: Pick<ApplicationActions, 'list' | 'read' | 'readApproval' | 'challenge' | 'decide'>;
}

export const actionHandlers = ({ agent, applicationActions }: ActionMethods) => ({
  prepareAction: async ({ caller, params, body, headers }: HandlerInput<'prepareAction'>): Promise<HttpResponse> => {
    const { appId, operationId } = params;
    const { action, isReplayed } = await agent.prepare(caller, appId, operationId, body, headers['idempotency-key']);
    return { status: 201, body: action, ...(isReplayed ? { headers: { 'idempotency-replayed': 'true' } } : {}) };
  },

  readAction: async ({ caller, params, query, signal }: HandlerInput<'readAction'>): Promise<HttpResponse> =>
    jsonResponse(await agent.read(caller, params.appId, params.jobId, query, signal)),

  executeAction: async ({
    caller,
    params,
    body,
    headers,
    signal,
  }: HandlerInput<'executeAction'>): Promise<HttpResponse> => {
    const options = { waitSeconds: waitSecondsOf(headers.prefer), signal };
    const { invocation } = await agent.execute(caller, params.appId, params.jobId, body, options);
    return invocationResponse(params.appId, invocation, {});
  },

  cancelAction: async ({ caller, params }: HandlerInput<'cancelAction'>): Promise<HttpResponse> =>
    jsonResponse(await agent.cancel(caller, params.appId, params.jobId)),

  listApplicationActions: async ({
    caller,
    params,
    query,
  }: HandlerInput<'listApplicationActions'>): Promise<HttpResponse> =>
    jsonResponse(await applicationActions.list(caller, params.appId, query)),

  readApplicationAction: async ({ caller, params }: HandlerInput<'readApplicationAction'>): Promise<HttpResponse> =>
    jsonResponse(await applicationActions.read(caller, params.appId, params.jobId)),

  readApproval: async ({ caller, params }: HandlerInput<'readApproval'>): Promise<HttpResponse> =>
    jsonResponse(await applicationActions.readApproval(caller, params.jobId)),

  challengeAction: async ({ caller, params, origin }: HandlerInput<'challengeAction'>): Promise<HttpResponse> =>
    jsonResponse(await applicationActions.challenge(caller, params.appId, params.jobId, origin)),

  decideAction: async ({
    caller,
    params,
    body,
    origin,
    presented,
  }: HandlerInput<'decideAction'>): Promise<HttpResponse> => {
    const sender = { origin, peer: peerOf(presented) };
    return jsonResponse(await applicationActions.decide(caller, params.appId, params.jobId, body, sender));
  },
});
