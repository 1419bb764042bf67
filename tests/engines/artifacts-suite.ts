// Tests that every implementation of Artifacts must pass.
import assert from 'node:assert/strict';
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { readdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Artifacts, ByteRange } from '../../server/engines/artifacts/artifacts.ts';
import {
  type ArtifactKey,
  type ArtifactPrefix,
  downloadKey,
  recordingInitKey,
  recordingSegmentKey,
  sessionPrefix,
} from '../../server/engines/artifacts/keys.ts';
import type { ApplicationId, SessionId } from '../../server/kit/ids.ts';
import { Scope } from '../../server/kit/scope.ts';

const MIB = 1024 ** 2;
/** Garbage collection is slow, so the test collects only each time this many bytes have been streamed. */
const COLLECT_INTERVAL_BYTES = 16 * MIB;
const APP = randomUUID() as ApplicationId;
const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
const newSessionId = (): SessionId => randomUUID() as SessionId;
setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;
const newKey = (): ArtifactKey => downloadKey(APP, newSessionId(), randomUUID());

export function describeArtifacts(name: string, open: (scope: Scope, folder: string) => Promise<Artifacts>): void {
  describe(`artifacts on ${name}`, () => {
    const scope = new Scope();
    const folder = mkdtempSync(join(tmpdir(), 'berth-artifacts-'));
    let artifacts: Artifacts;

    before(async () => {
      artifacts = scope.own(await open(scope, folder));
    });
    after(async () => {
      await scope.close();
      rmSync(folder, { recursive: true });
    });

    /** Reads as a stream and into memory, and asserts that both give the same bytes. */
    const read = async (key: ArtifactKey, range?: ByteRange): Promise<Buffer | undefined> => {
      const openedArtifact = await artifacts.open(key, range);
      const streamedBytes = openedArtifact && (await buffer(openedArtifact.body));
      assert.deepEqual(await artifacts.read(key, range), streamedBytes);
      return streamedBytes;
    };
    const readSize = async (key: ArtifactKey, range?: ByteRange): Promise<number | undefined> => {
      const openedArtifact = await artifacts.open(key, range);
      openedArtifact?.body.destroy();
      return openedArtifact?.size;
    };
    const listKeys = async (prefix: ArtifactPrefix): Promise<string[]> => {
      const keys: string[] = [];
      for await (const key of artifacts.list(prefix)) keys.push(key);
      return keys.sort();
    };

    it('an object is returned as it was stored, with size and checksum', async () => {
      const key = newKey();
      const bytes = randomBytes(3 * MIB + 7);
      const storedFile = await artifacts.put(key, Readable.from([bytes.subarray(0, 5), bytes.subarray(5)]));
      assert.deepEqual(storedFile, { size: bytes.length, checksum: sha256(bytes) });
      assert.deepEqual(await artifacts.stat(key), { size: bytes.length });
      assert.equal(await readSize(key), bytes.length);
      assert.ok((await read(key))?.equals(bytes));
    });

    it('an empty object can be stored', async () => {
      const key = newKey();
      assert.deepEqual(await artifacts.put(key, Readable.from([])), { size: 0, checksum: sha256(Buffer.alloc(0)) });
      assert.deepEqual(await artifacts.stat(key), { size: 0 });
      assert.deepEqual(await read(key), Buffer.alloc(0));
    });

    it('a missing object is reported as undefined', async () => {
      const key = newKey();
      assert.equal(await artifacts.open(key), undefined);
      assert.equal(await artifacts.open(key, { first: 0, last: 1 }), undefined);
      assert.equal(await artifacts.read(key), undefined);
      assert.equal(await artifacts.stat(key), undefined);
    });

    it('ranges can be read, including the first and the last byte', async () => {
      const key = newKey();
      const bytes = randomBytes(MIB);
      await artifacts.put(key, Readable.from([bytes]));
      for (const [first, last] of [
        [0, 0],
        [0, 99],
        [500_000, 700_000],
        [MIB - 1, MIB - 1],
        [0, MIB - 1],
      ] as const)
        assert.ok((await read(key, { first, last }))?.equals(bytes.subarray(first, last + 1)), `${first}-${last}`);
      assert.equal(await readSize(key, { first: 5, last: 9 }), MIB);
    });

    it('an object can be replaced while it is open for reading, and the next read returns the new object', async () => {
      const key = newKey();
      await artifacts.put(key, Readable.from([randomBytes(2 * MIB)]));
      const openedArtifact = await artifacts.open(key);
      await artifacts.put(key, Readable.from([Buffer.from('second')]));
      assert.equal((await read(key))?.toString(), 'second');
      openedArtifact?.body.destroy();
    });

    it('when the source stream fails, no object is stored, and the previous object is kept', async () => {
      const key = newKey();
      const failingSource = async function* () {
        yield randomBytes(6 * MIB);
        throw new Error('the sender disconnected');
      };
      await assert.rejects(artifacts.put(key, failingSource()), /the sender disconnected/);
      assert.equal(await artifacts.stat(key), undefined);
      await artifacts.put(key, Readable.from([Buffer.from('first')]));
      await assert.rejects(artifacts.put(key, failingSource()), /the sender disconnected/);
      assert.equal((await read(key))?.toString(), 'first');
    });

    it('a put is rejected when its signal is aborted, and no object is stored', async () => {
      const key = newKey();
      const controller = new AbortController();
      const endlessSource = async function* () {
        for (;;) {
          yield randomBytes(MIB);
          await new Promise(resolve => setImmediate(resolve));
          controller.abort(new Error('aborted'));
        }
      };
      await assert.rejects(artifacts.put(key, endlessSource(), { signal: controller.signal }), /aborted/);
      assert.equal(await artifacts.stat(key), undefined);
    });

    it('a file is moved into the store, and moving a file that was already moved succeeds', async () => {
      const key = newKey();
      const bytes = randomBytes(7 * MIB);
      const path = join(folder, randomUUID());
      await writeFile(path, bytes);
      await artifacts.putFile(key, path);
      assert.ok((await read(key))?.equals(bytes));
      assert.ok(!(await readdir(folder)).includes(path.slice(folder.length + 1)));
      await artifacts.putFile(key, path);
      await assert.rejects(artifacts.putFile(newKey(), path), /is missing/);
    });

    it('the objects of a session are listed by its prefix, without objects of other sessions', async () => {
      const session = newSessionId();
      const keys = [
        downloadKey(APP, session, randomUUID()),
        recordingInitKey(APP, session, 0, 0),
        recordingSegmentKey(APP, session, 0, 1),
      ];
      for (const key of keys) await artifacts.put(key, Readable.from([Buffer.from(key)]));
      await artifacts.put(newKey(), Readable.from([Buffer.from('another session')]));
      assert.deepEqual(await listKeys(sessionPrefix(APP, session)), [...keys].sort());
      assert.deepEqual(await listKeys(sessionPrefix(APP, newSessionId())), []);
    });

    it('objects are removed, and keys that were already removed are ignored', async () => {
      const session = newSessionId();
      const keys = Array.from({ length: 5 }, () => downloadKey(APP, session, randomUUID()));
      for (const key of keys) await artifacts.put(key, Readable.from([Buffer.from('x')]));
      await artifacts.remove(keys.slice(0, 3));
      assert.deepEqual(await listKeys(sessionPrefix(APP, session)), keys.slice(3).sort());
      await artifacts.remove(keys);
      await artifacts.remove(keys);
      await artifacts.remove([]);
      assert.deepEqual(await listKeys(sessionPrefix(APP, session)), []);
    });

    it('objects are stored while concurrent calls remove other objects and empty folders', async () => {
      const session = newSessionId();
      const storeAndRemove = async (): Promise<void> => {
        const key = downloadKey(APP, session, randomUUID());
        await artifacts.put(key, Readable.from([Buffer.from(key)]));
        assert.equal((await read(key))?.toString(), key);
        await artifacts.remove([key]);
      };
      for (let i = 0; i < 10; i++) await Promise.all(Array.from({ length: 8 }, storeAndRemove));
      assert.deepEqual(await listKeys(sessionPrefix(APP, session)), []);
    });

    it('256 MiB are stored and read with little memory', async () => {
      const key = newKey();
      const megabyte = randomBytes(MIB);
      const peak = { bytes: 0 };
      // Collects garbage before each measurement, so that only memory in use is counted.
      let bytesSince = 0;
      const note = (bytes: number): void => {
        bytesSince += bytes;
        if (bytesSince < COLLECT_INTERVAL_BYTES) return;
        bytesSince = 0;
        collectGarbage();
        const { arrayBuffers, heapUsed } = process.memoryUsage();
        peak.bytes = Math.max(peak.bytes, arrayBuffers + heapUsed);
      };
      note(COLLECT_INTERVAL_BYTES);
      const bytesBefore = peak.bytes;
      const body = async function* () {
        for (let i = 0; i < 256; i++) {
          note(MIB);
          yield Buffer.from(megabyte);
        }
      };
      const storedFile = await artifacts.put(key, body());
      assert.equal(storedFile.size, 256 * MIB);
      const hash = createHash('sha256');
      const openedArtifact = await artifacts.open(key);
      for await (const chunk of openedArtifact?.body ?? []) {
        note(chunk.length);
        hash.update(chunk);
      }
      assert.equal(hash.digest('hex'), storedFile.checksum);
      assert.ok(peak.bytes - bytesBefore < 128 * MIB, `${(peak.bytes - bytesBefore) / MIB} MiB`);
      await artifacts.remove([key]);
    });
  });
}
