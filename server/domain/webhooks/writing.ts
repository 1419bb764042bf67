// Writes a delivery for each webhook and event as the event feed grows. The position of a webhook in the feed is a
// column of its row, so nothing is lost if the process ends, and each event is written once.

import { EVENT_TYPES } from '../../../contract/events.ts';
import { WAITING_DELIVERIES_MAX } from '../../../contract/webhooks.ts';
import type { SessionEventRow, SessionEventType } from '../../engines/store/rows/events.ts';
import type { WebhookRow } from '../../engines/store/rows/webhooks.ts';
import type { Store } from '../../engines/store/store.ts';
import type { Clock } from '../../kit/clock.ts';
import { type DeliveryId, newId } from '../../kit/ids.ts';
import { deliveryOf } from './message.ts';

export const WRITE_TASK = 'write_webhook_deliveries';
export const SEND_TASK = 'send_webhooks';

const WEBHOOKS_PER_RUN_MAX = 100;
const EVENTS_PER_READ_MAX = 100;

export interface DeliveryWriterParts {
  readonly store: Pick<Store, 'webhooks' | 'events'>;
  readonly clock: Clock;
  readonly trigger: (task: string) => void;
}

export class DeliveryWriter {
  readonly #parts: DeliveryWriterParts;

  constructor(parts: DeliveryWriterParts) {
    this.#parts = parts;
  }

  async run(): Promise<Record<string, number>> {
    const { store, trigger } = this.#parts;
    let writtenCount = 0;
    let isFull = false;
    for (const webhook of await store.webhooks.listBehind(WEBHOOKS_PER_RUN_MAX)) {
      const writeResult = await this.#writeDeliveries(webhook);
      writtenCount += writeResult.written;
      isFull ||= writeResult.isFull;
    }
    if (writtenCount > 0) trigger(SEND_TASK);
    if (isFull) trigger(WRITE_TASK);
    return { written: writtenCount };
  }

  async #writeDeliveries(webhook: WebhookRow): Promise<{ readonly written: number; readonly isFull: boolean }> {
    const { webhooks, events } = this.#parts.store;
    const room = WAITING_DELIVERIES_MAX - (await webhooks.countWaiting(webhook.id));
    if (room <= 0) return { written: 0, isFull: false };
    const eventPage = await events.read(webhook.applicationId, {
      ...{ after: webhook.readThrough, limit: Math.min(room, EVENTS_PER_READ_MAX) },
      ...(webhook.eventTypes.length === 0 ? {} : { types: typesOf(webhook) }),
    });
    const isWritten = await webhooks.write(webhook, eventPage.through, this.#deliveries(webhook, eventPage.events));
    return { written: isWritten ? eventPage.events.length : 0, isFull: isWritten && eventPage.isFull };
  }

  /**
   * The ids are sorted, so that they are in the order of the events even if they are created in the same millisecond.
   */
  #deliveries(webhook: WebhookRow, events: readonly SessionEventRow[]) {
    const now = this.#parts.clock.now();
    const ids = events.map(() => newId<DeliveryId>(now)).sort();
    return events.flatMap((event, at) => {
      const id = ids[at];
      return id === undefined ? [] : [deliveryOf(webhook, id, event, now)];
    });
  }
}

/** May be empty, because a later version of the server may have stored types that do not exist in this version. */
const typesOf = ({ eventTypes }: WebhookRow): readonly SessionEventType[] =>
  EVENT_TYPES.filter(type => eventTypes.includes(type));
