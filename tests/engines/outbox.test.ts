// The outbox on a real database, with the disk and with a bucket that becomes unavailable. Every posted file is stored
// exactly once, even after delays and crashes.
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import { Outbox } from '../../server/domain/files/outbox.ts';
import type { Artifacts } from '../../server/engines/artifacts/artifacts.ts';
import { openDisk } from '../../server/engines/artifacts/disk.ts';
import { type ArtifactKey, downloadKey } from '../../server/engines/artifacts/keys.ts';
import { openS3 } from '../../server/engines/artifacts/s3.ts';
import { Staging } from '../../server/engines/artifacts/staging.ts';
import { openStore } from '../../server/engines/store/open-store.ts';
import type { OutboxRows } from '../../server/engines/store/rows/outbox.ts';
import type { Store } from '../../server/engines/store/store.ts';
import { addMs, systemClock } from '../../server/kit/clock.ts';
import { type AccountId, type ApplicationId, type HostId, newId, type SessionId } from '../../server/kit/ids.ts';
import { silentLog } from '../../server/kit/log.ts';
import { Scope } from '../../server/kit/scope.ts';
import { Secret } from '../../server/kit/secret.ts';
import { type S3Store, startS3 } from '../harness/s3.ts';
import { eventually } from '../harness/until.ts';
import { makeTemporaryFolder } from './store-fixtures.ts';

describe('the outbox', () => {
  const scope = new Scope();
  const now = systemClock.now();
  const host = newId<HostId>(now);
  const app = newId<ApplicationId>(now);
  let folder: string;
  let store: Store;
  let staging: Staging;
  let s3: S3Store;
  let disk: Artifacts;
  let bucket: Artifacts;

  before(async () => {
    folder = makeTemporaryFolder(scope, 'outbox');
    store = scope.own(await openStore({ dataDir: folder, log: silentLog, clock: systemClock }));
    await store.hosts.announce({ id: host, region: 'local', slots: 1, startedAt: now });
    const account = { id: newId<AccountId>(now), name: 'Ada', createdAt: now };
    await store.accounts.insert(account);
    const row = { id: app, name: 'Shop', slug: `s-${app}`, billingAccountId: account.id, revision: 1 };
    await store.applications.insert({ ...row, createdAt: now, updatedAt: now }, account.id, 50);
    staging = await Staging.open(folder);
    s3 = scope.own(await startS3());
    disk = scope.own(await openDisk(folder));
    const keys = { accessKey: s3.accessKey, secretKey: new Secret(s3.secretKey) };
    const { endpoint } = s3;
    bucket = scope.own(
      openS3({ endpoint, bucket: s3.bucket, region: 'us-east-1', pathStyle: true, keys }, systemClock),
    );
  });
  after(() => scope.close());

  const newKey = (): ArtifactKey => downloadKey(app, newId<SessionId>(now), randomUUID());
  const open = (artifacts: Artifacts, clock = systemClock, log = silentLog, rows = store.outbox): Outbox => {
    const trigger = (): void => {};
    return new Outbox({ rows, artifacts, staging, host, clock, log, trigger });
  };
  const stage = async (bytes: Buffer): Promise<string> => (await staging.write(Readable.from([bytes]))).name;
  const read = async (outbox: Outbox, key: ArtifactKey): Promise<Buffer | undefined> => {
    const openedArtifact = await outbox.open(app, key);
    return openedArtifact && buffer(openedArtifact.body);
  };
  /** Runs the task of the outbox repeatedly, as the server does, until no staged file remains. */
  const emptyOutbox = (outbox: Outbox): Promise<unknown> =>
    eventually('the outbox to be empty', async () => {
      await outbox.reconcile();
      return (await store.outbox.stagedNames(host)).size === 0;
    });

  it('the outbox returns a posted file immediately, and stores the file afterwards', async () => {
    const outbox = open(disk);
    const key = newKey();
    const bytes = randomBytes(100_000);
    await outbox.post(app, { key, staged: await stage(bytes) });
    assert.deepEqual([...(await outbox.waiting(app, [key, newKey()]))], [key]);
    assert.ok((await read(outbox, key))?.equals(bytes));
    assert.equal(await disk.stat(key), undefined);
    await emptyOutbox(outbox);
    assert.deepEqual(await disk.stat(key), { size: bytes.length });
    assert.ok((await read(outbox, key))?.equals(bytes));
    assert.equal((await outbox.waiting(app, [key])).size, 0);
    assert.deepEqual(readdirSync(join(folder, 'staging', 'outbox')), []);
    await outbox.close();
  });

  it('the outbox accepts either all files of a call or none of them', async () => {
    const outbox = open(disk);
    const [first, second] = [newKey(), newKey()];
    const firstFile = { key: first, staged: await stage(Buffer.from('a')) };
    // PostgreSQL text cannot contain a NUL character, so this call fails.
    await assert.rejects(outbox.post(app, firstFile, { key: second, staged: '\0' }));
    assert.equal((await outbox.waiting(app, [first, second])).size, 0);
    await outbox.post(app, firstFile, { key: second, staged: await stage(Buffer.from('b')) });
    await emptyOutbox(outbox);
    assert.deepEqual([String(await read(outbox, first)), String(await read(outbox, second))], ['a', 'b']);
    assert.deepEqual(readdirSync(join(folder, 'staging', 'outbox')), []);
    await outbox.close();
  });

  it('the outbox returns a waiting file only to the application that owns the file', async () => {
    const outbox = open(disk);
    const key = newKey();
    await outbox.post(app, { key, staged: await stage(Buffer.from('x')) });
    const otherApp = newId<ApplicationId>(now);
    assert.equal((await outbox.waiting(otherApp, [key])).size, 0);
    assert.equal(await outbox.open(otherApp, key), undefined);
    await emptyOutbox(outbox);
    await outbox.close();
  });

  it('the outbox retries with growing delays while the store is down, and loses no file', async () => {
    let time = now;
    const clock = { ...systemClock, now: () => time };
    const warnedKeys: unknown[] = [];
    const outbox = open(bucket, clock, {
      ...silentLog,
      warn: (_, fields) => void warnedKeys.push(fields?.objectKey),
    });
    const key = newKey();
    const bytes = randomBytes(50_000);
    await s3.down();
    await outbox.post(app, { key, staged: await stage(bytes) });
    const readDueInMs = async (): Promise<number> =>
      Number((await store.outbox.byKey(app, key))?.dueAt) - clock.now().getTime();
    const readAttempts = async (): Promise<number> => (await store.outbox.byKey(app, key))?.attempts ?? -1;
    for (const [attempt, waitMs] of [1000, 2000, 4000].entries()) {
      await outbox.reconcile();
      await eventually('an attempt to fail', async () => (await readAttempts()) === attempt + 1);
      assert.equal(await readDueInMs(), waitMs);
      assert.ok((await read(outbox, key))?.equals(bytes), 'the waiting file can still be read');
      time = addMs(time, waitMs);
    }
    assert.deepEqual(warnedKeys, [key, key, key], 'in a field that the log shows, which `key` is not');
    await s3.up();
    await emptyOutbox(outbox);
    assert.ok((await read(outbox, key))?.equals(bytes));
    assert.deepEqual(await bucket.stat(key), { size: bytes.length });
    await outbox.close();
  });

  it('the outbox continues after a crash between storing a file and deleting the row of the file', async () => {
    const killedOutbox = open(disk);
    const key = newKey();
    const staged = await stage(Buffer.from('posted'));
    await killedOutbox.post(app, { key, staged });
    // This is the state after a server was killed before it could delete the row.
    await disk.putFile(key, staging.pathOf(staged));
    await stage(Buffer.from('staged and never posted'));
    const successor = open(disk);
    assert.equal(await successor.recover(), 1);
    await emptyOutbox(successor);
    assert.equal((await read(successor, key))?.toString(), 'posted');
    assert.deepEqual(readdirSync(join(folder, 'staging', 'outbox')), []);
    await successor.close();
  });

  it('a file that is stored while the outbox reads which files are due remains stored', async () => {
    const key = newKey();
    const whenRowRemoved = (): Promise<unknown> =>
      eventually('the file to be stored', async () => (await store.outbox.byKey(app, key)) === undefined);
    let dueCalls = 0;
    const due: OutboxRows['due'] = async (...query) => {
      const rows = await store.outbox.due(...query);
      if (dueCalls++ > 0) await whenRowRemoved();
      return rows;
    };
    const outbox = open(disk, systemClock, silentLog, { ...store.outbox, due });
    await outbox.post(app, { key, staged: await stage(Buffer.from('once')) });
    await outbox.reconcile();
    await outbox.reconcile();
    await outbox.close();
    assert.deepEqual(await disk.stat(key), { size: 4 });
  });

  it('the outbox withdraws waiting files and removes stored ones', async () => {
    const outbox = open(disk);
    const [waitingKey, storedKey] = [newKey(), newKey()];
    await outbox.post(app, { key: storedKey, staged: await stage(Buffer.from('a')) });
    await emptyOutbox(outbox);
    await outbox.post(app, { key: waitingKey, staged: await stage(Buffer.from('b')) });
    await outbox.remove(app, [waitingKey, storedKey]);
    await emptyOutbox(outbox);
    for (const key of [waitingKey, storedKey]) assert.equal(await read(outbox, key), undefined);
    assert.deepEqual(readdirSync(join(folder, 'staging', 'outbox')), []);
    await outbox.close();
  });

  it('no object remains when a file is withdrawn while the outbox is storing the file', async () => {
    const outbox = open(bucket);
    for (let round = 0; round < 10; round++) {
      const key = newKey();
      await outbox.post(app, { key, staged: await stage(randomBytes(1_000_000)) });
      await outbox.reconcile();
      await outbox.remove(app, [key]);
      await emptyOutbox(outbox);
      assert.equal(await bucket.stat(key), undefined);
      assert.equal(await read(outbox, key), undefined);
    }
    await outbox.close();
  });
});
