// The bodies of webhook messages, and the headers that sign them, as specified by Standard Webhooks:
// https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
import { WEBHOOK_TEST_TYPE } from '../../../contract/webhooks.ts';
import type { SessionEventRow } from '../../engines/store/rows/events.ts';
import type { DeliveryRow, WebhookRow } from '../../engines/store/rows/webhooks.ts';
import type { ApplicationId, DeliveryId } from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';
import { eventView } from '../events/events.ts';

export function deliveryOf(
  { id: webhookId, applicationId }: Pick<WebhookRow, 'id' | 'applicationId'>,
  id: DeliveryId,
  event: SessionEventRow,
  now: Date,
): DeliveryRow {
  const { time, ...eventFields } = eventView(event);
  const body = bodyOf(event.type, event.at, applicationId, { ...eventFields, time });
  return {
    ...{ id, webhookId, applicationId, eventId: event.id, eventType: event.type, body },
    ...{ status: 'waiting', attempts: 0, createdAt: now, dueAt: now },
  };
}

export function testDelivery(
  { id: webhookId, applicationId }: Pick<WebhookRow, 'id' | 'applicationId'>,
  id: DeliveryId,
  now: Date,
): DeliveryRow {
  return {
    ...{ id, webhookId, applicationId, eventType: WEBHOOK_TEST_TYPE },
    body: bodyOf(WEBHOOK_TEST_TYPE, now, applicationId, { webhookId }),
    ...{ status: 'waiting', attempts: 0, createdAt: now, dueAt: now },
  };
}

const bodyOf = (type: string, at: Date, applicationId: ApplicationId, data: JsonObject): string =>
  JSON.stringify({ type, timestamp: at.toISOString(), data: { applicationId, ...data } });

/** The signed text. The id contains no dot, so the parts cannot be confused. */
export const signedContent = ({ id, body }: Pick<DeliveryRow, 'id' | 'body'>, timestamp: number): string =>
  `${id}.${timestamp}.${body}`;
