// Control of a session is decided in the database. A session has at most one open hand-off, and a fence that only one
// transaction at a time can change.
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { openStore, type StoreOptions } from '../../server/engines/store/open-store.ts';
import type { HandoffRow } from '../../server/engines/store/rows/handoffs.ts';
import type { Store } from '../../server/engines/store/store.ts';
import { addMs } from '../../server/kit/clock.ts';
import {
  type AccountId,
  type ApplicationId,
  type HandoffId,
  type HostId,
  type KeyId,
  newId,
  type SessionId,
} from '../../server/kit/ids.ts';
import { silentLog } from '../../server/kit/log.ts';
import { Scope } from '../../server/kit/scope.ts';
import { clockAt, makeTemporaryFolder, startForeignServer } from './store-fixtures.ts';

const NOW = new Date('2026-11-20T10:00:00.123Z');
const HALF_MINUTE_LATER = addMs(NOW, 30_000);
const clock = clockAt(NOW);

describeControls('embedded', async scope => ({
  dataDir: makeTemporaryFolder(scope, 'controls'),
  log: silentLog,
  clock,
}));
describeControls('external', async scope => {
  const server = await startForeignServer(scope);
  return { databaseUrl: server.url, dataDir: makeTemporaryFolder(scope, 'unused'), log: silentLog, clock };
});

function describeControls(name: string, prepare: (scope: Scope) => Promise<StoreOptions>): void {
  describe(`control of sessions in the store, ${name} database`, () => {
    const scope = new Scope();
    let store: Store;
    let application: ApplicationId;
    const host = newId<HostId>(NOW);

    before(async () => {
      store = scope.own(await openStore(await prepare(scope)));
      const account = { id: newId<AccountId>(NOW), name: 'Ada', createdAt: NOW };
      await store.accounts.insert(account);
      application = newId<ApplicationId>(NOW);
      const row = {
        id: application,
        name: 'Shop',
        slug: `s-${application}`,
        billingAccountId: account.id,
        revision: 1,
      };
      await store.applications.insert({ ...row, createdAt: NOW, updatedAt: NOW }, account.id, 50);
      await store.hosts.announce({ id: host, region: 'local', slots: 100, startedAt: NOW });
    });
    after(() => scope.close());

    const aRunningSession = async (): Promise<SessionId> => {
      const id = newId<SessionId>(NOW);
      const row = { id, applicationId: application, hostId: host, region: 'local', keepAlive: true };
      const outcome = await store.sessions.place({
        ...row,
        userMetadata: {},
        settings: {},
        createdAt: NOW,
        expiresAt: addMs(NOW, 3_600_000),
      });
      assert.ok('placed' in outcome);
      await store.sessions.markRunning(id, NOW);
      return id;
    };
    const aHandoff = (session: SessionId): HandoffRow => ({
      ...{
        id: newId<HandoffId>(NOW),
        applicationId: application,
        sessionId: session,
        origin: 'api',
        status: 'requested',
      },
      ...{ instructions: 'x', reason: 'otp', claimableBy: 'link', record: 'mask', leaseSeconds: 120, fence: 0 },
      ...{
        requesterKind: 'account',
        createdAt: NOW,
        expiresAt: HALF_MINUTE_LATER,
        claimTries: 0,
        claimHash: randomBytes(32),
      },
    });

    it('only one of fifty concurrent requests for a hand-off of a session creates a hand-off', async () => {
      const session = await aRunningSession();
      const insertResults = await Promise.allSettled(
        Array.from({ length: 50 }, () => store.handoffs.insert(aHandoff(session))),
      );
      assert.equal(insertResults.filter(({ status }) => status === 'fulfilled').length, 1);
    });

    it('transactions on the same fence wait for each other', async () => {
      const session = await aRunningSession();
      const next = () =>
        store.atomically(async trx => {
          const { fence } = (await trx.controls.lockFence(application, session)) ?? assert.fail();
          await trx.controls.setFence(session, fence + 1);
        });
      await Promise.all(Array.from({ length: 20 }, next));
      assert.equal((await store.controls.ofSession(session))?.fence, 20);
    });

    it('another application cannot lock the fence of a session, and the lock result says whether the session is still running', async () => {
      const session = await aRunningSession();
      const lockFence = (of: ApplicationId) => store.atomically(within => within.controls.lockFence(of, session));
      assert.equal(await lockFence(newId<ApplicationId>(NOW)), undefined);
      assert.deepEqual(await lockFence(application), { fence: 0, runs: true });
      await store.sessions.decideEnd(session, { status: 'COMPLETED', reason: 'released' }, NOW);
      assert.equal((await lockFence(application))?.runs, false);
      assert.equal(await store.controls.revokeLinks(newId<ApplicationId>(NOW), session), undefined);
    });

    it('a hand-off can be changed, found by its lease, and listed by session, key and status', async () => {
      const session = await aRunningSession();
      const row = {
        ...aHandoff(session),
        keyId: newId<KeyId>(NOW),
        allowedOrigins: ['https://a.example'],
        evidence: { a: 1 },
      };
      await store.handoffs.insert(row);
      assert.deepEqual(await store.handoffs.get(application, row.id), row);
      assert.equal(await store.handoffs.get(newId<ApplicationId>(NOW), row.id), undefined);
      const lease = {
        status: 'claimed',
        leaseHash: randomBytes(32),
        leaseExpiresAt: HALF_MINUTE_LATER,
        holder: randomUUID(),
      } as const;
      const claimedRow = await store.handoffs.change(row.id, lease);
      assert.deepEqual(claimedRow, { ...row, ...lease });
      assert.deepEqual(await store.handoffs.byLease(lease.leaseHash), claimedRow);
      const filters = [{ session }, { key: row.keyId }, { session, status: 'claimed' }] as const;
      for (const filter of filters)
        assert.deepEqual(await store.handoffs.list(application, { limit: 9, ...filter }), [claimedRow]);
      assert.deepEqual(await store.handoffs.list(application, { limit: 9, session, status: 'expired' }), []);
    });

    it('a hand-off is listed for a period only if a person had control during that period', async () => {
      const session = await aRunningSession();
      const row = aHandoff(session);
      await store.handoffs.insert(row);
      const countListed = async (from: Date, to = HALF_MINUTE_LATER): Promise<number> =>
        (await store.handoffs.listControlledBetween(session, from, to)).length;
      const claimedAt = addMs(NOW, 1000);
      await store.handoffs.change(row.id, { status: 'claimed', claimedAt, leaseExpiresAt: HALF_MINUTE_LATER });
      assert.deepEqual([await countListed(HALF_MINUTE_LATER), await countListed(NOW, NOW)], [1, 0]);
      const returnChange = { status: 'requested', leaseExpiresAt: null, controlUntil: addMs(NOW, 2000) } as const;
      await store.handoffs.change(row.id, returnChange);
      assert.deepEqual([await countListed(addMs(NOW, 1500)), await countListed(addMs(NOW, 2001))], [1, 0]);
      // A server of an earlier version of Berth leaves the end of the previous control in the row.
      const secondClaim = {
        status: 'claimed',
        claimedAt: addMs(NOW, 3000),
        leaseExpiresAt: HALF_MINUTE_LATER,
      } as const;
      await store.handoffs.change(row.id, secondClaim);
      assert.equal(await countListed(addMs(NOW, 4000)), 1);
      const completion = { status: 'completed', leaseExpiresAt: null, endedAt: addMs(NOW, 5000) } as const;
      await store.handoffs.change(row.id, completion);
      assert.deepEqual([await countListed(addMs(NOW, 4000)), await countListed(addMs(NOW, 5001))], [1, 0]);
    });

    it('a link is bound to the first browser that opens it, and its secret is deleted after too many wrong attempts', async () => {
      const row = aHandoff(await aRunningSession());
      await store.handoffs.insert(row);
      const bindResults = await Promise.all(
        Array.from({ length: 5 }, () => store.handoffs.bindBrowser(application, row.id, randomBytes(32))),
      );
      assert.equal(bindResults.filter(isFirst => isFirst).length, 1);
      for (let tries = 0; tries < 9; tries++) await store.handoffs.countWrongSecret(application, row.id, 10);
      assert.ok((await store.handoffs.get(application, row.id))?.claimHash);
      await store.handoffs.countWrongSecret(application, row.id, 10);
      assert.equal((await store.handoffs.get(application, row.id))?.claimHash, undefined);
    });

    it('open hand-offs of ended sessions are ended, and deleted later', async () => {
      const session = await aRunningSession();
      const row = aHandoff(session);
      await store.handoffs.insert(row);
      await store.sessions.decideEnd(session, { status: 'COMPLETED', reason: 'released' }, NOW);
      await store.sessions.finish(session, NOW, 0);
      assert.ok((await store.handoffs.endForEndedSessions(NOW)) >= 1);
      assert.equal((await store.handoffs.get(application, row.id))?.status, 'session_ended');
      assert.equal(await store.handoffs.forget(NOW, 100), 0);
      assert.ok((await store.handoffs.forget(HALF_MINUTE_LATER, 100)) >= 1);
    });

    it('the link epoch is incremented each time the links of a session are revoked, and the fence does not change', async () => {
      const session = await aRunningSession();
      assert.equal(await store.controls.ofSession(session), undefined);
      assert.equal(await store.controls.revokeLinks(application, session), 1);
      assert.equal(await store.controls.revokeLinks(application, session), 2);
      const row = await store.controls.ofSession(session);
      assert.equal(row?.linkEpoch, 2);
      assert.equal(row?.fence, 0);
    });
  });
}
