// HTTP handlers for extensions.
import type { Extensions } from '../../domain/extensions/extensions.ts';
import type { HandlerInput } from './bind.ts';
import { emptyResponse, type HttpResponse, jsonResponse } from './http-response.ts';

export type ExtensionMethods = Pick<Extensions, 'upload' | 'read' | 'remove'>;

export const extensionHandlers = (extensions: ExtensionMethods) => ({
  uploadExtension: async ({ caller, file }: HandlerInput<'uploadExtension'>): Promise<HttpResponse> =>
    jsonResponse(await extensions.upload(caller, file)),

  readExtension: async ({ caller, params }: HandlerInput<'readExtension'>): Promise<HttpResponse> =>
    jsonResponse(await extensions.read(caller, params.id)),

  deleteExtension: async ({ caller, params }: HandlerInput<'deleteExtension'>): Promise<HttpResponse> => {
    await extensions.remove(caller, params.id);
    return emptyResponse();
  },
});
