import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../../../tests/harness/hand-clock.ts';
import type { CallResult } from '../../engines/egress/outbound-calls/outbound-calls.ts';
import type { DeliveryRow, WebhookRow } from '../../engines/store/rows/webhooks.ts';
import type { ApplicationId, DeliveryId, WebhookId } from '../../kit/ids.ts';
import { silentLog } from '../../kit/log.ts';
import { DeliverySender, type DeliverySenderParts } from './sending.ts';

const WEBHOOK: WebhookRow = Object.assign(Object.create(null), { id: 'w' as WebhookId, url: 'https://hooks.test/' });
const DELIVERY: DeliveryRow = {
  ...{ id: 'd' as DeliveryId, webhookId: WEBHOOK.id, applicationId: 'a' as ApplicationId },
  ...{ eventType: 'session.ended', body: '{}', status: 'waiting', attempts: 1, createdAt: new Date(0) },
};
const ACCEPTED_RESULT: CallResult = Object.assign(Object.create(null), { kind: 'answered', status: 204 });

/** A sender for a database that always lists the webhook as due, but has only these deliveries to take. */
function scene(deliveriesToTake: DeliveryRow[]) {
  const triggers: string[] = [];
  const deliveredIds: string[] = [];
  const rows: DeliverySenderParts['rows'] = Object.assign(Object.create(null), {
    due: async () => [DELIVERY],
    take: async () => deliveriesToTake.shift(),
    byId: async () => WEBHOOK,
    markDelivered: async ({ id }: DeliveryRow) => void deliveredIds.push(id),
  });
  const sender = new DeliverySender({
    ...{ rows, clock: new ManualClock(), log: silentLog, userAgent: 'test' },
    outbound: { send: async () => ACCEPTED_RESULT },
    keys: { sign: async () => [] },
    trigger: task => void triggers.push(task),
  });
  const run = async (): Promise<void> => {
    assert.deepEqual(await sender.run(), { lanes: 1 });
    // The lane ends before `setImmediate` fires, because nothing delays it.
    await new Promise(done => setImmediate(done));
  };
  return { triggers, delivered: deliveredIds, run };
}

test('does not trigger the send task again for a due webhook that has nothing to send', async () => {
  const { triggers, run } = scene([]);
  await run();
  await run();
  assert.deepEqual(triggers, []);
});

test('triggers the send task again after a delivery, in case other webhooks are waiting', async () => {
  const { triggers, delivered: deliveredIds, run } = scene([DELIVERY]);
  await run();
  assert.deepEqual([deliveredIds, triggers], [['d'], ['send_webhooks']]);
});
