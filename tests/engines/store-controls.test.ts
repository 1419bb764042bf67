// Control of a session is decided in the database: one of many concurrent requests gets it, with a fence that only grows.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { openStore, type StoreOptions } from '../../server/engines/store/open-store.ts';
import type { Store } from '../../server/engines/store/store.ts';
import { plus } from '../../server/kit/clock.ts';
import { type AccountId, type ApplicationId, type HostId, newId, type SessionId } from '../../server/kit/ids.ts';
import { silentLog } from '../../server/kit/log.ts';
import { Scope } from '../../server/kit/scope.ts';
import { clockAt, startForeignServer, temporaryFolder } from './store-fixtures.ts';

const NOW = new Date('2026-11-20T10:00:00.123Z');
const LATER = plus(NOW, 30_000);
const clock = clockAt(NOW);

describeControls('embedded', async scope => ({ dataDir: temporaryFolder(scope, 'controls'), log: silentLog, clock }));
describeControls('DATABASE_URL', async scope => {
  const server = await startForeignServer(scope);
  return { databaseUrl: server.url, dataDir: temporaryFolder(scope, 'unused'), log: silentLog, clock };
});

function describeControls(name: string, prepare: (scope: Scope) => Promise<StoreOptions>): void {
  describe(`control of sessions in the store on ${name}`, () => {
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

    const running = async (): Promise<SessionId> => {
      const id = newId<SessionId>(NOW);
      const row = { id, applicationId: application, hostId: host, region: 'local', keepAlive: true };
      const placed = await store.sessions.place({
        ...row,
        userMetadata: {},
        settings: {},
        createdAt: NOW,
        expiresAt: plus(NOW, 3_600_000),
      });
      assert.ok('placed' in placed);
      await store.sessions.run(id, NOW);
      return id;
    };
    const take = (session: SessionId, holder: string, now = NOW, until = LATER) =>
      store.controls.take(application, session, holder, now, until);

    it('is given to one of fifty concurrent requests', async () => {
      const session = await running();
      const taken = await Promise.all(Array.from({ length: 50 }, () => take(session, randomUUID())));
      assert.equal(taken.filter(row => row !== undefined).length, 1);
    });

    it('increments its fence each time the holder changes', async () => {
      const session = await running();
      const [anna, ben] = [randomUUID(), randomUUID()];
      const first = await take(session, anna);
      const again = await take(session, anna);
      assert.ok(first && again);
      assert.equal(again.fence, first.fence + 1);
      assert.equal(await store.controls.end(session, first.fence), false, 'the old fence ends nothing');
      assert.equal(await store.controls.end(session, again.fence), true);
      const next = await take(session, ben);
      assert.equal(next?.fence, again.fence + 2);
      assert.equal(next?.holder, ben);
    });

    it('is renewed only by its holder with the current fence', async () => {
      const session = await running();
      const anna = randomUUID();
      const { fence = 0 } = (await take(session, anna)) ?? {};
      assert.equal(await store.controls.renew(session, anna, fence, NOW, LATER), true);
      assert.equal(await store.controls.renew(session, randomUUID(), fence, NOW, LATER), false);
      assert.equal(await store.controls.renew(session, anna, fence - 1, NOW, LATER), false);
      assert.equal(await store.controls.renew(session, anna, fence, plus(LATER, 1), plus(LATER, 30_000)), false);
    });

    it('can be taken by another exactly when it has expired', async () => {
      const session = await running();
      await take(session, randomUUID());
      assert.equal(await take(session, randomUUID(), plus(LATER, -1)), undefined);
      assert.ok(await take(session, randomUUID(), LATER));
    });

    it('is refused for another application and for an ended session', async () => {
      const session = await running();
      const foreign = newId<ApplicationId>(NOW);
      assert.equal(await store.controls.take(foreign, session, randomUUID(), NOW, LATER), undefined);
      assert.equal(await store.controls.revokeLinks(foreign, session), undefined);
      await store.sessions.decideEnd(session, { status: 'COMPLETED', reason: 'released' }, NOW);
      assert.equal(await take(session, randomUUID()), undefined);
    });

    it('counts revoked links', async () => {
      const session = await running();
      assert.equal(await store.controls.of(session), undefined);
      assert.equal(await store.controls.revokeLinks(application, session), 1);
      await take(session, randomUUID());
      assert.equal(await store.controls.revokeLinks(application, session), 2);
      const row = await store.controls.of(session);
      assert.equal(row?.linkEpoch, 2);
      assert.equal(row?.fence, 1);
    });
  });
}
