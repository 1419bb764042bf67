// HTTP handlers of how the consumers of an application sign in.
import type { Identities } from '../../domain/consumers/identities.ts';
import { type Answer, tagged } from './answer.ts';
import type { In } from './bind.ts';

export const identityHandlers = (identities: Pick<Identities, 'read' | 'replace'>) => ({
  readIdentity: async ({ caller, params }: In<'readIdentity'>): Promise<Answer> =>
    tagged(await identities.read(caller, params.appId)),

  replaceIdentity: async ({ caller, params, headers, body }: In<'replaceIdentity'>): Promise<Answer> =>
    tagged(await identities.replace(caller, params.appId, headers['if-match'], body)),
});
