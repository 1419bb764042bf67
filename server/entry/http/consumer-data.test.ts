import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import { eventually } from '../../../tests/harness/until.ts';
import type { ExportedFile } from '../../domain/consumers/export.ts';
import { zipOf } from './consumer-data.ts';

/** More bytes than a stream buffers. They are random and compress little, so the archive is blocked after each file. */
const FILE_BYTES = 200_000;
const WAIT_COUNT = 4;

const file = (name: string): ExportedFile => ({ name, text: randomBytes(FILE_BYTES).toString('base64') });

test('an export adds no listeners to the archive stream while it waits for a slow reader', async () => {
  const listenerCounts: number[] = [];
  const readAll = (): void => {
    while (archive.read() !== null);
  };
  async function* files(): AsyncGenerator<ExportedFile> {
    yield file('first');
    for (let index = 0; index < WAIT_COUNT; index += 1) {
      await eventually('the archive to be blocked', () => archive.writableNeedDrain, Boolean, undefined, 1);
      listenerCounts.push(archive.listenerCount('close'));
      setImmediate(readAll); // Runs after the export has begun to wait for the blocked archive.
      yield file(String(index));
    }
  }
  const archive = zipOf(files());
  await eventually('all waits', () => listenerCounts.length === WAIT_COUNT, Boolean, undefined, 1);
  await buffer(archive);
  assert.deepEqual(listenerCounts, new Array<number>(WAIT_COUNT).fill(listenerCounts[0] ?? 0));
});
