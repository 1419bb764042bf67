// The wiring of webhooks: their keys in the vault, the task that writes deliveries, and the task that sends them.
import { DELIVERY_RETENTION_DAYS } from '../../contract/webhooks.ts';
import type { Applications } from '../domain/identity/applications.ts';
import { Cursors } from '../domain/identity/cursors.ts';
import { runInBatches } from '../domain/in-batches.ts';
import { WebhookKeys } from '../domain/webhooks/keys.ts';
import { DeliverySender } from '../domain/webhooks/sending.ts';
import { Webhooks } from '../domain/webhooks/webhooks.ts';
import { DeliveryWriter, SEND_TASK, WRITE_TASK } from '../domain/webhooks/writing.ts';
import { newWebhookKey, webhookSignature } from '../engines/vault/webhook-keys.ts';
import { addMs } from '../kit/clock.ts';
import type { Runtime } from '../kit/runtime.ts';
import { REST_INTERVAL_MS } from '../kit/task.ts';
import { version } from '../version.ts';
import type { Foundation } from './foundation.ts';

/** The interval at which deliveries are written if no notification arrives. */
const WRITE_INTERVAL_MS = 5_000;
/** Events that follow each other within this time are written together. */
const WRITE_DELAY_MS = 100;
const SEND_INTERVAL_MS = 2_000;
const FORGET_INTERVAL_MS = 3_600_000;
const FORGET_LIMITS = { batchSize: 10_000, batchesMax: 20 };
const DAY_MS = 24 * 3_600_000;

export async function openWebhooks(
  { clock, log }: Runtime,
  { store, vault, outbound, audit, secret, trigger }: Foundation,
  applications: Pick<Applications, 'require'>,
) {
  const keys = new WebhookKeys({ vault, engine: { newWebhookKey, webhookSignature } });
  const cursors = new Cursors(secret, clock);
  const service = new Webhooks({ store, applications, keys, outbound, cursors, audit, clock, trigger });
  const writer = new DeliveryWriter({ store, clock, trigger });
  const userAgent = `Berth/${version()}`;
  const sender = new DeliverySender({ rows: store.webhooks, outbound, keys, userAgent, trigger, clock, log });

  let isTriggered = false;
  const triggerWriteTask = (): void => {
    if (isTriggered) return;
    isTriggered = true;
    trigger(WRITE_TASK, WRITE_DELAY_MS);
  };
  const write = (): Promise<Record<string, number>> => {
    isTriggered = false;
    return writer.run();
  };
  const subscription = await store.listen('session_event', triggerWriteTask, triggerWriteTask);
  const forget = async () => {
    const createdBefore = addMs(clock.now(), -DELIVERY_RETENTION_DAYS * DAY_MS);
    return { removed: await runInBatches(FORGET_LIMITS, batchSize => store.webhooks.forget(createdBefore, batchSize)) };
  };
  return {
    service,
    tasks: [
      { name: WRITE_TASK, everyMs: WRITE_INTERVAL_MS, restMs: REST_INTERVAL_MS, run: write },
      { name: SEND_TASK, everyMs: SEND_INTERVAL_MS, restMs: REST_INTERVAL_MS, run: () => sender.run() },
      { name: 'forget_webhook_deliveries', everyMs: FORGET_INTERVAL_MS, run: forget },
    ],
    close: async () => {
      await subscription.close();
      await sender.close();
    },
  };
}
