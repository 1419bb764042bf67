// Sends the deliveries that are due. Each webhook has a lane, in which messages are sent one after the other, in the
// order of the events. Lanes do not wait for each other, and the task that opens them does not wait for them.
import type { CallResult, OutboundCalls } from '../../engines/egress/outbound-calls/outbound-calls.ts';
import type { DeliveryRow, WebhookRow } from '../../engines/store/rows/webhooks.ts';
import type { Store } from '../../engines/store/store.ts';
import { addMs } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import type { ApplicationId, WebhookId } from '../../kit/ids.ts';
import type { Runtime } from '../../kit/runtime.ts';
import type { Closeable } from '../../kit/scope.ts';
import type { WebhookKeys } from './keys.ts';
import { signedContent } from './message.ts';
import { FAILURE_PERIOD_MAX_MS, pauseAfter } from './retries.ts';
import { SEND_TASK } from './writing.ts';

/** The time limit for an attempt, from the connection to the end of the response, in real time. */
const ATTEMPT_TIMEOUT_MS = 15_000;
/**
 * For this time, no other process sends this delivery or any other delivery of the same webhook. It is longer than an
 * attempt can take. It must not equal any pause in retries.ts, because the store uses the length of the interval to
 * distinguish a reserved delivery from a delivery that waits for a retry.
 */
export const RESERVATION_MS = 60_000;
/** The response is read only so that the connection is closed cleanly. */
const RESPONSE_BYTES_MAX = 64 * 1024;
const LANES_MAX = 64;
/** Leaves lanes for other applications if all endpoints of one application are slow. */
const LANES_PER_APPLICATION_MAX = 8;
/**
 * After this many deliveries, the lane ends, so that the webhook whose last turn was the longest ago can have a lane. A
 * failure also ends the lane, because the endpoint may be slow.
 */
const DELIVERIES_PER_LANE_MAX = 50;
const DUE_DELIVERIES_MAX = 500;
const GONE_STATUS = 410;

export interface DeliverySenderParts extends Pick<Runtime, 'clock' | 'log'> {
  readonly rows: Store['webhooks'];
  readonly outbound: Pick<OutboundCalls, 'send'>;
  readonly keys: Pick<WebhookKeys, 'sign'>;
  readonly userAgent: string;
  readonly trigger: (task: string) => void;
}

type DueDelivery = Pick<DeliveryRow, 'webhookId' | 'applicationId'>;

interface Lane {
  readonly applicationId: ApplicationId;
  readonly whenEnded: Promise<void>;
}

export class DeliverySender implements Closeable {
  readonly #parts: DeliverySenderParts;
  readonly #lanes = new Map<WebhookId, Lane>();
  /** The number of the last turn of each webhook with deliveries that are due, or 0 before its first turn. */
  #turns = new Map<WebhookId, number>();
  #lastTurn = 0;
  readonly #closeController = new AbortController();

  constructor(parts: DeliverySenderParts) {
    this.#parts = parts;
  }

  /** Opens a lane for each webhook with a delivery that is due, up to the limits. */
  async run(): Promise<Record<string, number>> {
    const { rows, clock } = this.#parts;
    let lanes = 0;
    for (const { webhookId, applicationId } of this.#sortByLastTurn(await rows.due(clock.now(), DUE_DELIVERIES_MAX))) {
      if (this.#closeController.signal.aborted || this.#lanes.size >= LANES_MAX) break;
      if (this.#lanes.has(webhookId) || this.#lanesOf(applicationId) >= LANES_PER_APPLICATION_MAX) continue;
      this.#lastTurn += 1;
      this.#turns.set(webhookId, this.#lastTurn);
      this.#lanes.set(webhookId, { applicationId, whenEnded: this.#runLane(webhookId) });
      lanes += 1;
    }
    return { lanes };
  }

  /** Aborts the deliveries that are being sent. They are due again at once, for the next process. */
  async close(): Promise<void> {
    this.#closeController.abort(new Error('the service is stopping'));
    await Promise.all([...this.#lanes.values()].map(({ whenEnded: ended }) => ended));
  }

  /**
   * Sorts the deliveries by the last turn of their webhook, earliest first, so that a slow endpoint with many
   * deliveries does not keep its lane.
   */
  #sortByLastTurn(dueDeliveries: readonly DueDelivery[]): readonly DueDelivery[] {
    const lastTurnOf = ({ webhookId }: DueDelivery): number => this.#turns.get(webhookId) ?? 0;
    this.#turns = new Map(dueDeliveries.map(one => [one.webhookId, lastTurnOf(one)]));
    return [...dueDeliveries].sort((a, b) => lastTurnOf(a) - lastTurnOf(b));
  }

  #lanesOf(applicationId: ApplicationId): number {
    return [...this.#lanes.values()].filter(lane => lane.applicationId === applicationId).length;
  }

  /**
   * Sends the deliveries of a webhook. Triggers the task again only if a delivery was sent. Otherwise there was nothing
   * to send, or the database does not respond, and the next regular run of the task tries again.
   */
  async #runLane(id: WebhookId): Promise<void> {
    let hasSent = false;
    try {
      for (
        let sentCount = 0;
        sentCount < DELIVERIES_PER_LANE_MAX && !this.#closeController.signal.aborted;
        sentCount += 1
      ) {
        const isAccepted = await this.#sendNext(id);
        hasSent ||= isAccepted !== undefined;
        if (!isAccepted) break;
      }
    } catch (error) {
      this.#parts.log.error('webhook.lane_failed', { webhook: id, reason: reason(error) });
    } finally {
      this.#lanes.delete(id);
      if (hasSent && !this.#closeController.signal.aborted) this.#parts.trigger(SEND_TASK);
    }
  }

  /** Sends the next delivery. Returns whether the endpoint accepted it. Undefined if no delivery could be reserved. */
  async #sendNext(id: WebhookId): Promise<boolean | undefined> {
    const { rows, clock } = this.#parts;
    const now = clock.now();
    const delivery = await rows.take(id, now, addMs(now, RESERVATION_MS));
    const webhook = delivery && (await rows.byId(id));
    if (!webhook) return undefined;
    const callResult = await this.#send(webhook, delivery, now);
    if (callResult.kind === 'failed' && this.#closeController.signal.aborted) {
      await rows.release(delivery.id, clock.now());
      return false;
    }
    return this.#settle(webhook, delivery, callResult);
  }

  async #send(webhook: WebhookRow, delivery: DeliveryRow, now: Date): Promise<CallResult> {
    const { outbound, keys, userAgent } = this.#parts;
    const timestamp = Math.floor(now.getTime() / 1000);
    const signatures = await keys.sign(webhook, signedContent(delivery, timestamp), now);
    const call = {
      method: 'POST',
      url: webhook.url,
      headers: {
        'content-type': 'application/json',
        'user-agent': userAgent,
        'webhook-id': delivery.id,
        'webhook-timestamp': `${timestamp}`,
        'webhook-signature': signatures.join(' '),
      },
      body: Buffer.from(delivery.body),
      ...{ deadlineMs: ATTEMPT_TIMEOUT_MS, maxResponseBytes: RESPONSE_BYTES_MAX },
    };
    return outbound.send(call, this.#closeController.signal);
  }

  /** Records the result. Returns whether the endpoint accepted the delivery. */
  async #settle(webhook: WebhookRow, delivery: DeliveryRow, callResult: CallResult): Promise<boolean> {
    const { rows, clock, log } = this.#parts;
    const now = clock.now();
    // Only the status counts. If the endpoint has accepted the delivery, errors in the rest of the response do not
    // matter.
    const status = callResult.status;
    if (status !== undefined && status >= 200 && status < 300) {
      await rows.markDelivered(delivery, now, status);
      return true;
    }
    const failure =
      callResult.kind === 'failed'
        ? callResult.message
        : `The endpoint responded with the status ${callResult.status}; expected 2xx.`;
    const pauseMs = pauseAfter(delivery.attempts);
    log.info('webhook.failed', { webhook: webhook.id, delivery: delivery.id, attempts: delivery.attempts, failure });
    const failingSince = await rows.recordFailure(delivery, now, {
      failure,
      ...(status === undefined ? {} : { answerStatus: status }),
      ...(pauseMs === undefined ? {} : { dueAt: addMs(now, pauseMs) }),
    });
    if (status === GONE_STATUS) await rows.disable(webhook.id, 'gone', now);
    else if (failingSince && now.getTime() - failingSince.getTime() >= FAILURE_PERIOD_MAX_MS)
      await rows.disable(webhook.id, 'failing', now);
    return false;
  }
}
