// Artifacts on the local disk: the common suite, and tests that only the disk needs.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { describe, it } from 'node:test';
import { openDisk } from '../../server/engines/artifacts/disk.ts';
import { asKey, downloadKey, extensionKey } from '../../server/engines/artifacts/keys.ts';
import { Staging } from '../../server/engines/artifacts/staging.ts';
import type { ApplicationId, SessionId } from '../../server/kit/ids.ts';
import { describeArtifacts } from './artifacts-suite.ts';

describeArtifacts('disk', (_scope, folder) => openDisk(folder));

const APP = randomUUID() as ApplicationId;
const SESSION = randomUUID() as SessionId;
const BACKUP_FOLDER = `.backup-${randomUUID()}`;
const LINKING_FOLDER = `.backup-linking-${randomUUID()}`;

describe('artifacts on disk', () => {
  const withFolder = async (work: (folder: string) => Promise<void>): Promise<void> => {
    const folder = mkdtempSync(join(tmpdir(), 'berth-artifacts-'));
    await work(folder).finally(() => rmSync(folder, { recursive: true }));
  };

  it('the store creates files that other users cannot read', () =>
    withFolder(async folder => {
      const disk = await openDisk(folder);
      const key = downloadKey(APP, SESSION, randomUUID());
      await disk.put(key, Readable.from([Buffer.from('x')]));
      assert.equal(statSync(join(folder, 'artifacts', 'objects')).mode & 0o077, 0);
      assert.equal(statSync(join(folder, 'artifacts', 'objects', key)).mode & 0o077, 0);
    }));

  it('unfinished files of a killed server are removed at the next start', () =>
    withFolder(async folder => {
      const disk = await openDisk(folder);
      writeFileSync(join(folder, 'artifacts', 'incoming', 'half'), 'abc');
      await disk.recover();
      assert.deepEqual(readdirSync(join(folder, 'artifacts', 'incoming')), []);
    }));

  it('no empty folders remain when objects are removed', () =>
    withFolder(async folder => {
      const disk = await openDisk(folder);
      const key = downloadKey(APP, SESSION, randomUUID());
      await disk.put(key, Readable.from([Buffer.from('x')]));
      await disk.remove([key]);
      assert.deepEqual(readdirSync(join(folder, 'artifacts', 'objects')), []);
    }));

  it('an object that is removed during a backup is kept in the folder of the backup', () =>
    withFolder(async folder => {
      const disk = await openDisk(folder);
      const key = downloadKey(APP, SESSION, randomUUID());
      await disk.put(key, Readable.from([Buffer.from('x')]));
      mkdirSync(join(folder, LINKING_FOLDER));
      await disk.remove([key]);
      assert.equal(await disk.stat(key), undefined);
      assert.equal(readFileSync(join(folder, LINKING_FOLDER, 'artifacts', 'objects', key), 'utf8'), 'x');
    }));

  it('a removed object is not kept once a backup has linked all files, and an object is removed even if linking it fails', () =>
    withFolder(async folder => {
      const disk = await openDisk(folder);
      const key = downloadKey(APP, SESSION, randomUUID());
      await disk.put(key, Readable.from([Buffer.from('x')]));
      mkdirSync(join(folder, BACKUP_FOLDER));
      writeFileSync(join(folder, LINKING_FOLDER), 'a file where a folder should be');
      await disk.remove([key]);
      assert.equal(await disk.stat(key), undefined);
      assert.deepEqual(readdirSync(join(folder, BACKUP_FOLDER)), []);
    }));

  it('a staged file that is removed during a backup is kept in the folder of the backup', () =>
    withFolder(async folder => {
      const staging = await Staging.open(folder);
      const { name } = await staging.write(Readable.from([Buffer.from('x')]));
      mkdirSync(join(folder, LINKING_FOLDER));
      await staging.remove(name);
      assert.equal(await staging.open(name), undefined);
      assert.equal(readFileSync(join(folder, LINKING_FOLDER, 'staging', 'outbox', name), 'utf8'), 'x');
    }));

  it('a put fails when the disk cannot store the object, and leaves no unfinished file behind', () =>
    withFolder(async folder => {
      const disk = await openDisk(folder);
      mkdirSync(join(folder, 'artifacts', 'objects', APP));
      writeFileSync(join(folder, 'artifacts', 'objects', APP, 'sessions'), 'a file where a folder should be');
      const key = downloadKey(APP, SESSION, randomUUID());
      await assert.rejects(disk.put(key, Readable.from([Buffer.from('x')])), /ENOTDIR|EEXIST/);
      assert.deepEqual(readdirSync(join(folder, 'artifacts', 'incoming')), []);
    }));
});

describe('artifact key', () => {
  it('an artifact key is built from ids or a checksum, and is accepted when it is parsed', () => {
    assert.equal(downloadKey(APP, SESSION, 'abc'), `${APP}/sessions/${SESSION}/downloads/abc`);
    const key = extensionKey(APP, 'a'.repeat(64));
    assert.equal(asKey(key), key);
  });

  for (const part of [
    '',
    '.',
    '..',
    '../x',
    'a/../b',
    'a b',
    '/etc',
    'ä',
    'a\0',
    '.hidden',
    'A',
    'a\n',
    'x'.repeat(200),
  ])
    it(`an artifact key cannot have the part ${JSON.stringify(part.slice(0, 20))}`, () => {
      assert.throws(() => downloadKey(APP, SESSION, part), /cannot be part/);
      assert.throws(() => asKey(`${APP}/${part}`), /cannot be part/);
    });
});
