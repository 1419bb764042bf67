// HTTP handlers for operations that an application configures.
import type { ConfiguredOperations } from '../../domain/configured-operations/configured-operations.ts';
import type { HandlerInput } from './bind.ts';
import { emptyResponse, type HttpResponse, jsonResponse, responseWithETag } from './http-response.ts';

export type ConfiguredOperationMethods = Pick<
  ConfiguredOperations,
  'list' | 'read' | 'configure' | 'publish' | 'withdraw' | 'delete'
>;

export const configuredOperationHandlers = (operations: ConfiguredOperationMethods) => ({
  listConfiguredOperations: async ({
    caller,
    params,
    query,
  }: HandlerInput<'listConfiguredOperations'>): Promise<HttpResponse> =>
    jsonResponse(await operations.list(caller, params.appId, query)),

  readConfiguredOperation: async ({
    caller,
    params,
    query,
  }: HandlerInput<'readConfiguredOperation'>): Promise<HttpResponse> =>
    responseWithETag(await operations.read(caller, params.appId, params.id, query.revision)),

  configureOperation: async ({
    caller,
    params,
    headers,
    body,
  }: HandlerInput<'configureOperation'>): Promise<HttpResponse> => {
    const { operation, isNew } = await operations.configure(caller, params.appId, params.id, headers['if-match'], body);
    return { ...responseWithETag(operation), status: isNew ? 201 : 200 };
  },

  publishOperation: async ({ caller, params }: HandlerInput<'publishOperation'>): Promise<HttpResponse> =>
    responseWithETag(await operations.publish(caller, params.appId, params.id)),

  withdrawOperation: async ({ caller, params }: HandlerInput<'withdrawOperation'>): Promise<HttpResponse> =>
    responseWithETag(await operations.withdraw(caller, params.appId, params.id)),

  deleteOperation: async ({ caller, params, headers }: HandlerInput<'deleteOperation'>): Promise<HttpResponse> => {
    await operations.delete(caller, params.appId, params.id, headers['if-match']);
    return emptyResponse();
  },
});
