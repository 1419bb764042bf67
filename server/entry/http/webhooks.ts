// HTTP handlers for webhooks.
import type { Webhooks } from '../../domain/webhooks/webhooks.ts';
import { type Answer, answer, nothing, tagged } from './answer.ts';
import type { In } from './bind.ts';

export type WebhookVerbs = Pick<
  Webhooks,
  'create' | 'list' | 'read' | 'change' | 'remove' | 'rotateKey' | 'test' | 'deliveries' | 'readDelivery' | 'redeliver'
>;

export const webhookHandlers = (webhooks: WebhookVerbs) => ({
  listWebhooks: async ({ caller, params, query }: In<'listWebhooks'>): Promise<Answer> =>
    answer(await webhooks.list(caller, params.appId, query)),

  createWebhook: async ({ caller, params, body }: In<'createWebhook'>): Promise<Answer> =>
    tagged(await webhooks.create(caller, params.appId, body)),

  readWebhook: async ({ caller, params }: In<'readWebhook'>): Promise<Answer> =>
    tagged(await webhooks.read(caller, params.appId, params.webhookId)),

  changeWebhook: async ({ caller, params, headers, body }: In<'changeWebhook'>): Promise<Answer> =>
    tagged(await webhooks.change(caller, params.appId, params.webhookId, headers['if-match'], body)),

  deleteWebhook: async ({ caller, params }: In<'deleteWebhook'>): Promise<Answer> => {
    await webhooks.remove(caller, params.appId, params.webhookId);
    return nothing();
  },

  rotateWebhookKey: async ({ caller, params }: In<'rotateWebhookKey'>): Promise<Answer> =>
    tagged(await webhooks.rotateKey(caller, params.appId, params.webhookId)),

  testWebhook: async ({ caller, params }: In<'testWebhook'>): Promise<Answer> =>
    answer(await webhooks.test(caller, params.appId, params.webhookId)),

  listWebhookDeliveries: async ({ caller, params, query }: In<'listWebhookDeliveries'>): Promise<Answer> =>
    answer(await webhooks.deliveries(caller, params.appId, params.webhookId, query)),

  readWebhookDelivery: async ({ caller, params }: In<'readWebhookDelivery'>): Promise<Answer> =>
    answer(await webhooks.readDelivery(caller, params.appId, params.webhookId, params.deliveryId)),

  redeliverWebhookDelivery: async ({ caller, params }: In<'redeliverWebhookDelivery'>): Promise<Answer> =>
    answer(await webhooks.redeliver(caller, params.appId, params.webhookId, params.deliveryId)),
});
