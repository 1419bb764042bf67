import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TestClock } from '../../../tests/harness/test-clock.ts';
import type { DownloadRow } from '../../engines/store/rows/downloads.ts';
import type { SessionId } from '../../kit/ids.ts';
import { AwaitedDownloads, type DownloadsOutcome } from './awaited-downloads.ts';

const session = '0192f7c2-6a64-7a0e-9a53-0f1c3a2f7d10' as SessionId;

function downloadRow(guid: string, state: DownloadRow['state']): DownloadRow {
  const createdAt = new Date('2026-11-26T12:00:00Z');
  return { id: guid, guid, sessionId: session, filename: `${guid}.txt`, state, createdAt } as unknown as DownloadRow;
}

/** Waits up to a second for downloads. They begin before the first check, and end after `completeAfterMs`. */
async function awaitDownloads({ completeAfterMs }: { completeAfterMs: number }): Promise<DownloadsOutcome> {
  const clock = new TestClock();
  let rows: DownloadRow[] = [];
  const parts = { rows: { ofSession: async () => rows }, clock, assertRunning: async () => {} };
  const downloads = await AwaitedDownloads.from(parts, session);
  const startMs = clock.monotonicMs();
  rows = [downloadRow('one', 'complete'), downloadRow('two', 'running')];
  const outcomePromise = downloads.next({ session, untilMs: startMs + 1_000, signal: new AbortController().signal });
  const advanceClock = async (): Promise<void> => {
    for (let ms = 0; ms < 3_000; ms += 100) {
      await new Promise(done => setImmediate(done));
      if (ms >= completeAfterMs) rows = rows.map(({ guid }) => downloadRow(guid, 'complete'));
      clock.advance(100);
    }
  };
  const [outcome] = await Promise.all([outcomePromise, advanceClock()]);
  return outcome;
}

test('returns the files when all downloads are complete, even shortly before the time limit', async () => {
  for (const completeAfterMs of [200, 900]) {
    const outcome = await awaitDownloads({ completeAfterMs });
    assert.ok('files' in outcome, JSON.stringify(outcome));
    assert.equal(outcome.files.length, 2);
  }
});

test('returns the files if the last download began shortly before the time limit', async () => {
  const clock = new TestClock();
  const untilMs = clock.monotonicMs() + 100;
  let rows: DownloadRow[] = [];
  const parts = { rows: { ofSession: async () => rows }, clock, assertRunning: async () => {} };
  const downloads = await AwaitedDownloads.from(parts, session);
  rows = [downloadRow('one', 'complete')];
  const outcomePromise = downloads.next({ session, untilMs, signal: new AbortController().signal });
  await new Promise(done => setImmediate(done));
  clock.advance(100);
  const outcome = await outcomePromise;
  assert.ok('files' in outcome, JSON.stringify(outcome));
});

test('fails with timeout at the time limit, and names the downloads that are still running', async () => {
  const outcome = await awaitDownloads({ completeAfterMs: 10_000 });
  assert.ok('failed' in outcome);
  assert.deepEqual(outcome.failed, {
    code: 'timeout',
    message: 'Only 1 of 2 downloads were complete within the time limit of the call. Still running: "two.txt".',
  });
});
