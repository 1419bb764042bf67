// HTTP handlers for agent keys.
import type { IdentityVerbs } from '../../domain/identity/identity.ts';
import { type Answer, answer, nothing, tagged } from './answer.ts';
import type { In } from './bind.ts';

export const agentKeyHandlers = (keys: IdentityVerbs['agentKeys']) => ({
  listAgentKeys: async ({ caller, params, query }: In<'listAgentKeys'>): Promise<Answer> =>
    answer(await keys.list(caller, params.appId, query)),

  createAgentKey: async ({ caller, params, body }: In<'createAgentKey'>): Promise<Answer> =>
    tagged(await keys.create(caller, params.appId, body)),

  readAgentKey: async ({ caller, params }: In<'readAgentKey'>): Promise<Answer> =>
    tagged(await keys.read(caller, params.appId, params.keyId)),

  changeAgentKey: async ({ caller, params, headers, body }: In<'changeAgentKey'>): Promise<Answer> =>
    tagged(await keys.change(caller, params.appId, params.keyId, headers['if-match'], body)),

  revokeAgentKey: async ({ caller, params, query }: In<'revokeAgentKey'>): Promise<Answer> => {
    await keys.revoke(caller, params.appId, params.keyId, query);
    return nothing();
  },

  rotateAgentKey: async ({ caller, params, body }: In<'rotateAgentKey'>): Promise<Answer> =>
    tagged(await keys.rotate(caller, params.appId, params.keyId, body)),
});
