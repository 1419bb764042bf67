// Webhooks and their deliveries.
import { ApplicationParams } from '../applications.ts';
import { IfMatchHeader, PageQuery } from '../common.ts';
import type { Operation } from '../operation.ts';
import {
  ChangeWebhook,
  CreateWebhook,
  Webhook,
  WebhookDeliveriesQuery,
  WebhookDelivery,
  WebhookDeliveryPage,
  WebhookDeliveryParams,
  WebhookDeliveryWithMessage,
  WebhookPage,
  WebhookParams,
} from '../webhooks.ts';
import { ETAG, READ_APPLICATIONS_SCOPES } from './shared.ts';

const WEBHOOKS_PATH = '/v1/applications/{appId}/webhooks';
const READ = {
  tag: 'Webhooks',
  credential: 'account',
  scopes: READ_APPLICATIONS_SCOPES,
  isWrite: false,
  mount: 'native',
} as const;
const WRITE = {
  tag: 'Webhooks',
  credential: 'account',
  scopes: ['applications:write'],
  isWrite: true,
  mount: 'native',
} as const;

export const WEBHOOK_OPERATIONS = {
  listWebhooks: {
    ...READ,
    method: 'GET',
    path: WEBHOOKS_PATH,
    summary: 'List webhooks',
    description: 'Returns the webhooks of the application, newest first.',
    params: ApplicationParams,
    query: PageQuery,
    responses: { 200: { description: 'A page of webhooks.', schema: WebhookPage } },
    errors: ['not_found'],
  },
  createWebhook: {
    ...WRITE,
    method: 'POST',
    path: WEBHOOKS_PATH,
    summary: 'Create a webhook',
    description:
      'Creates a webhook, which receives events from now on. Each message is signed with a key that is used only for this webhook (Standard Webhooks, `v1a`); `publicKey` in the response verifies it. Requires the role developer. At most 20 webhooks per application.',
    unknownFields: 'refuse',
    params: ApplicationParams,
    body: CreateWebhook,
    bodyExample: {
      name: 'billing',
      url: 'https://hooks.example.com/berth',
      eventTypes: ['session.started', 'session.ended'],
    },
    responses: { 201: { description: 'The webhook.', schema: Webhook, headers: ETAG } },
    errors: ['not_found', 'limit_reached'],
  },
  readWebhook: {
    ...READ,
    method: 'GET',
    path: `${WEBHOOKS_PATH}/{webhookId}`,
    summary: 'Read a webhook',
    description: 'Returns one webhook, with the public key that verifies its messages.',
    params: WebhookParams,
    responses: { 200: { description: 'The webhook.', schema: Webhook, headers: ETAG } },
    errors: ['not_found'],
  },
  changeWebhook: {
    ...WRITE,
    method: 'PATCH',
    path: `${WEBHOOKS_PATH}/{webhookId}`,
    summary: 'Change a webhook',
    description:
      'Changes the name, the address or the types of events, or enables or disables the webhook. Waiting messages are sent to the new address. A webhook that is enabled gets only events that occur after the change. Requires the role developer.',
    unknownFields: 'refuse',
    params: WebhookParams,
    headers: IfMatchHeader,
    body: ChangeWebhook,
    bodyExample: { status: 'enabled' },
    responses: { 200: { description: 'The webhook.', schema: Webhook, headers: ETAG } },
    errors: ['not_found', 'precondition_failed', 'precondition_required'],
  },
  deleteWebhook: {
    ...WRITE,
    method: 'DELETE',
    path: `${WEBHOOKS_PATH}/{webhookId}`,
    summary: 'Delete a webhook',
    description: 'Deletes the webhook, its key and its deliveries. Requires the role developer.',
    params: WebhookParams,
    responses: { 204: { description: 'The webhook was deleted.' } },
    errors: ['not_found'],
  },
  rotateWebhookKey: {
    ...WRITE,
    method: 'POST',
    path: `${WEBHOOKS_PATH}/{webhookId}/rotate-key`,
    summary: 'Rotate the key of a webhook',
    description:
      'Creates a new key. For 24 hours, messages are signed with both keys, so that the endpoint can switch to the new one. Requires the role developer.',
    params: WebhookParams,
    responses: { 200: { description: 'The webhook, with both public keys.', schema: Webhook, headers: ETAG } },
    errors: ['not_found', 'precondition_failed'],
  },
  testWebhook: {
    ...WRITE,
    method: 'POST',
    path: `${WEBHOOKS_PATH}/{webhookId}/test`,
    summary: 'Test a webhook',
    description:
      'Sends a message of the type `webhook.test`. Read the delivery for the result. Requires the role developer.',
    params: WebhookParams,
    responses: { 201: { description: 'The delivery.', schema: WebhookDelivery } },
    errors: ['not_found', 'not_ready', 'limit_reached'],
  },
  listWebhookDeliveries: {
    ...READ,
    method: 'GET',
    path: `${WEBHOOKS_PATH}/{webhookId}/deliveries`,
    summary: 'List deliveries',
    description: 'Returns the deliveries of the last 30 days, newest first.',
    params: WebhookParams,
    query: WebhookDeliveriesQuery,
    responses: { 200: { description: 'A page of deliveries.', schema: WebhookDeliveryPage } },
    errors: ['not_found'],
  },
  readWebhookDelivery: {
    ...READ,
    method: 'GET',
    path: `${WEBHOOKS_PATH}/{webhookId}/deliveries/{deliveryId}`,
    summary: 'Read a delivery',
    description: 'Returns one delivery with its message.',
    params: WebhookDeliveryParams,
    responses: { 200: { description: 'The delivery.', schema: WebhookDeliveryWithMessage } },
    errors: ['not_found'],
  },
  redeliverWebhookDelivery: {
    ...WRITE,
    method: 'POST',
    path: `${WEBHOOKS_PATH}/{webhookId}/deliveries/{deliveryId}/redeliver`,
    summary: 'Send a delivery again',
    description:
      'Sends the message again at once, with the same `webhook-id`, regardless of the current state of the delivery. If the attempt fails, the retries start again from the beginning. Requires the role developer.',
    params: WebhookDeliveryParams,
    responses: { 200: { description: 'The delivery.', schema: WebhookDelivery } },
    errors: ['not_found', 'not_ready'],
  },
} as const satisfies Readonly<Record<string, Operation>>;
