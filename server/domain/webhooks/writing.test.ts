// Tests how many events are read for a webhook, and which tasks are triggered afterwards. The acceptance tests cover the
// database.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { WAITING_DELIVERIES_MAX } from '../../../contract/webhooks.ts';
import type { EventFilter, SessionEventRow } from '../../engines/store/rows/events.ts';
import type { DeliveryRow, WebhookRow } from '../../engines/store/rows/webhooks.ts';
import { systemClock } from '../../kit/clock.ts';
import { type ApplicationId, newId, type SessionId, type WebhookId } from '../../kit/ids.ts';
import { DeliveryWriter, type DeliveryWriterParts, SEND_TASK, WRITE_TASK } from './writing.ts';

const now = new Date('2026-11-23T10:00:00.000Z');
const webhook: WebhookRow = {
  ...{ id: newId<WebhookId>(now), applicationId: newId<ApplicationId>(now), name: 'x', url: 'https://a.test/' },
  ...{ eventTypes: ['session.ended'], status: 'enabled', readThrough: 7, revision: 1, createdAt: now },
  ...{ keyVersion: 1, publicKey: '', sealedKey: Buffer.alloc(0) },
};

const eventAt = (id: number): SessionEventRow => ({
  ...{ id, applicationId: webhook.applicationId, sessionId: newId<SessionId>(now), at: now },
  ...{ type: 'session.ended', actor: { kind: 'clock' }, detail: {} },
});

/** Runs the task once with this number of waiting deliveries, and a feed with enough events. */
async function runTask(waiting: number, isWritten = true, eventTypes = webhook.eventTypes) {
  const filters: EventFilter[] = [];
  const triggeredTasks: string[] = [];
  let writtenRows: readonly DeliveryRow[] = [];
  const store = {
    webhooks: {
      listBehind: async () => [{ ...webhook, eventTypes }],
      countWaiting: async () => waiting,
      write: async (_: unknown, __: number, rows: readonly DeliveryRow[]) => {
        writtenRows = rows;
        return isWritten;
      },
    },
    events: {
      read: async (_: ApplicationId, filter: EventFilter) => {
        filters.push(filter);
        const events = Array.from({ length: filter.limit }, (__, at) => eventAt(filter.after + 1 + at));
        return { events, through: filter.after + filter.limit, isFull: true };
      },
    },
  } as unknown as DeliveryWriterParts['store']; // Only the methods that the writer calls.
  const result = await new DeliveryWriter({
    store,
    clock: systemClock,
    trigger: task => void triggeredTasks.push(task),
  }).run();
  return { filters, triggered: triggeredTasks, written: writtenRows, result };
}

test('reads a batch of events of the selected types after the position of the webhook, and continues immediately if there are more events', async () => {
  const { filters, triggered: triggeredTasks, written: writtenRows, result } = await runTask(0);
  assert.deepEqual(filters, [{ after: 7, limit: 100, types: ['session.ended'] }]);
  assert.deepEqual(triggeredTasks, [SEND_TASK, WRITE_TASK]);
  assert.equal(result.written, 100);
  assert.deepEqual(
    writtenRows.map(({ eventId }) => eventId),
    Array.from({ length: 100 }, (_, at) => 8 + at),
  );
  const ids = writtenRows.map(({ id }) => id);
  assert.deepEqual([...ids].sort(), ids, 'ids in the order of the events');
});

test('reads no more events than the queue has room for, and no events if the queue is full', async () => {
  assert.equal((await runTask(WAITING_DELIVERIES_MAX - 3)).filters[0]?.limit, 3);
  const full = await runTask(WAITING_DELIVERIES_MAX);
  assert.deepEqual([full.filters, full.triggered, full.result.written], [[], [], 0]);
});

test('reports no written deliveries if another process has moved the position of the webhook', async () => {
  const { triggered: triggeredTasks, result } = await runTask(0, false);
  assert.deepEqual([triggeredTasks, result.written], [[], 0]);
});

test('reads events of all types for a webhook that selects no types, and no events for a webhook that selects only unknown types', async () => {
  assert.deepEqual((await runTask(0, true, [])).filters, [{ after: 7, limit: 100 }]);
  assert.deepEqual((await runTask(0, true, ['session.unknown'])).filters, [{ after: 7, limit: 100, types: [] }]);
});
