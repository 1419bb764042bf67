// HTTP handlers for contexts. Official clients require fields of an obsolete upload API, so the compatibility mount
// adds placeholders.
import type { Warning } from '../../../contract/common.ts';
import type { Context } from '../../../contract/contexts.ts';
import type { ContextVerbs } from '../../domain/contexts/contexts.ts';
import { type Answer, answer, nothing } from './answer.ts';
import type { In, MountName } from './bind.ts';

const INERT_FIELDS = {
  publicKey: '',
  cipherAlgorithm: 'AES-256-CBC',
  initializationVectorSize: 16,
  uploadUrl: '',
} as const;

export const contextHandlers = (contexts: ContextVerbs) => ({
  createContext: async ({ caller, body, mount, warnings }: In<'createContext'>): Promise<Answer> =>
    answer(withWarnings(shown(await contexts.create(caller, body), mount), warnings)),

  listContexts: async ({ caller, query, mount }: In<'listContexts'>): Promise<Answer> => {
    const page = await contexts.list(caller, query);
    return answer(
      page.contexts.map(context => shown(context, mount)),
      page.nextBefore === undefined ? {} : { 'x-next-before': page.nextBefore },
    );
  },

  readContext: async ({ caller, params, mount }: In<'readContext'>): Promise<Answer> =>
    answer(shown(await contexts.read(caller, params.id), mount)),

  deleteContext: async ({ caller, params }: In<'deleteContext'>): Promise<Answer> => {
    await contexts.destroy(caller, params.id);
    return nothing();
  },

  listContextVersions: async ({ caller, params }: In<'listContextVersions'>): Promise<Answer> =>
    answer(await contexts.versions(caller, params.id)),

  restoreContext: async ({ caller, params, body }: In<'restoreContext'>): Promise<Answer> =>
    answer(await contexts.restore(caller, params.id, body.version)),

  forkContext: async ({ caller, params, body, signal }: In<'forkContext'>): Promise<Answer> =>
    answer(await contexts.fork(caller, params.id, body, signal)),

  exportContext: async ({ caller, params, isHead }: In<'exportContext'>): Promise<Answer> => {
    const { bytes, body } = await contexts.exportState(caller, params.id);
    if (isHead) body.destroy();
    return {
      contentType: 'application/json; charset=utf-8',
      headers: { 'content-length': String(bytes) },
      ...(isHead ? {} : { body }),
    };
  },

  importContext: async ({ caller, params, body, signal, warnings }: In<'importContext'>): Promise<Answer> =>
    answer(withWarnings(await contexts.importState(caller, params.id, body, signal), warnings)),
});

const withWarnings = (context: Context, warnings: readonly Warning[]): Context =>
  warnings.length > 0 ? { ...context, warnings: [...warnings] } : context;

const shown = (context: Context, mount: MountName): Context =>
  mount === 'compat' ? { ...context, ...INERT_FIELDS } : context;
