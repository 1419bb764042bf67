// Certificates and extensions in the store, on the embedded PostgreSQL and on an operator's server.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { openStore, type StoreOptions } from '../../server/engines/store/open-store.ts';
import type { CertificateRow } from '../../server/engines/store/rows/certificates.ts';
import type { ExtensionRow } from '../../server/engines/store/rows/extensions.ts';
import type { Store } from '../../server/engines/store/store.ts';
import { addMs } from '../../server/kit/clock.ts';
import {
  type AccountId,
  type ApplicationId,
  type CertificateId,
  type ExtensionId,
  newId,
} from '../../server/kit/ids.ts';
import { silentLog } from '../../server/kit/log.ts';
import { Scope } from '../../server/kit/scope.ts';
import { clockAt, makeTemporaryFolder, startForeignServer } from './store-fixtures.ts';

const NOW = new Date('2026-11-20T10:00:00.123Z');
const HOUR_MS = 3_600_000;
const clock = clockAt(NOW);
const sum = (text: string): string => createHash('sha256').update(text).digest('hex');

describeUploads('embedded', async scope => ({ dataDir: makeTemporaryFolder(scope, 'uploads'), log: silentLog, clock }));
describeUploads('external', async scope => {
  const server = await startForeignServer(scope);
  return { databaseUrl: server.url, dataDir: makeTemporaryFolder(scope, 'unused'), log: silentLog, clock };
});

function describeUploads(name: string, prepare: (scope: Scope) => Promise<StoreOptions>): void {
  describe(`uploads in the store, ${name} database`, () => {
    const scope = new Scope();
    let store: Store;
    let ownApplication: ApplicationId;
    let foreignApplication: ApplicationId;

    const anApplication = async (): Promise<ApplicationId> => {
      const account = { id: newId<AccountId>(NOW), name: 'Ada', createdAt: NOW };
      await store.accounts.insert(account);
      const id = newId<ApplicationId>(NOW);
      const row = { id, name: 'Shop', slug: `s-${id}`, billingAccountId: account.id, revision: 1 };
      await store.applications.insert({ ...row, createdAt: NOW, updatedAt: NOW }, account.id, 50);
      return id;
    };
    before(async () => {
      store = scope.own(await openStore(await prepare(scope)));
      ownApplication = await anApplication();
      foreignApplication = await anApplication();
    });
    after(() => scope.close());

    const aCertificate = (applicationId: ApplicationId): CertificateRow => ({
      id: newId<CertificateId>(NOW),
      applicationId,
      subjects: ['CN=a', 'CN={b, "c"}'],
      fingerprints: ['sha256:1', 'sha256:2'],
      notAfter: addMs(NOW, HOUR_MS),
      createdAt: NOW,
    });
    const DERS = [Buffer.from([0, 1, 255]), Buffer.from('two')];

    const anExtension = async (applicationId: ApplicationId, content: string, usedAt = NOW): Promise<ExtensionRow> => {
      const row: ExtensionRow = {
        id: newId<ExtensionId>(NOW),
        applicationId,
        checksum: sum(content),
        fileName: 'e.zip',
        size: 7,
        name: 'E',
        version: '1',
        manifestVersion: 3,
        createdAt: NOW,
        usedAt,
      };
      await store.extensions.expectFile(applicationId, row.checksum, usedAt);
      assert.equal(await store.extensions.insert(row, 1000), 'inserted');
      return row;
    };

    it('certificates are listed newest first, for their application only', async () => {
      const { certificates } = store;
      const [first, second, foreign] = [
        aCertificate(ownApplication),
        aCertificate(ownApplication),
        aCertificate(foreignApplication),
      ];
      for (const row of [first, second, foreign]) assert.equal(await certificates.insert(row, DERS, 2), 'inserted');
      assert.equal(await certificates.insert(aCertificate(ownApplication), DERS, 2), 'limit_reached');
      const newestFirst = [first, second].sort((a, b) => (a.id < b.id ? 1 : -1));
      assert.deepEqual(await certificates.list(ownApplication), newestFirst);
      assert.deepEqual(await certificates.get(ownApplication, first.id), first);
      assert.equal(await certificates.get(ownApplication, foreign.id), undefined);
      const ders = await certificates.ders(ownApplication, [first.id, foreign.id, newId(NOW)]);
      assert.deepEqual([...ders], [[first.id, DERS]]);
      assert.equal(await certificates.remove(ownApplication, foreign.id), false);
      assert.equal(await certificates.remove(ownApplication, first.id), true);
      assert.equal(await certificates.remove(ownApplication, first.id), false);
      assert.equal((await certificates.list(foreignApplication)).length, 1);
    });

    it('the certificate limit is enforced for concurrent inserts', async () => {
      const application = await anApplication();
      const rows = Array.from({ length: 10 }, () => aCertificate(application));
      const outcomes = await Promise.all(rows.map(row => store.certificates.insert(row, DERS, 3)));
      assert.equal(outcomes.filter(outcome => outcome === 'inserted').length, 3);
    });

    it('extensions are returned only to their application, and the time of their last use is recorded', async () => {
      const row = await anExtension(ownApplication, 'mine', addMs(NOW, -HOUR_MS));
      const foreignExtension = await anExtension(foreignApplication, 'foreign');
      assert.deepEqual(await store.extensions.get(ownApplication, row.id), row);
      assert.equal(await store.extensions.get(ownApplication, foreignExtension.id), undefined);
      const used = await store.extensions.use(ownApplication, [row.id, foreignExtension.id, newId(NOW)], NOW);
      assert.deepEqual(used, [{ ...row, usedAt: NOW }]);
      assert.equal(await store.extensions.remove(ownApplication, foreignExtension.id), false);
      assert.equal(await store.extensions.remove(ownApplication, row.id), true);
      assert.equal(await store.extensions.get(ownApplication, row.id), undefined);
    });

    it('unused extensions are removed, and files are removed only if no extension needs them', async () => {
      const application = await anApplication();
      const old = addMs(NOW, -48 * HOUR_MS);
      const staleExtension = await anExtension(application, 'stale', old);
      const freshExtension = await anExtension(application, 'fresh', old);
      const twinExtension = await anExtension(application, 'stale', old);
      await store.extensions.use(application, [freshExtension.id], NOW);
      const droppedChecksums: string[] = [];
      const drop = (): Promise<boolean> =>
        store.extensions.dropFile(addMs(NOW, -HOUR_MS), async (owner, checksum) => {
          if (owner === application) droppedChecksums.push(checksum);
        });
      const dropAll = async (): Promise<void> => {
        for (let more = await drop(); more; more = await drop());
      };
      await dropAll();
      assert.deepEqual(droppedChecksums, [], 'both files are needed');
      await store.extensions.remove(application, twinExtension.id);
      await dropAll();
      assert.deepEqual(droppedChecksums, [], 'another extension needs the same file');
      assert.ok((await store.extensions.forget(addMs(NOW, -24 * HOUR_MS), 100)) >= 1);
      assert.equal(await store.extensions.get(application, staleExtension.id), undefined);
      assert.ok(await store.extensions.get(application, freshExtension.id));
      await dropAll();
      assert.deepEqual(droppedChecksums, [staleExtension.checksum]);
    });

    it('the removal of a file is retried after a failure', async () => {
      const application = await anApplication();
      await store.extensions.expectFile(application, sum('stuck'), addMs(NOW, -48 * HOUR_MS));
      const cutoff = addMs(NOW, -HOUR_MS);
      const fail = (): Promise<void> => Promise.reject(new Error('the disk is not available'));
      await assert.rejects(store.extensions.dropFile(cutoff, fail), /the disk is not available/);
      assert.equal(await store.extensions.dropFile(cutoff, async () => {}), true);
      assert.equal(await store.extensions.dropFile(cutoff, async () => {}), false);
    });

    it('a caller that wants to store a file waits while the same file is being removed', async () => {
      const application = await anApplication();
      const checksum = sum('contended');
      await store.extensions.expectFile(application, checksum, addMs(NOW, -48 * HOUR_MS));
      const order: string[] = [];
      const finishRemoval = Promise.withResolvers<void>();
      const removalBegun = Promise.withResolvers<void>();
      const pendingDrop = store.extensions.dropFile(addMs(NOW, -HOUR_MS), async () => {
        removalBegun.resolve();
        await finishRemoval.promise;
        order.push('removed');
      });
      await removalBegun.promise;
      const pendingExpectation = store.extensions
        .expectFile(application, checksum, NOW)
        .then(() => order.push('expected'));
      // This query is sent after the statement of `expectFile` but completes first, because `expectFile` is waiting for
      // the removal.
      await store.extensions.get(application, newId(NOW));
      finishRemoval.resolve();
      await Promise.all([pendingDrop, pendingExpectation]);
      assert.deepEqual(order, ['removed', 'expected']);
      assert.equal(
        await store.extensions.dropFile(addMs(NOW, -HOUR_MS), async () => {}),
        false,
        'the file has a new row',
      );
    });
  });
}
