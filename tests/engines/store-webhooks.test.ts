// Deliveries of webhooks in the store, on the embedded PostgreSQL: which deliveries are due, and how several processes
// send the deliveries of one webhook one after another.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import pg from 'pg';
import { socketLogin } from '../../server/engines/store/embedded/is-responding.ts';
import { findPostmaster } from '../../server/engines/store/embedded/postmaster.ts';
import { openStore } from '../../server/engines/store/open-store.ts';
import type { Store } from '../../server/engines/store/store.ts';
import { addMs } from '../../server/kit/clock.ts';
import { type AccountId, type ApplicationId, type DeliveryId, newId, type WebhookId } from '../../server/kit/ids.ts';
import { silentLog } from '../../server/kit/log.ts';
import { Scope } from '../../server/kit/scope.ts';
import { eventually } from '../harness/until.ts';
import { clockAt, makeTemporaryFolder } from './store-fixtures.ts';

const NOW = new Date('2026-11-20T10:00:00.123Z');
const RESERVATION_MS = 60_000;

describe('webhooks in the store', () => {
  const scope = new Scope();
  const dataDir = makeTemporaryFolder(scope, 'webhooks');
  let store: Store;
  let applicationId: ApplicationId;

  before(async () => {
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

  it('a delivery that is queued after its webhook was disabled is not due before the webhook is enabled', async () => {
    const webhook = await aWebhook();
    await store.webhooks.disable(webhook, 'failing', NOW);
    await aDelivery(webhook);
    const due = async () => (await store.webhooks.due(NOW, 500)).filter(({ webhookId }) => webhookId === webhook);
    assert.deepEqual(await due(), []);
    await store.webhooks.change({ id: webhook, applicationId }, 2, { status: 'enabled' }, NOW);
    assert.deepEqual(await due(), [{ webhookId: webhook, applicationId }]);
  });

  it('a delivery that is redelivered while it is being sent is not sent by a second process', async () => {
    const webhook = await aWebhook();
    const delivery = await aDelivery(webhook);
    const take = async (now: Date) => (await store.webhooks.take(webhook, now, addMs(now, RESERVATION_MS)))?.id;
    const redeliver = (now: Date) => store.webhooks.redeliver(applicationId, webhook, delivery, now, RESERVATION_MS);
    assert.equal(await take(NOW), delivery);
    const sendingAt = addMs(NOW, 1_000);
    assert.deepEqual((await redeliver(sendingAt))?.dueAt, addMs(NOW, RESERVATION_MS));
    assert.equal(await take(sendingAt), undefined);
    await store.webhooks.markDelivered({ id: delivery, webhookId: webhook }, sendingAt, 200);
    assert.deepEqual((await redeliver(sendingAt))?.dueAt, sendingAt);
    assert.equal(await take(sendingAt), delivery);
  });

  it('several processes get the deliveries of a webhook one at a time and in the order of the events', async () => {
    const webhook = await aWebhook();
    const [second, first] = [await aDelivery(webhook, 2), await aDelivery(webhook, 1)];
    const otherWebhook = await aWebhook();
    const otherDelivery = await aDelivery(otherWebhook);
    const take = async (now = NOW, id = webhook) => store.webhooks.take(id, now, addMs(now, RESERVATION_MS));
    const takenDeliveries = await Promise.all(Array.from({ length: 8 }, () => take()));
    const [delivery = assert.fail(), ...more] = takenDeliveries.filter(one => one !== undefined);
    assert.deepEqual([delivery.id, more], [first, []]);
    assert.equal((await take(NOW, otherWebhook))?.id, otherDelivery, 'another webhook is not delayed');
    await store.webhooks.markDelivered(delivery, NOW, 204);
    assert.equal((await take())?.id, second);
  });

  it('while one process reserves a delivery, another process that looks for one waits and then gets none', async () => {
    const webhook = await aWebhook();
    for (const eventId of [1, 2]) await aDelivery(webhook, eventId);
    const reservedUntil = addMs(NOW, RESERVATION_MS);
    const client = new pg.Client(socketLogin(findPostmaster(dataDir) ?? assert.fail('PostgreSQL is not running')));
    await client.connect();
    scope.defer(() => client.end());
    const waitingQuery = "select from pg_stat_activity where wait_event_type = 'Lock'";
    let isOver = false;
    const secondTake = await store.atomically(async trx => {
      assert.equal((await trx.webhooks.take(webhook, NOW, reservedUntil))?.eventId, 1);
      const take = store.webhooks.take(webhook, NOW, reservedUntil).finally(() => {
        isOver = true;
      });
      const isReady = async () => isOver || (await client.query(waitingQuery)).rows.length > 0;
      await eventually('the other process to wait', isReady, ready => ready);
      return [take];
    });
    assert.equal(await secondTake[0], undefined);
  });

  it('the next delivery is taken while a failed one waits, and can be taken again only after its reservation has expired', async () => {
    const webhook = await aWebhook();
    const [first, second] = [await aDelivery(webhook, 1), await aDelivery(webhook, 2)];
    const take = async (now = NOW) => store.webhooks.take(webhook, now, addMs(now, RESERVATION_MS));
    const failedDelivery = (await take()) ?? assert.fail();
    assert.equal(failedDelivery.id, first);
    await store.webhooks.recordFailure(failedDelivery, NOW, {
      failure: 'refused',
      dueAt: addMs(NOW, 2 * RESERVATION_MS),
    });
    assert.equal((await take())?.id, second);
    assert.equal(
      await take(addMs(NOW, RESERVATION_MS - 1)),
      undefined,
      'the process that reserved the delivery may still be sending it',
    );
    assert.equal((await take(addMs(NOW, RESERVATION_MS)))?.id, second, 'the reservation has run out');
  });
});
