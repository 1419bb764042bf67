// HTTP handlers for credentials of other services.
import type { StoredCredentials } from '../../domain/stored-credentials/stored-credentials.ts';
import { type Answer, answer, nothing, tagged } from './answer.ts';
import type { In } from './bind.ts';

export type StoredCredentialVerbs = Pick<StoredCredentials, 'list' | 'read' | 'write' | 'rollBack' | 'delete'>;

export const storedCredentialHandlers = (credentials: StoredCredentialVerbs) => ({
  listStoredCredentials: async ({ caller, params, query }: In<'listStoredCredentials'>): Promise<Answer> =>
    answer(await credentials.list(caller, params.appId, query)),

  readStoredCredential: async ({ caller, params }: In<'readStoredCredential'>): Promise<Answer> =>
    tagged(await credentials.read(caller, params.appId, params.id)),

  writeStoredCredential: async ({ caller, params, headers, body }: In<'writeStoredCredential'>): Promise<Answer> => {
    const { credential, isNew } = await credentials.write(caller, params.appId, params.id, headers['if-match'], body);
    return { ...tagged(credential), status: isNew ? 201 : 200 };
  },

  rollBackStoredCredential: async ({ caller, params }: In<'rollBackStoredCredential'>): Promise<Answer> =>
    tagged(await credentials.rollBack(caller, params.appId, params.id)),

  deleteStoredCredential: async ({ caller, params, headers, query }: In<'deleteStoredCredential'>): Promise<Answer> => {
    await credentials.delete(caller, params.appId, params.id, headers['if-match'], query.force === 'true');
    return nothing();
  },
});
