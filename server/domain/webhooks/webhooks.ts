// Webhooks: create, list, read, change, delete, rotate the key, test, and list deliveries. Permissions are checked in
// applications.ts. Each change and its audit entry are one transaction.
import type { AuditAction } from '../../../contract/audit.ts';
import { PAGE_LIMIT_DEFAULT, type PageQuery } from '../../../contract/common.ts';
import type { Right } from '../../../contract/roles.ts';
import {
  type ChangeWebhook,
  type CreateWebhook,
  WAITING_DELIVERIES_MAX,
  WEBHOOKS_PER_APPLICATION_MAX,
  type Webhook,
  type WebhookDeliveriesQuery,
  type WebhookDelivery,
  type WebhookDeliveryPage,
  type WebhookDeliveryWithMessage,
  type WebhookPage,
} from '../../../contract/webhooks.ts';
import type { OutboundCalls } from '../../engines/egress/outbound-calls/outbound-calls.ts';
import type { DeliveryRow, WebhookChange, WebhookRow } from '../../engines/store/rows/webhooks.ts';
import type { Store } from '../../engines/store/store.ts';
import type { Clock } from '../../kit/clock.ts';
import { parseJson } from '../../kit/foreign.ts';
import { type DeliveryId, isUuid, newId, type WebhookId } from '../../kit/ids.ts';
import { isObject } from '../../kit/json.ts';
import type { Audit, AuditTransaction, Detail } from '../audit/audit.ts';
import { byCaller } from '../audit/by-caller.ts';
import { formattedEventId } from '../events/events.ts';
import { fault, invalidRequest, limitReached, notFound, preconditionFailed } from '../faults.ts';
import type { Applications } from '../identity/applications.ts';
import type { AccountCaller } from '../identity/caller.ts';
import { type Cursors, type ListName, listPageOf } from '../identity/cursors.ts';
import { cleanName } from '../identity/names.ts';
import { revisionFrom } from '../identity/revisions.ts';
import type { WebhookKeys } from './keys.ts';
import { testDelivery } from './message.ts';
import { RESERVATION_MS } from './sending.ts';
import { SEND_TASK } from './writing.ts';

export interface WebhooksParts {
  readonly store: Pick<Store, 'webhooks' | 'events' | 'atomically'>;
  readonly applications: Pick<Applications, 'require'>;
  readonly keys: WebhookKeys;
  readonly outbound: Pick<OutboundCalls, 'check'>;
  readonly cursors: Cursors;
  readonly audit: Pick<Audit, 'record'>;
  readonly clock: Clock;
  readonly trigger: (task: string) => void;
}

export class Webhooks {
  readonly #parts: WebhooksParts;

  constructor(parts: WebhooksParts) {
    this.#parts = parts;
  }

  async create(caller: AccountCaller, appId: string, request: CreateWebhook): Promise<Webhook> {
    const { applications, store, clock, keys } = this.#parts;
    const { id: applicationId } = await applications.require(caller, appId, 'webhooks');
    const name = cleanName(request.name);
    await this.#assertAllowed(request.url);
    const now = clock.now();
    const id = newId<WebhookId>(now);
    const row: WebhookRow = {
      ...{ id, applicationId, name, url: request.url, eventTypes: [...new Set(request.eventTypes ?? [])] },
      ...{ status: 'enabled', readThrough: await store.events.newestId(applicationId), revision: 1, createdAt: now },
      ...(await keys.createFirst({ id, applicationId })),
    };
    await store.atomically(async trx => {
      if ((await trx.webhooks.insert(row, WEBHOOKS_PER_APPLICATION_MAX)) === 'limit_reached')
        throw limitReached('webhooks in this application', WEBHOOKS_PER_APPLICATION_MAX);
      await this.#record(trx, 'webhook.created', row, caller, { eventTypes: row.eventTypes });
    });
    return viewOf(row);
  }

  async list(
    caller: AccountCaller,
    appId: string,
    { limit = PAGE_LIMIT_DEFAULT, cursor }: PageQuery,
  ): Promise<WebhookPage> {
    const { applications, store, cursors } = this.#parts;
    const { id } = await applications.require(caller, appId, 'read');
    const name: ListName = { list: 'webhooks', owner: id };
    const beforeFilter = cursor === undefined ? {} : { before: cursors.read<WebhookId>(name, cursor) };
    const rows = await store.webhooks.list(id, { limit: limit + 1, ...beforeFilter });
    return listPageOf(rows, limit, viewOf, last => cursors.after(name, last));
  }

  async read(caller: AccountCaller, appId: string, webhookId: string): Promise<Webhook> {
    return viewOf(await this.#require(caller, appId, webhookId, 'read'));
  }

  async change(
    caller: AccountCaller,
    appId: string,
    webhookId: string,
    ifMatch: string | undefined,
    request: ChangeWebhook,
  ): Promise<Webhook> {
    const row = await this.#require(caller, appId, webhookId, 'webhooks');
    const revision = revisionFrom(ifMatch, row.revision);
    const { name, url, eventTypes, status } = request;
    if (url !== undefined) await this.#assertAllowed(url);
    const isReenabled = status === 'enabled' && row.status === 'disabled';
    const change = {
      ...(name === undefined ? {} : { name: cleanName(name) }),
      ...(url === undefined ? {} : { url }),
      ...(eventTypes === undefined ? {} : { eventTypes: [...new Set(eventTypes)] }),
      ...(status === undefined || status === row.status ? {} : { status }),
      ...(isReenabled ? { readThrough: await this.#parts.store.events.newestId(row.applicationId) } : {}),
    };
    return this.#applyChange(caller, row, revision, change, 'webhook.changed', { fields: Object.keys(request) });
  }

  async remove(caller: AccountCaller, appId: string, webhookId: string): Promise<void> {
    const row = await this.#require(caller, appId, webhookId, 'webhooks');
    await this.#parts.store.atomically(async trx => {
      if (!(await trx.webhooks.remove(row.applicationId, row.id))) throw notFound('Webhook', webhookId);
      await this.#record(trx, 'webhook.deleted', row, caller);
    });
  }

  async rotateKey(caller: AccountCaller, appId: string, webhookId: string): Promise<Webhook> {
    const row = await this.#require(caller, appId, webhookId, 'webhooks');
    const change = await this.#parts.keys.createNext(row, this.#parts.clock.now());
    return this.#applyChange(caller, row, row.revision, change, 'webhook.key_rotated');
  }

  async test(caller: AccountCaller, appId: string, webhookId: string): Promise<WebhookDelivery> {
    const { store, clock, trigger } = this.#parts;
    const row = await this.#require(caller, appId, webhookId, 'webhooks');
    assertEnabled(row);
    if ((await store.webhooks.countWaiting(row.id)) >= WAITING_DELIVERIES_MAX)
      throw limitReached(
        'waiting deliveries of this webhook',
        WAITING_DELIVERIES_MAX,
        'Wait until some of them have been made or given up.',
      );
    const now = clock.now();
    const delivery = testDelivery(row, newId<DeliveryId>(now), now);
    await store.atomically(async trx => {
      await trx.webhooks.insertDelivery(delivery);
      await this.#record(trx, 'webhook.tested', row, caller);
    });
    trigger(SEND_TASK);
    return deliveryView(delivery);
  }

  async deliveries(
    caller: AccountCaller,
    appId: string,
    webhookId: string,
    { limit = PAGE_LIMIT_DEFAULT, cursor, status }: WebhookDeliveriesQuery,
  ): Promise<WebhookDeliveryPage> {
    const { store, cursors } = this.#parts;
    const { id, applicationId } = await this.#require(caller, appId, webhookId, 'read');
    const name: ListName = { list: `webhook-deliveries ${status ?? ''}`, owner: id };
    const rows = await store.webhooks.deliveries(applicationId, id, {
      limit: limit + 1,
      ...(status === undefined ? {} : { status }),
      ...(cursor === undefined ? {} : { before: cursors.read<DeliveryId>(name, cursor) }),
    });
    return listPageOf(rows, limit, deliveryView, last => cursors.after(name, last));
  }

  async readDelivery(
    caller: AccountCaller,
    appId: string,
    webhookId: string,
    deliveryId: string,
  ): Promise<WebhookDeliveryWithMessage> {
    const { id, applicationId } = await this.#require(caller, appId, webhookId, 'read');
    const row = isUuid(deliveryId)
      ? await this.#parts.store.webhooks.delivery(applicationId, id, deliveryId as DeliveryId)
      : undefined;
    if (!row) throw notFound('Delivery', deliveryId);
    const message = parseJson(row.body);
    if (!isObject(message)) throw new Error(`the message of the delivery ${row.id} is not an object`);
    return { ...deliveryView(row), message };
  }

  async redeliver(
    caller: AccountCaller,
    appId: string,
    webhookId: string,
    deliveryId: string,
  ): Promise<WebhookDelivery> {
    const { store, clock, trigger } = this.#parts;
    const webhook = await this.#require(caller, appId, webhookId, 'webhooks');
    if (!isUuid(deliveryId)) throw notFound('Delivery', deliveryId);
    const { applicationId, id } = webhook;
    const row = await store.atomically(async trx => {
      const row = await trx.webhooks.redeliver(
        applicationId,
        id,
        deliveryId as DeliveryId,
        clock.now(),
        RESERVATION_MS,
      );
      if (!row) throw notFound('Delivery', deliveryId);
      assertEnabled(webhook);
      await this.#record(trx, 'webhook.redelivered', webhook, caller, { deliveryId });
      return row;
    });
    trigger(SEND_TASK);
    return deliveryView(row);
  }

  async #applyChange(
    caller: AccountCaller,
    row: WebhookRow,
    revision: number,
    change: WebhookChange & { readonly status?: WebhookRow['status'] },
    action: AuditAction,
    details: Readonly<Record<string, Detail>> = {},
  ): Promise<Webhook> {
    const { store, clock } = this.#parts;
    return store.atomically(async trx => {
      const changedRow = await trx.webhooks.change(row, revision, change, clock.now());
      if (!changedRow) throw preconditionFailed();
      await this.#record(trx, action, row, caller, details);
      return viewOf(changedRow);
    });
  }

  /** Throws if the URL may not be called. A host name that does not resolve is accepted: each delivery checks again. */
  async #assertAllowed(url: string): Promise<void> {
    const failure = await this.#parts.outbound.check(url);
    if (failure?.phase === 'refused')
      throw invalidRequest([{ path: 'url', message: `cannot be called. ${failure.message}` }]);
  }

  async #require(caller: AccountCaller, appId: string, webhookId: string, right: Right): Promise<WebhookRow> {
    const { applications, store } = this.#parts;
    const { id } = await applications.require(caller, appId, right);
    const row = isUuid(webhookId) ? await store.webhooks.get(id, webhookId as WebhookId) : undefined;
    if (!row) throw notFound('Webhook', webhookId);
    return row;
  }

  #record(
    trx: AuditTransaction,
    action: AuditAction,
    { id, applicationId }: WebhookRow,
    caller: AccountCaller,
    details: Readonly<Record<string, Detail>> = {},
  ): Promise<void> {
    const target = { kind: 'webhook', id };
    const event = { ...byCaller(caller), action, applicationId, target, outcome: 'success', details } as const;
    return this.#parts.audit.record(event, trx);
  }
}

function assertEnabled({ id, status }: WebhookRow): void {
  if (status === 'disabled')
    throw fault('not_ready', `Webhook ${id} is disabled.`, {
      advice: 'Enable the webhook first: set its status to enabled.',
    });
}

const viewOf = (row: WebhookRow): Webhook => ({
  ...{ id: row.id, applicationId: row.applicationId, name: row.name, url: row.url, eventTypes: [...row.eventTypes] },
  status: row.status,
  ...(row.disabledReason ? { disabledReason: row.disabledReason } : {}),
  ...(row.disabledAt ? { disabledAt: row.disabledAt.toISOString() } : {}),
  ...(row.failingSince ? { failingSince: row.failingSince.toISOString() } : {}),
  publicKey: row.publicKey,
  ...(row.formerPublicKey ? { formerPublicKey: row.formerPublicKey } : {}),
  ...(row.formerUntil ? { formerPublicKeyUntil: row.formerUntil.toISOString() } : {}),
  ...{ revision: row.revision, createdAt: row.createdAt.toISOString() },
});

const deliveryView = (row: DeliveryRow): WebhookDelivery => ({
  ...{ id: row.id, webhookId: row.webhookId, eventType: row.eventType },
  ...(row.eventId === undefined ? {} : { eventId: formattedEventId(row.eventId) }),
  ...{ status: row.status, attempts: row.attempts, createdAt: row.createdAt.toISOString() },
  ...(row.attemptedAt ? { lastAttemptAt: row.attemptedAt.toISOString() } : {}),
  ...(row.dueAt ? { nextAttemptAt: row.dueAt.toISOString() } : {}),
  ...(row.deliveredAt ? { deliveredAt: row.deliveredAt.toISOString() } : {}),
  ...(row.answerStatus === undefined ? {} : { answerStatus: row.answerStatus }),
  ...(row.failure === undefined ? {} : { failure: row.failure }),
});
