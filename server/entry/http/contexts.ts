// HTTP handlers for contexts. Official clients require fields of an obsolete upload API, so the compatibility mount
// adds placeholders.
import type { Warning } from '../../../contract/common.ts';
import type { Context } from '../../../contract/contexts.ts';
import type { ContextMethods } from '../../domain/contexts/contexts.ts';
import type { HandlerInput, MountName } from './bind.ts';
import { emptyResponse, type HttpResponse, jsonResponse } from './http-response.ts';

const INERT_FIELDS = {
  publicKey: '',
  cipherAlgorithm: 'AES-256-CBC',
  initializationVectorSize: 16,
  uploadUrl: '',
} as const;

export const contextHandlers = (contexts: ContextMethods) => ({
  createContext: async ({ caller, body, mount, warnings }: HandlerInput<'createContext'>): Promise<HttpResponse> =>
    jsonResponse(withWarnings(contextBody(await contexts.create(caller, body), mount), warnings)),

  listContexts: async ({ caller, query, mount }: HandlerInput<'listContexts'>): Promise<HttpResponse> => {
    const page = await contexts.list(caller, query);
    return jsonResponse(
      page.contexts.map(context => contextBody(context, mount)),
      page.nextBefore === undefined ? {} : { 'x-next-before': page.nextBefore },
    );
  },

  readContext: async ({ caller, params, mount }: HandlerInput<'readContext'>): Promise<HttpResponse> =>
    jsonResponse(contextBody(await contexts.read(caller, params.id), mount)),

  deleteContext: async ({ caller, params }: HandlerInput<'deleteContext'>): Promise<HttpResponse> => {
    await contexts.destroy(caller, params.id);
    return emptyResponse();
  },

  listContextVersions: async ({ caller, params }: HandlerInput<'listContextVersions'>): Promise<HttpResponse> =>
    jsonResponse(await contexts.versions(caller, params.id)),

  restoreContext: async ({ caller, params, body }: HandlerInput<'restoreContext'>): Promise<HttpResponse> =>
    jsonResponse(await contexts.restore(caller, params.id, body.version)),

  forkContext: async ({ caller, params, body, signal }: HandlerInput<'forkContext'>): Promise<HttpResponse> =>
    jsonResponse(await contexts.fork(caller, params.id, body, signal)),

  exportContext: async ({ caller, params, query, isHead }: HandlerInput<'exportContext'>): Promise<HttpResponse> => {
    const { bytes, body } = await contexts.exportState(caller, params.id, query);
    if (isHead) body.destroy();
    return {
      contentType: 'application/json; charset=utf-8',
      headers: { 'content-length': String(bytes) },
      ...(isHead ? {} : { body }),
    };
  },

  importContext: async ({
    caller,
    params,
    body,
    signal,
    warnings,
  }: HandlerInput<'importContext'>): Promise<HttpResponse> =>
    jsonResponse(withWarnings(await contexts.importState(caller, params.id, body, signal), warnings)),
});

const withWarnings = (context: Context, warnings: readonly Warning[]): Context =>
  warnings.length > 0 ? { ...context, warnings: [...warnings] } : context;

const contextBody = (context: Context, mount: MountName): Context =>
  mount === 'compat' ? { ...context, ...INERT_FIELDS } : context;
