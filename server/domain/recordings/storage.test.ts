import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Artifacts } from '../../engines/artifacts/artifacts.ts';
import type { ArtifactKey } from '../../engines/artifacts/keys.ts';
import type { RecordingRows, SegmentRow } from '../../engines/store/rows/recordings.ts';
import { systemClock } from '../../kit/clock.ts';
import type { ApplicationId } from '../../kit/ids.ts';
import { type RecordingKeys, RecordingStorage } from './storage.ts';

test('stores the init segment of a run if an earlier attempt failed after the row of the run was written', async () => {
  const storedKeys: string[] = [];
  const statKeys: string[] = [];
  const segments: SegmentRow[] = [];
  const runs = new Map<string, number>();
  let isDown = true;
  const artifacts = {
    put: async (key: ArtifactKey) => {
      if (isDown) throw new Error('the store is down');
      storedKeys.push(key);
    },
    stat: async (key: ArtifactKey) => {
      statKeys.push(key);
      return storedKeys.includes(key) ? { size: 1 } : undefined;
    },
  };
  const rows = {
    runOf: async (_: string, __: number, checksum: string) => runs.get(checksum),
    addRun: async (_: string, __: number, checksum: string) => {
      runs.set(checksum, runs.size);
      return runs.size - 1;
    },
    addSegment: async (row: SegmentRow) => void segments.push(row),
  };
  const keys = {
    init: (_: string, __: string, page: number, run: number) => `${page}/init-${run}`,
    segment: (_: string, __: string, page: number, sequence: number) => `${page}/${sequence}`,
  };
  const storage = new RecordingStorage({
    rows: rows as unknown as RecordingRows,
    retention: { applicationIfKept: async () => 'app' as ApplicationId },
    artifacts: artifacts as unknown as Artifacts,
    keys: keys as unknown as RecordingKeys,
    clock: systemClock,
  });
  const segment = (sequence: number) => ({
    ...{ sequence, startMs: 0, durationsMs: [6_000], sizes: [3], size: { width: 2, height: 2 }, payloadAt: 0 },
    ...{ init: Buffer.from('init'), bytes: Buffer.from('abc') },
  });
  await assert.rejects(storage.keep({ session: 's', page: 0 }, segment(1)), /the store is down/);
  isDown = false;
  await storage.keep({ session: 's', page: 0 }, segment(1));
  await storage.keep({ session: 's', page: 0 }, segment(2));
  assert.deepEqual(storedKeys, ['0/init-0', '0/1', '0/2']);
  assert.equal(statKeys.length, 2, 'the store is asked once for each attempt, and not for the second segment');
  assert.deepEqual(
    segments.map(({ run }) => run),
    [0, 0],
  );
});
