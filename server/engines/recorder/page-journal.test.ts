import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { ManualClock } from '../../../tests/harness/hand-clock.ts';
import type { CapturedFrame } from './capture.ts';
import { PageFolder } from './page-folder.ts';
import { PageJournal } from './page-journal.ts';

const root = await mkdtemp(join(tmpdir(), 'berth-journal-'));
after(() => rm(root, { recursive: true }));

let frameCount = 0;

/** A frame that differs from all other frames: a JPEG of 16 x 16 pixels without image data. */
function frameAt(browserMs: number): CapturedFrame {
  const header = Buffer.from('ffd8ffc0000b080010001001011100ffda0008010100003f00', 'hex');
  const jpeg = Buffer.concat([header, Buffer.from([++frameCount]), Buffer.from('ffd9', 'hex')]);
  const metadata = { offsetTop: 0, pageScaleFactor: 1, deviceWidth: 0, deviceHeight: 0 };
  return {
    ...{ jpeg, browserMs, at: new Date(browserMs), framesAhead: 1 },
    metadata: { ...metadata, scrollOffsetX: 0, scrollOffsetY: 0 },
  };
}

async function begin(name: string, clock: ManualClock): Promise<PageJournal> {
  const first = frameAt(0);
  const listener = { segmentComplete: () => {}, lost: () => {} };
  const folder = new PageFolder(join(root, name));
  const journal = await PageJournal.begin(folder, 'page', { first, leadMs: 0 }, clock, listener);
  await journal.take(first);
  return journal;
}

test('writes only a few segments for a frame whose time is far in the future, even after a restart', async () => {
  const clock = new ManualClock();
  const journal = await begin('ahead', clock);
  await clock.advance(100);
  await journal.take(frameAt(6_000_000));
  assert.equal(journal.lastFrameMs, 10_100);
  await journal.leave();
  const folder = new PageFolder(join(root, 'ahead'));
  const description = (await folder.readDescription()) ?? assert.fail();
  const resumedJournal = await PageJournal.resume(folder, description, clock, {
    segmentComplete: () => {},
    lost: () => {},
  });
  await resumedJournal.take(frameAt(12_000_000));
  assert.ok((await readdir(folder.path)).length <= 4, 'there are at most the description and three segments');
  await resumedJournal.end();
});

test('keeps every frame after a first frame that arrived very late, and corrects the times after a few frames', async () => {
  const clock = new ManualClock();
  await clock.advance(30_000);
  const journal = await begin('late', clock);
  const times: number[] = [];
  for (const _ of Array(5)) {
    await clock.advance(1_000);
    await journal.take(frameAt(clock.monotonicMs()));
    times.push(journal.lastFrameMs);
  }
  assert.deepEqual(times, [11_000, 22_000, 33_000, 34_000, 35_000]);
  await journal.end();
});
