// HTTP handlers for the settings with which the consumers of an application sign in.
import type { ConsumerServices } from '../../domain/consumers/open-consumers.ts';
import { type Answer, answer, nothing, tagged } from './answer.ts';
import type { In } from './bind.ts';

export const identityHandlers = ({ identities, providers }: Pick<ConsumerServices, 'identities' | 'providers'>) => ({
  readIdentity: async ({ caller, params }: In<'readIdentity'>): Promise<Answer> =>
    tagged(await identities.read(caller, params.appId)),

  replaceIdentity: async ({ caller, params, headers, body }: In<'replaceIdentity'>): Promise<Answer> =>
    tagged(await identities.replace(caller, params.appId, headers['if-match'], body)),

  listConsumerProviders: async ({ caller, params }: In<'listConsumerProviders'>): Promise<Answer> =>
    answer(await providers.list(caller, params.appId)),

  readConsumerProvider: async ({ caller, params }: In<'readConsumerProvider'>): Promise<Answer> =>
    tagged(await providers.read(caller, params.appId, params.providerId)),

  writeConsumerProvider: async ({ caller, params, headers, body }: In<'writeConsumerProvider'>): Promise<Answer> => {
    const { appId, providerId } = params;
    const { provider, isNew } = await providers.write(caller, appId, providerId, headers['if-match'], body);
    return { ...tagged(provider), status: isNew ? 201 : 200 };
  },

  removeConsumerProvider: async ({ caller, params, headers }: In<'removeConsumerProvider'>): Promise<Answer> => {
    await providers.remove(caller, params.appId, params.providerId, headers['if-match']);
    return nothing();
  },
});
