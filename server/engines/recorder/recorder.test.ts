import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { HandClock } from '../../../tests/harness/hand-clock.ts';
import { silentLog } from '../../kit/log.ts';
import { Recorder, type RecorderOptions } from './recorder.ts';

const folder = await mkdtemp(join(tmpdir(), 'berth-recorder-'));
after(() => rm(folder, { recursive: true }));

test('does not wait for pages that had no description when the server was killed', async () => {
  await mkdir(join(folder, 'killed/0'), { recursive: true });
  await mkdir(join(folder, 'killed/1'));
  await writeFile(join(folder, 'killed/1/page.json'), '');
  await mkdir(join(folder, 'unreadable/0/page.json'), { recursive: true });
  const sink = {} as unknown as RecorderOptions['sink'];
  const workers = {} as unknown as RecorderOptions['workers'];
  const confine = {} as unknown as RecorderOptions['confine'];
  const recorder = await Recorder.open({ folder, sink, workers, confine, clock: new HandClock(), log: silentLog });
  for (const session of await recorder.leftovers()) await recorder.finish(session);
  assert.equal(await recorder.settled('killed'), true);
  assert.deepEqual(await readdir(folder), ['unreadable'], 'what cannot be read now is kept');
  await recorder.close();
});
