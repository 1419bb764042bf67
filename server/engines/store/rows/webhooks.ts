// Webhooks and their deliveries.
import type { ApplicationId, DeliveryId, WebhookId } from '../../../kit/ids.ts';

export type DisabledReason = 'caller' | 'failing' | 'gone';

export interface WebhookRow {
  readonly id: WebhookId;
  readonly applicationId: ApplicationId;
  readonly name: string;
  readonly url: string;
  /** Empty: all types. */
  readonly eventTypes: readonly string[];
  readonly status: 'enabled' | 'disabled';
  readonly disabledReason?: DisabledReason;
  readonly disabledAt?: Date;
  /** The time since which every attempt has failed. */
  readonly failingSince?: Date;
  /** Deliveries have been written for the events up to this id. */
  readonly readThrough: number;
  /** Increases with each rotation of the key. */
  readonly keyVersion: number;
  readonly publicKey: string;
  readonly sealedKey: Buffer;
  readonly formerPublicKey?: string;
  readonly formerSealedKey?: Buffer;
  readonly formerUntil?: Date;
  readonly revision: number;
  readonly createdAt: Date;
}

export type WebhookChange = Partial<
  Pick<
    WebhookRow,
    | 'name'
    | 'url'
    | 'eventTypes'
    | 'readThrough'
    | 'keyVersion'
    | 'publicKey'
    | 'sealedKey'
    | 'formerPublicKey'
    | 'formerSealedKey'
    | 'formerUntil'
  >
>;

export type DeliveryStatus = 'waiting' | 'delivered' | 'dead';

export interface DeliveryRow {
  readonly id: DeliveryId;
  readonly webhookId: WebhookId;
  readonly applicationId: ApplicationId;
  /** Absent for a test delivery. */
  readonly eventId?: number;
  readonly eventType: string;
  /** The body that is signed and sent, as a string. */
  readonly body: string;
  readonly status: DeliveryStatus;
  readonly attempts: number;
  readonly createdAt: Date;
  /**
   * When to send the delivery, or, while it is being sent, when another process may send it. Present if and only if the
   * delivery is waiting.
   */
  readonly dueAt?: Date;
  readonly attemptedAt?: Date;
  readonly deliveredAt?: Date;
  readonly answerStatus?: number;
  readonly failure?: string;
}

export interface FailedAttempt {
  readonly failure: string;
  readonly answerStatus?: number;
  /** Absent: no more attempts are made. */
  readonly dueAt?: Date;
}

export interface DeliveryFilter {
  readonly status?: DeliveryStatus;
  readonly before?: DeliveryId;
  readonly limit: number;
}

export interface WebhookRows {
  insert(row: WebhookRow, limit: number): Promise<'inserted' | 'limit_reached'>;
  /** Newest first. */
  list(application: ApplicationId, page: { limit: number; before?: WebhookId }): Promise<WebhookRow[]>;
  get(application: ApplicationId, id: WebhookId): Promise<WebhookRow | undefined>;
  /**
   * Undefined if `revision` is not the current one. Setting `status` to `disabled` also changes waiting deliveries to
   * `dead`. Setting it to `enabled` clears the failures.
   */
  change(
    row: Pick<WebhookRow, 'id' | 'applicationId'>,
    revision: number,
    change: WebhookChange & { readonly status?: 'enabled' | 'disabled' },
    now: Date,
  ): Promise<WebhookRow | undefined>;
  remove(application: ApplicationId, id: WebhookId): Promise<boolean>;

  insertDelivery(row: DeliveryRow): Promise<void>;
  /** Newest first. */
  deliveries(application: ApplicationId, id: WebhookId, filter: DeliveryFilter): Promise<DeliveryRow[]>;
  delivery(application: ApplicationId, id: WebhookId, delivery: DeliveryId): Promise<DeliveryRow | undefined>;
  /**
   * Makes the delivery due. If a process is already sending it, that process keeps its reservation of `reservedMs`, so
   * that no other process sends the delivery.
   */
  redeliver(
    application: ApplicationId,
    id: WebhookId,
    delivery: DeliveryId,
    now: Date,
    reservedMs: number,
  ): Promise<DeliveryRow | undefined>;
  /** The number of waiting deliveries of the webhook. */
  countWaiting(id: WebhookId): Promise<number>;

  /** Returns the webhook in any state, regardless of its application, for background work. */
  byId(id: WebhookId): Promise<WebhookRow | undefined>;
  /** Returns enabled webhooks with events for which no delivery has been written yet, in any order. */
  listBehind(batchSize: number): Promise<WebhookRow[]>;
  /**
   * Writes deliveries and advances the webhook's position in the feed, in one transaction. False if another process has
   * already done so, or the webhook is disabled.
   */
  write(
    row: Pick<WebhookRow, 'id' | 'readThrough'>,
    lastRead: number,
    deliveries: readonly DeliveryRow[],
  ): Promise<boolean>;
  /** Returns enabled webhooks with a due delivery. Those that have waited longest come first. */
  due(now: Date, batchSize: number): Promise<ReadonlyArray<Pick<DeliveryRow, 'webhookId' | 'applicationId'>>>;
  /**
   * Reserves the webhook's earliest due delivery until `until`, and counts the attempt. Undefined if no delivery is
   * due, the webhook is disabled, or another of its deliveries is reserved. All processes must reserve for the same
   * length of time, because this length distinguishes a reservation from the pause after a failed attempt.
   */
  take(id: WebhookId, now: Date, until: Date): Promise<DeliveryRow | undefined>;
  /** Records that the endpoint accepted the delivery. The webhook is no longer failing. */
  markDelivered(delivery: Pick<DeliveryRow, 'id' | 'webhookId'>, now: Date, answerStatus: number): Promise<void>;
  /**
   * Records a failed attempt. Returns the time since which every attempt has failed. Undefined if the webhook was
   * deleted.
   */
  recordFailure(
    delivery: Pick<DeliveryRow, 'id' | 'webhookId'>,
    now: Date,
    attempt: FailedAttempt,
  ): Promise<Date | undefined>;
  /** Makes a delivery due at once, because this process is ending and interrupted its attempt. */
  release(delivery: DeliveryId, now: Date): Promise<void>;
  disable(id: WebhookId, reason: DisabledReason, now: Date): Promise<void>;
  /** Deletes deliveries that were created before this time and are not waiting. Returns their number. */
  forget(before: Date, batchSize: number): Promise<number>;
}
