import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { BLACKOUT } from '../../server/engines/recorder/blackout-job.ts';
import { blackout } from '../../server/engines/recorder/jpeg-blackout.ts';
import { WorkerPool, type WorkFailed } from '../../server/kit/worker-pool.ts';

const RECTS = [{ x: 10, y: 10, width: 300, height: 40 }];

function makeJpeg(size: string): Buffer {
  const options = ['-v', 'error', '-f', 'lavfi', '-i', `testsrc2=size=${size},noise=alls=20`, '-frames:v', '1'];
  const { stdout, stderr } = spawnSync('ffmpeg', [...options, '-pix_fmt', 'yuvj420p', '-f', 'mjpeg', 'pipe:1'], {
    maxBuffer: 64 * 1024 ** 2,
  });
  assert.equal(stderr.toString(), '');
  return stdout;
}

/** Runs the work. Returns its result and the CPU time that this thread used for it. */
async function measureCpu<T>(work: () => Promise<T> | T): Promise<{ result: T; ms: number }> {
  const usageBefore = process.threadCpuUsage();
  const result = await work();
  const { user, system } = process.threadCpuUsage(usageBefore);
  return { result, ms: (user + system) / 1000 };
}

test('the blackout job masks a 3840x2160 image without blocking the main thread', async () => {
  const jpeg = makeJpeg('3840x2160');
  const pool = new WorkerPool();
  const blackOutInThread = () => pool.run(BLACKOUT, { jpeg, rects: RECTS }, { owner: 'a session' });
  await blackOutInThread(); // starts the thread, because the measured time must not include the start
  const poolRun = await measureCpu(blackOutInThread);
  const mainRun = await measureCpu(() => blackout(jpeg, RECTS));
  await pool.close();
  assert.ok(mainRun.result);
  assert.ok(poolRun.result.jpeg && mainRun.result.equals(poolRun.result.jpeg));
  assert.ok(poolRun.ms < mainRun.ms / 4, `${poolRun.ms} ms of ${mainRun.ms} ms`);
});

test('the blackout job does not mask an image that declares an excessive size, and masks the next image', async () => {
  const jpeg = makeJpeg('64x48');
  const oversizedJpeg = Buffer.from(jpeg);
  const frameHeaderAt = oversizedJpeg.indexOf(Buffer.from([0xff, 0xc0]));
  oversizedJpeg.writeUInt32BE(0xffff_ffff, frameHeaderAt + 5); // 65535 x 65535
  const pool = new WorkerPool({ threads: 1 });
  const jobOptions = { owner: 'a session' };
  const shortJob = { ...BLACKOUT, limitMs: 2_000 };
  const outcome = await pool
    .run(shortJob, { jpeg: oversizedJpeg, rects: [] }, jobOptions)
    .catch((error: WorkFailed) => error.why);
  assert.ok(outcome === 'too_long' || (typeof outcome === 'object' && !outcome.jpeg), JSON.stringify(outcome));
  assert.ok((await pool.run(BLACKOUT, { jpeg, rects: RECTS }, jobOptions)).jpeg);
  await pool.close();
});
