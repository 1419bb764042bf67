// HTTP handlers for applications.
import type { IdentityVerbs } from '../../domain/identity/identity.ts';
import { type Answer, answer, tagged } from './answer.ts';
import type { In } from './bind.ts';

export const applicationHandlers = (applications: IdentityVerbs['applications']) => ({
  listApplications: async ({ caller, query }: In<'listApplications'>): Promise<Answer> =>
    answer(await applications.list(caller, query)),

  createApplication: async ({ caller, body }: In<'createApplication'>): Promise<Answer> =>
    tagged(await applications.create(caller, body)),

  readApplication: async ({ caller, params }: In<'readApplication'>): Promise<Answer> =>
    tagged(await applications.read(caller, params.appId)),

  renameApplication: async ({ caller, params, headers, body }: In<'renameApplication'>): Promise<Answer> =>
    tagged(await applications.rename(caller, params.appId, headers['if-match'], body)),
});
