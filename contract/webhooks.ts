// Webhooks: endpoints to which the events of an application are sent, signed according to Standard Webhooks.
import { type Static, Type } from 'typebox';
import { Name } from './applications.ts';
import { AnyObject, Page, PageQuery, Time, Uuid } from './common.ts';
import { EVENT_TYPES } from './events.ts';

export const WEBHOOKS_PER_APPLICATION_MAX = 20;
/**
 * Maximum number of waiting deliveries per webhook. Deliveries for further events are created when waiting deliveries
 * have ended.
 */
export const WAITING_DELIVERIES_MAX = 1000;
export const DELIVERY_RETENTION_DAYS = 30;
const URL_CHARACTERS_MAX = 2048;

/** The type of the message that `POST …/test` sends. */
export const WEBHOOK_TEST_TYPE = 'webhook.test';

/**
 * Why a webhook was disabled. `caller`: a caller disabled it through the API. `failing`: every attempt failed for three
 * days. `gone`: the endpoint responded with 410.
 */
export const DISABLED_REASONS = ['caller', 'failing', 'gone'] as const;

const Url = Type.String({
  minLength: 1,
  maxLength: URL_CHARACTERS_MAX,
  description:
    'Address to which messages are sent with POST. https, without user name and password. Private and internal addresses are refused, both here and at each attempt; http is possible only for an address that the operator has allowed.',
});

const EventTypes = Type.Array(Type.Enum([...EVENT_TYPES]), {
  maxItems: EVENT_TYPES.length,
  description:
    'Types of events that are sent; `GET /v1/browsers/events` describes them. If the list is empty, events of all types are sent, including types that are added later.',
});

const WebhookStatus = Type.Enum(['enabled', 'disabled'], {
  description:
    '`disabled`: nothing is sent, and events from this period are not sent later. Waiting deliveries become `dead`, and can be sent again.',
});

const PUBLIC_KEY_DESCRIPTION = 'Ed25519 public key: `whpk_` followed by base64.';

export const Webhook = Type.Object(
  {
    id: Uuid('Id of the webhook.'),
    applicationId: Uuid('Id of the application.'),
    name: Type.String({ description: 'Name of the webhook.' }),
    url: Type.String({ description: 'Address to which messages are sent.' }),
    eventTypes: Type.Array(Type.String(), {
      description: 'Types of events that are sent. If the list is empty, events of all types are sent.',
    }),
    status: WebhookStatus,
    disabledReason: Type.Optional(
      Type.Enum([...DISABLED_REASONS], {
        description:
          '`caller`: the webhook was disabled over the API. `failing`: every attempt failed for three days. `gone`: the endpoint responded with 410.',
      }),
    ),
    disabledAt: Type.Optional(Time('When the webhook was disabled.')),
    failingSince: Type.Optional(Time('Time since which every attempt has failed.')),
    publicKey: Type.String({ description: `Verifies the signatures. ${PUBLIC_KEY_DESCRIPTION}` }),
    formerPublicKey: Type.Optional(
      Type.String({
        description: 'The key before the rotation. For 24 hours after a rotation, messages are signed with both keys.',
      }),
    ),
    formerPublicKeyUntil: Type.Optional(Time('Time until which messages are also signed with the former key.')),
    revision: Type.Integer({ description: 'Increases with each change.' }),
    createdAt: Time('When the webhook was created.'),
  },
  { description: 'An endpoint that gets events of the application.' },
);
export type Webhook = Static<typeof Webhook>;

export const WebhookPage = Page(Webhook);
export type WebhookPage = Static<typeof WebhookPage>;

export const CreateWebhook = Type.Object({
  name: Name('Name of the webhook.'),
  url: Url,
  eventTypes: Type.Optional(EventTypes),
});
export type CreateWebhook = Static<typeof CreateWebhook>;

export const ChangeWebhook = Type.Object({
  name: Type.Optional(Name('New name.')),
  url: Type.Optional(Url),
  eventTypes: Type.Optional(EventTypes),
  status: Type.Optional(WebhookStatus),
});
export type ChangeWebhook = Static<typeof ChangeWebhook>;

export const WebhookParams = Type.Object({
  appId: Uuid('Id of the application.'),
  webhookId: Uuid('Id of the webhook.'),
});

export const DELIVERY_STATES = ['waiting', 'delivered', 'dead'] as const;

const DELIVERY_FIELDS = {
  id: Uuid('Id of the delivery. Sent as `webhook-id`, the same for every attempt.'),
  webhookId: Uuid('Id of the webhook.'),
  eventType: Type.String({ description: `Type of the event, or \`${WEBHOOK_TEST_TYPE}\`.` }),
  eventId: Type.Optional(Type.String({ description: 'Id of the event. Absent for a test.' })),
  status: Type.Enum([...DELIVERY_STATES], {
    description:
      '`waiting`: waiting to be sent or sent again. `delivered`: the endpoint responded with a 2xx status. `dead`: given up after ten attempts in three days, or because the webhook was disabled.',
  }),
  attempts: Type.Integer({ description: 'Number of attempts since the delivery was last sent again by hand.' }),
  createdAt: Time('When the delivery was written.'),
  lastAttemptAt: Type.Optional(Time('When the last attempt began.')),
  nextAttemptAt: Type.Optional(Time('When the next attempt is made.')),
  deliveredAt: Type.Optional(Time('When the endpoint accepted the message.')),
  answerStatus: Type.Optional(Type.Integer({ description: 'HTTP status of the last response.' })),
  failure: Type.Optional(Type.String({ description: 'Why the last attempt failed.' })),
};

export const WebhookDelivery = Type.Object(DELIVERY_FIELDS, {
  description: 'One event for one webhook. Kept for 30 days.',
});
export type WebhookDelivery = Static<typeof WebhookDelivery>;

export const WebhookDeliveryPage = Page(WebhookDelivery);
export type WebhookDeliveryPage = Static<typeof WebhookDeliveryPage>;

export const WebhookDeliveryWithMessage = Type.Object(
  {
    ...DELIVERY_FIELDS,
    message: AnyObject('What is sent: `type`, `timestamp` and `data`. For an event, `data` is the event.'),
  },
  { description: 'A delivery with its message.' },
);
export type WebhookDeliveryWithMessage = Static<typeof WebhookDeliveryWithMessage>;

export const WebhookDeliveriesQuery = Type.Object({
  status: Type.Optional(Type.Enum([...DELIVERY_STATES], { description: 'Return only deliveries in this state.' })),
  ...PageQuery.properties,
});
export type WebhookDeliveriesQuery = Static<typeof WebhookDeliveriesQuery>;

export const WebhookDeliveryParams = Type.Object({
  ...WebhookParams.properties,
  deliveryId: Uuid('Id of the delivery.'),
});
