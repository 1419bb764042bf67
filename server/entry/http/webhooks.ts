// HTTP handlers for webhooks.
import type { Webhooks } from '../../domain/webhooks/webhooks.ts';
import type { HandlerInput } from './bind.ts';
import { emptyResponse, type HttpResponse, jsonResponse, responseWithETag } from './http-response.ts';

export type WebhookMethods = Pick<
  Webhooks,
  'create' | 'list' | 'read' | 'change' | 'remove' | 'rotateKey' | 'test' | 'deliveries' | 'readDelivery' | 'redeliver'
>;

export const webhookHandlers = (webhooks: WebhookMethods) => ({
  listWebhooks: async ({ caller, params, query }: HandlerInput<'listWebhooks'>): Promise<HttpResponse> =>
    jsonResponse(await webhooks.list(caller, params.appId, query)),

  createWebhook: async ({ caller, params, body }: HandlerInput<'createWebhook'>): Promise<HttpResponse> =>
    responseWithETag(await webhooks.create(caller, params.appId, body)),

  readWebhook: async ({ caller, params }: HandlerInput<'readWebhook'>): Promise<HttpResponse> =>
    responseWithETag(await webhooks.read(caller, params.appId, params.webhookId)),

  changeWebhook: async ({ caller, params, headers, body }: HandlerInput<'changeWebhook'>): Promise<HttpResponse> =>
    responseWithETag(await webhooks.change(caller, params.appId, params.webhookId, headers['if-match'], body)),

  deleteWebhook: async ({ caller, params }: HandlerInput<'deleteWebhook'>): Promise<HttpResponse> => {
    await webhooks.remove(caller, params.appId, params.webhookId);
    return emptyResponse();
  },

  rotateWebhookKey: async ({ caller, params }: HandlerInput<'rotateWebhookKey'>): Promise<HttpResponse> =>
    responseWithETag(await webhooks.rotateKey(caller, params.appId, params.webhookId)),

  testWebhook: async ({ caller, params }: HandlerInput<'testWebhook'>): Promise<HttpResponse> =>
    jsonResponse(await webhooks.test(caller, params.appId, params.webhookId)),

  listWebhookDeliveries: async ({
    caller,
    params,
    query,
  }: HandlerInput<'listWebhookDeliveries'>): Promise<HttpResponse> =>
    jsonResponse(await webhooks.deliveries(caller, params.appId, params.webhookId, query)),

  readWebhookDelivery: async ({ caller, params }: HandlerInput<'readWebhookDelivery'>): Promise<HttpResponse> =>
    jsonResponse(await webhooks.readDelivery(caller, params.appId, params.webhookId, params.deliveryId)),

  redeliverWebhookDelivery: async ({
    caller,
    params,
  }: HandlerInput<'redeliverWebhookDelivery'>): Promise<HttpResponse> =>
    jsonResponse(await webhooks.redeliver(caller, params.appId, params.webhookId, params.deliveryId)),
});
