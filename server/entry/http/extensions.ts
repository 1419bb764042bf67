// HTTP handlers for extensions.
import type { Extensions } from '../../domain/extensions/extensions.ts';
import { type Answer, answer, nothing } from './answer.ts';
import type { In } from './bind.ts';

export type ExtensionVerbs = Pick<Extensions, 'upload' | 'read' | 'remove'>;

export const extensionHandlers = (extensions: ExtensionVerbs) => ({
  uploadExtension: async ({ caller, file }: In<'uploadExtension'>): Promise<Answer> =>
    answer(await extensions.upload(caller, file)),

  readExtension: async ({ caller, params }: In<'readExtension'>): Promise<Answer> =>
    answer(await extensions.read(caller, params.id)),

  deleteExtension: async ({ caller, params }: In<'deleteExtension'>): Promise<Answer> => {
    await extensions.remove(caller, params.id);
    return nothing();
  },
});
