// Usage per session and per hour in the store, on the embedded PostgreSQL and on an operator's server.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { openStore, type StoreOptions } from '../../server/engines/store/open-store.ts';
import type { SessionEnd } from '../../server/engines/store/rows/sessions.ts';
import type { UsageHour } from '../../server/engines/store/rows/usage-hours.ts';
import type { Store } from '../../server/engines/store/store.ts';
import { addMs } from '../../server/kit/clock.ts';
import {
  type AccountId,
  type ApplicationId,
  type HostId,
  type KeyId,
  newId,
  type SessionId,
} from '../../server/kit/ids.ts';
import { silentLog } from '../../server/kit/log.ts';
import { Scope } from '../../server/kit/scope.ts';
import { clockAt, makeTemporaryFolder, startForeignServer } from './store-fixtures.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const TEN_OCLOCK = new Date('2026-11-20T10:00:00.000Z');
const clock = clockAt(addMs(TEN_OCLOCK, 2 * HOUR_MS));
const RELEASE_END: SessionEnd = { status: 'COMPLETED', reason: 'released' };
const CRASH_END: SessionEnd = { status: 'ERROR', reason: 'crashed' };

describeUsage('embedded', async scope => ({ dataDir: makeTemporaryFolder(scope, 'usage'), log: silentLog, clock }));
describeUsage('external', async scope => {
  const server = await startForeignServer(scope);
  return { databaseUrl: server.url, dataDir: makeTemporaryFolder(scope, 'unused'), log: silentLog, clock };
});

interface PastSession {
  readonly applicationId: ApplicationId;
  readonly hostId: HostId;
  readonly keyId?: KeyId;
  /** In minutes after 10:00, like `endedMinute`. */
  readonly createdMinute: number;
  readonly startMs?: number;
  readonly endedMinute?: number;
  readonly end?: SessionEnd;
}

function describeUsage(name: string, prepare: (scope: Scope) => Promise<StoreOptions>): void {
  describe(`usage in the store, ${name} database`, () => {
    const scope = new Scope();
    let store: Store;

    before(async () => {
      store = scope.own(await openStore(await prepare(scope)));
    });
    after(() => scope.close());

    const anApplication = async (): Promise<ApplicationId> => {
      const account = { id: newId<AccountId>(TEN_OCLOCK), name: 'Ada', createdAt: TEN_OCLOCK };
      await store.accounts.insert(account);
      const id = newId<ApplicationId>(TEN_OCLOCK);
      const row = { id, name: 'Shop', slug: `s-${id}`, billingAccountId: account.id, revision: 1 };
      await store.applications.insert({ ...row, createdAt: TEN_OCLOCK, updatedAt: TEN_OCLOCK }, account.id, 50);
      return id;
    };
    const aHost = async (): Promise<HostId> => {
      const id = newId<HostId>(TEN_OCLOCK);
      await store.hosts.announce({ id, region: 'local', slots: 1000, startedAt: TEN_OCLOCK });
      return id;
    };
    const aKey = async (applicationId: ApplicationId): Promise<KeyId> => {
      const id = newId<KeyId>(TEN_OCLOCK);
      const hash = createHash('sha256').update(id).digest();
      const row = {
        ...{ id, applicationId, name: 'nightly', prefix: 'bak_', hash, revision: 1, createdAt: TEN_OCLOCK },
      };
      await store.keys.insert({ ...row, scopes: [], cidrAllow: [], grants: [] }, 50);
      return id;
    };
    const aSession = async ({
      createdMinute: created,
      startMs,
      endedMinute: ended,
      end = RELEASE_END,
      ...owner
    }: PastSession): Promise<SessionId> => {
      const createdAt = addMs(TEN_OCLOCK, created * MINUTE_MS);
      const id = newId<SessionId>(createdAt);
      const expiresAt = addMs(createdAt, 6 * HOUR_MS);
      const commonFields = { region: 'local', keepAlive: false, userMetadata: {}, settings: {} };
      await store.sessions.place({ id, ...owner, ...commonFields, createdAt, expiresAt });
      if (startMs !== undefined) await store.sessions.markRunning(id, addMs(createdAt, startMs));
      if (ended === undefined) return id;
      await store.sessions.decideEnd(id, end, addMs(TEN_OCLOCK, ended * MINUTE_MS));
      await store.sessions.finish(id, addMs(TEN_OCLOCK, ended * MINUTE_MS), 0);
      return id;
    };
    const period = { from: TEN_OCLOCK, to: addMs(TEN_OCLOCK, 3 * HOUR_MS), now: addMs(TEN_OCLOCK, 150 * MINUTE_MS) };
    const startCounts = (...ms: readonly number[]): number[] => {
      const counts = [...store.usageHours.startBoundsMs, 0].map(() => 0);
      for (const one of ms) {
        const at = store.usageHours.startBoundsMs.filter(bound => bound <= one).length;
        counts[at] = (counts[at] ?? 0) + 1;
      }
      return counts;
    };

    it('the largest usage values of a session are kept, and deleted with the session', async () => {
      const [applicationId, hostId] = [await anApplication(), await aHost()];
      const id = await aSession({ applicationId, hostId, createdMinute: 0, startMs: 1 });
      const sessionId = id;
      assert.equal(await store.usage.ofSession(id), undefined);
      await store.usage.save([{ sessionId, bytesReceived: 5, bytesSent: 1 }]);
      assert.deepEqual(await store.usage.ofSession(id), { sessionId, bytesReceived: 5, bytesSent: 1 });
      await store.usage.save([
        { sessionId, cpuMs: 70, peakMemoryBytes: 2 ** 33, bytesReceived: 4, bytesSent: 2 },
        { sessionId: newId<SessionId>(TEN_OCLOCK), bytesReceived: 1, bytesSent: 1 },
      ]);
      const largestUsage = { sessionId, cpuMs: 70, peakMemoryBytes: 2 ** 33, bytesReceived: 5, bytesSent: 2 };
      assert.deepEqual(await store.usage.ofSession(id), largestUsage);
      await store.sessions.decideEnd(id, RELEASE_END, TEN_OCLOCK);
      await store.sessions.finish(id, TEN_OCLOCK, 0);
      await store.retention.forget(applicationId, id);
      assert.equal(await store.usage.ofSession(id), undefined);
    });

    it('the hourly usage is the same before and after it is summed, even if the sessions were deleted', async () => {
      const [applicationId, hostId] = [await anApplication(), await aHost()];
      const keyId = await aKey(applicationId);
      const owner = { applicationId, hostId };
      const crashedSession = await aSession({
        ...owner,
        keyId,
        createdMinute: 10,
        startMs: 120,
        endedMinute: 40,
        end: CRASH_END,
      });
      await aSession({ ...owner, keyId, createdMinute: 30, startMs: 900, endedMinute: 75 });
      await aSession({
        ...owner,
        createdMinute: 50,
        endedMinute: 55,
        end: { status: 'ERROR', reason: 'start_failed' },
      });
      await aSession({ ...owner, createdMinute: 70, startMs: 60_000 });
      const used = { sessionId: crashedSession, cpuMs: 1500, peakMemoryBytes: 7, bytesReceived: 1000, bytesSent: 100 };
      await store.usage.save([used]);
      // Two sessions run at the same time from 10:30 to 10:40, and from 11:11 to 11:15.
      const expectedHours: UsageHour[] = [
        {
          ...{ hour: TEN_OCLOCK, created: 3, ended: 2, failed: 2, endReasons: { crashed: 1, start_failed: 1 } },
          ...{ starts: startCounts(120, 900), peak: 2, browserMs: 60 * MINUTE_MS - 120 - 900 },
          ...{ cpuMs: 1500, bytesReceived: 1000, bytesSent: 100 },
        },
        {
          ...{ hour: addMs(TEN_OCLOCK, HOUR_MS), created: 1, ended: 1, failed: 0, endReasons: { released: 1 } },
          ...{ starts: startCounts(60_000), peak: 2, browserMs: (15 + 49) * MINUTE_MS },
          ...{ cpuMs: 0, bytesReceived: 0, bytesSent: 0 },
        },
        {
          ...{ hour: addMs(TEN_OCLOCK, 2 * HOUR_MS), created: 0, ended: 0, failed: 0, endReasons: {} },
          ...{ starts: startCounts(), peak: 1, browserMs: 30 * MINUTE_MS },
          ...{ cpuMs: 0, bytesReceived: 0, bytesSent: 0 },
        },
      ];
      const keyUsage = {
        ...{ keyId, name: 'nightly', created: 2, ended: 2, failed: 1 },
        ...{ browserMs: 75 * MINUTE_MS - 1020, cpuMs: 1500, bytesReceived: 1000, bytesSent: 100 },
      };
      const assertSame = async (): Promise<void> => {
        assert.deepEqual(await store.usageHours.ofApplication(applicationId, period), expectedHours);
        assert.deepEqual(await store.usageHours.byKey(applicationId, period, 10), [keyUsage]);
      };
      await assertSame();
      assert.equal(await store.usageHours.sum(addMs(TEN_OCLOCK, HOUR_MS), 24), 1);
      await assertSame();
      assert.equal(await store.usageHours.sum(addMs(TEN_OCLOCK, HOUR_MS), 24), 0);
      assert.equal(await store.usageHours.sum(addMs(TEN_OCLOCK, 3 * HOUR_MS), 1), 1);
      await store.retention.forget(applicationId, crashedSession);
      await assertSame();
      assert.deepEqual(await store.usageHours.ofApplication(await anApplication(), period), []);
      assert.ok((await store.usageHours.forget(addMs(TEN_OCLOCK, HOUR_MS))) >= 2);
      assert.deepEqual(await store.usageHours.ofApplication(applicationId, period), expectedHours.slice(1));
    });
  });
}
