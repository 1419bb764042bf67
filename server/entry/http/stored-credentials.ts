// HTTP handlers for credentials for external services.
import type { StoredCredentials } from '../../domain/stored-credentials/stored-credentials.ts';
import type { HandlerInput } from './bind.ts';
import { emptyResponse, type HttpResponse, jsonResponse, responseWithETag } from './http-response.ts';

export type StoredCredentialMethods = Pick<StoredCredentials, 'list' | 'read' | 'write' | 'rollBack' | 'delete'>;

export const storedCredentialHandlers = (credentials: StoredCredentialMethods) => ({
  listStoredCredentials: async ({
    caller,
    params,
    query,
  }: HandlerInput<'listStoredCredentials'>): Promise<HttpResponse> =>
    jsonResponse(await credentials.list(caller, params.appId, query)),

  readStoredCredential: async ({ caller, params }: HandlerInput<'readStoredCredential'>): Promise<HttpResponse> =>
    responseWithETag(await credentials.read(caller, params.appId, params.id)),

  writeStoredCredential: async ({
    caller,
    params,
    headers,
    body,
  }: HandlerInput<'writeStoredCredential'>): Promise<HttpResponse> => {
    const { credential, isNew } = await credentials.write(caller, params.appId, params.id, headers['if-match'], body);
    return { ...responseWithETag(credential), status: isNew ? 201 : 200 };
  },

  rollBackStoredCredential: async ({
    caller,
    params,
  }: HandlerInput<'rollBackStoredCredential'>): Promise<HttpResponse> =>
    responseWithETag(await credentials.rollBack(caller, params.appId, params.id)),

  deleteStoredCredential: async ({
    caller,
    params,
    headers,
    query,
  }: HandlerInput<'deleteStoredCredential'>): Promise<HttpResponse> => {
    await credentials.delete(caller, params.appId, params.id, headers['if-match'], query.force === 'true');
    return emptyResponse();
  },
});
