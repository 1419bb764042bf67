import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { getCompileCacheDir } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { cacheCompiledCode } from './compiled-code.ts';
import { type Job, WorkerPool, type WorkFailed } from './worker-pool.ts';

const folder = mkdtempSync(join(tmpdir(), 'berth-workers-'));
after(() => rmSync(folder, { recursive: true, force: true }));

function createJob<Input, Output>(
  name: string,
  body: string,
  more: Partial<Job<Input, Output>> = {},
): Job<Input, Output> {
  const path = join(folder, `${name}.ts`);
  writeFileSync(path, `export const work = async (input: any): Promise<unknown> => { ${body} };\n`);
  return { name, module: pathToFileURL(path).href, limitMs: 60_000, ...more };
}

const doubleJob = createJob<number, number>('double', 'return 2 * input;');
const owner = 'a session';
const hasWhy = (expected: string) => (error: WorkFailed) => error.name === 'WorkFailed' && error.why === expected;

test('returns results, transfers buffers, and starts no thread before the first job', async () => {
  const pool = new WorkerPool();
  assert.equal(pool.threadCount, 0);
  assert.equal(await pool.run(doubleJob, 21, { owner }), 42);
  const reverseJob = createJob<Uint8Array, { bytes: Uint8Array }>('reverse', 'return { bytes: input.reverse() };');
  const bytes = Uint8Array.of(1, 2, 3);
  const { bytes: back } = await pool.run(reverseJob, bytes, { owner, movedBuffers: [bytes.buffer] });
  assert.deepEqual([...back], [3, 2, 1]);
  assert.equal(bytes.length, 0);
  await pool.close();
  assert.equal(pool.threadCount, 0);
});

test('the only environment variable of a thread is the one for the cache of compiled code, and the thread uses the cache of its process', async () => {
  cacheCompiledCode(join(folder, 'compiled'));
  const pool = new WorkerPool();
  const environmentJob = createJob<number, unknown>(
    'environment',
    "return [process.getBuiltinModule('node:module').getCompileCacheDir(), Object.keys(process.env)];",
  );
  assert.deepEqual(await pool.run(environmentJob, 0, { owner }), [getCompileCacheDir(), ['NODE_COMPILE_CACHE']]);
  await pool.close();
});

test('a job that throws fails with the message of its error, and the thread runs the next job', async () => {
  const pool = new WorkerPool({ threads: 1 });
  const brokenJob = createJob('broken', "throw new Error('no such leaf');");
  await assert.rejects(pool.run(brokenJob, 0, { owner }), { message: '"broken" failed: no such leaf' });
  assert.equal(await pool.run(doubleJob, 1, { owner }), 2);
  await pool.close();
});

test('a job whose input cannot be cloned fails, even after it has waited in the queue, and the thread runs the next job', async () => {
  const pool = new WorkerPool({ threads: 1 });
  const echoJob = createJob('returning', 'return input;');
  await assert.rejects(
    pool.run(echoJob, () => {}, { owner }),
    hasWhy('failed'),
  );
  const firstRun = pool.run(doubleJob, 1, { owner });
  const secondRun = assert.rejects(
    pool.run(echoJob, () => {}, { owner }),
    hasWhy('failed'),
  );
  assert.equal(await firstRun, 2);
  await secondRun;
  assert.equal(await pool.run(doubleJob, 3, { owner }), 6);
  await pool.close();
});

test('stops a job that does not end, names it in the error, and runs the queued jobs', async () => {
  const pool = new WorkerPool({ threads: 1 });
  const endlessJob = createJob('endless', 'for (;;);', { limitMs: 300 });
  const endlessRun = assert.rejects(pool.run(endlessJob, 0, { owner }), {
    message: '"endless" took longer than 300 ms and was stopped',
  });
  const queuedRun = pool.run(doubleJob, 4, { owner: 'another session' });
  await endlessRun;
  assert.equal(await queuedRun, 8);
  await pool.close();
});

test('a job that only waits may take longer than its limit of processor time, but is stopped at the limit of elapsed time', async () => {
  const pool = new WorkerPool({ threads: 1 });
  const waitJob = createJob<number, number>(
    'waits',
    'await new Promise(done => setTimeout(done, input)); return input;',
    {
      limitMs: 100,
    },
  );
  await pool.run(doubleJob, 1, { owner });
  assert.equal(await pool.run(waitJob, 300, { owner }), 300);
  await assert.rejects(pool.run(waitJob, 600_000, { owner }), hasWhy('too_long'));
  await pool.close();
});

test('a job that uses too much memory or exits its thread does not affect other jobs', async () => {
  const pool = new WorkerPool({ threads: 1, heapMb: 32 });
  const greedyJob = createJob('greedy', 'const all: number[][] = []; for (;;) all.push(new Array(1e6).fill(1));');
  await assert.rejects(pool.run(greedyJob, 0, { owner }), hasWhy('died'));
  const exitJob = createJob('leaving', 'process.exit(1);');
  await assert.rejects(pool.run(exitJob, 0, { owner }), hasWhy('died'));
  const throwingJob = createJob(
    'thrower',
    "setImmediate(() => { throw new Error('outside'); }); await new Promise(() => {});",
  );
  await assert.rejects(pool.run(throwingJob, 0, { owner }), hasWhy('died'));
  assert.equal(await pool.run(doubleJob, 3, { owner }), 6);
  await pool.close();
});

test('shares threads fairly between sessions, and reserves a thread for short jobs', async () => {
  const pool = new WorkerPool({ threads: 2 });
  const order: string[] = [];
  const ask = (name: string, job: Job<number, number>, who: string): Promise<unknown> =>
    pool.run(job, 0, { owner: who }).then(() => order.push(name));
  const pauseJob = createJob<number, number>('pause', 'await new Promise(done => setTimeout(done, 20)); return 0;');
  const longJob = createJob<number, number>('long', 'await new Promise(done => setTimeout(done, 1500)); return 0;', {
    isLong: true,
  });
  const longRuns = [ask('long', longJob, 'c'), ask('long', longJob, 'd')];
  const manyRuns = Array.from({ length: 8 }, () => ask('many', pauseJob, 'a'));
  const one = ask('one', pauseJob, 'b');
  await Promise.all([...longRuns, ...manyRuns, one]);
  assert.ok(order.indexOf('one') < 4, order.join());
  assert.ok(order.indexOf('long') >= 9 || order.lastIndexOf('long') === order.length - 1, order.join());
  assert.ok(order.filter(name => name === 'many').length === 8);
  await pool.close();
});

test('runs only one solo job of a session at a time, so that jobs of other sessions do not wait', async () => {
  const pool = new WorkerPool({ threads: 2 });
  const endlessJob = createJob<number, number>('solo', 'for (;;);', { limitMs: 1_000, isSolo: true });
  const [first, second] = [pool.run(endlessJob, 0, { owner: 'a' }), pool.run(endlessJob, 0, { owner: 'a' })].map(
    async job => {
      await assert.rejects(job, hasWhy('too_long'));
      return 'ended';
    },
  );
  const shortJob = createJob<number, number>('short', 'return 2 * input;', { isSolo: true });
  assert.equal(await Promise.race([pool.run(shortJob, 1, { owner: 'b' }), first]), 2);
  assert.equal(await Promise.race([pool.run(doubleJob, 2, { owner: 'a' }), first]), 4);
  await Promise.all([first, second]);
  assert.equal(await pool.run(shortJob, 3, { owner: 'a' }), 6);
  await pool.close();
});

test('refuses jobs above the limit, and all jobs after close', async () => {
  const pool = new WorkerPool({ threads: 1, waitingPerOwnerMax: 1 });
  const pauseJob = createJob('pause', 'await new Promise(done => setTimeout(done, 200)); return 0;');
  const firstRun = pool.run(pauseJob, 0, { owner });
  const secondRun = assert.rejects(pool.run(pauseJob, 0, { owner }), hasWhy('closed'));
  await assert.rejects(pool.run(pauseJob, 0, { owner }), hasWhy('too_many'));
  const firstRejection = assert.rejects(firstRun, hasWhy('closed'));
  await pool.close();
  await Promise.all([secondRun, firstRejection]);
  await assert.rejects(pool.run(pauseJob, 0, { owner }), hasWhy('closed'));
});

test('idle threads end automatically', async () => {
  const pool = new WorkerPool({ idleMs: 10 });
  await pool.run(doubleJob, 1, { owner });
  for (let round = 0; pool.threadCount > 0 && round < 500; round++)
    await new Promise(resolve => setTimeout(resolve, 10));
  assert.equal(pool.threadCount, 0);
  await pool.close();
});
