// Deliveries of webhooks in the store, on the embedded PostgreSQL: which are due.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { openStore } from '../../server/engines/store/open-store.ts';
import type { Store } from '../../server/engines/store/store.ts';
import { type AccountId, type ApplicationId, type DeliveryId, newId, type WebhookId } from '../../server/kit/ids.ts';
import { silentLog } from '../../server/kit/log.ts';
import { Scope } from '../../server/kit/scope.ts';
import { clockAt, temporaryFolder } from './store-fixtures.ts';

const NOW = new Date('2026-11-20T10:00:00.123Z');

describe('webhooks in the store', () => {
  const scope = new Scope();
  let store: Store;
  let applicationId: ApplicationId;

  before(async () => {
    const dataDir = temporaryFolder(scope, 'webhooks');
    store = scope.own(await openStore({ dataDir, log: silentLog, clock: clockAt(NOW) }));
    const account = { id: newId<AccountId>(NOW), name: 'Ada', createdAt: NOW };
    await store.accounts.insert(account);
    applicationId = newId<ApplicationId>(NOW);
    const row = { id: applicationId, name: 'Shop', slug: 'shop', billingAccountId: account.id, revision: 1 };
    await store.applications.insert({ ...row, createdAt: NOW, updatedAt: NOW }, account.id, 50);
  });
  after(() => scope.close());

  async function aWebhook(): Promise<WebhookId> {
    const id = newId<WebhookId>(NOW);
    const key = { keyVersion: 1, publicKey: 'whpk_', sealedKey: Buffer.alloc(1) };
    const row = {
      id,
      applicationId,
      name: 'w',
      url: 'https://hooks.test/',
      eventTypes: [],
      status: 'enabled',
    } as const;
    await store.webhooks.insert({ ...row, ...key, readThrough: 0, revision: 1, createdAt: NOW }, 20);
    return id;
  }

  async function aDelivery(webhookId: WebhookId, eventId?: number): Promise<DeliveryId> {
    const id = newId<DeliveryId>(NOW);
    const row = { id, webhookId, applicationId, eventType: 'session.ended', body: '{}', status: 'waiting' } as const;
    const event = eventId === undefined ? {} : { eventId };
    await store.webhooks.insertDelivery({ ...row, ...event, attempts: 0, createdAt: NOW, dueAt: NOW });
    return id;
  }

  it('a delivery that came to wait while its webhook was being disabled is not due until the webhook is enabled', async () => {
    const webhook = await aWebhook();
    await store.webhooks.disable(webhook, 'failing', NOW);
    await aDelivery(webhook);
    const due = async () => (await store.webhooks.due(NOW, 500)).filter(({ webhookId }) => webhookId === webhook);
    assert.deepEqual(await due(), []);
    await store.webhooks.change({ id: webhook, applicationId }, 2, { status: 'enabled' }, NOW);
    assert.deepEqual(await due(), [{ webhookId: webhook, applicationId }]);
  });
});
