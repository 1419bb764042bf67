// Tests, with real processes, how a process is restarted if the kernel at first refuses to start it.
import assert from 'node:assert/strict';
import cluster from 'node:cluster';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { ManualClock } from '../../tests/harness/hand-clock.ts';
import { eventually, withTimeLimit } from '../../tests/harness/until.ts';
import type { Clock } from '../kit/clock.ts';
import { type Log, silentLog } from '../kit/log.ts';
import { SupervisedProcess } from './supervised.ts';

const ADDRESSES = { url: 'http://127.0.0.1:1', publicUrl: 'http://127.0.0.1:1' };

const folder = mkdtempSync(join(tmpdir(), 'berth-supervised-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const program = join(folder, 'program.mjs');
writeFileSync(
  program,
  `process.on('SIGTERM', () => process.exit(0));
   process.send({ berthReady: ${JSON.stringify(ADDRESSES)} });`,
);

/** Working directories in which no process can be started: the worker emits an error, or `cluster.fork` throws. */
const UNUSABLE_FOLDERS = { error: join(folder, 'missing'), exception: program };
const setWorkingDirectory = (cwd: string): void =>
  cluster.setupPrimary({ exec: program, args: [], execArgv: [], cwd, serialization: 'json' });

/**
 * A supervised process. `events` are the errors in its log. `endedNumbers` contains its number once for each call of
 * `onEnded`.
 */
function supervise(clock: Clock) {
  const events: string[] = [];
  const endedNumbers: number[] = [];
  const log: Log = { ...silentLog, error: event => void events.push(event) };
  const onEnded = (number: number): void => void endedNumbers.push(number);
  const supervised = new SupervisedProcess({ position: { number: 1, processCount: 1 }, env: {}, clock, log, onEnded });
  return { supervised, events, ended: endedNumbers };
}

/** Kills the process that `cluster` started last. */
function killWorker(): void {
  const worker = Object.values(cluster.workers ?? {}).at(-1);
  assert.ok(worker?.process.kill('SIGKILL'));
}

for (const [how, unusableFolder] of Object.entries(UNUSABLE_FOLDERS))
  test(`a process is restarted later if the kernel at first refuses to start it again (reported as an ${how}), and stops on request`, async () => {
    const waits: number[] = [];
    const sleep = async (ms: number): Promise<void> => {
      waits.push(ms);
      if (waits.length === 4) setWorkingDirectory(folder);
    };
    setWorkingDirectory(folder);
    const process = supervise(Object.assign(new ManualClock(), { sleep }));
    assert.deepEqual(await process.supervised.start(), ADDRESSES);
    setWorkingDirectory(unusableFolder);
    const nextReadyMessage = new Promise(resolve => cluster.once('message', resolve));
    killWorker();
    await withTimeLimit('the process to serve again', nextReadyMessage);
    assert.deepEqual(waits, [0, 250, 500, 1000]);
    assert.deepEqual(process.events, ['processes.ended', ...new Array<string>(3).fill('processes.not_started')]);
    assert.deepEqual(process.ended, [1]);
    process.supervised.stop('SIGTERM');
    assert.equal(await withTimeLimit('the process to end', process.supervised.whenEnded), 0);
  });

test('stop ends a process that is waiting for its next start after the kernel refused a start', async () => {
  const clock = new ManualClock();
  setWorkingDirectory(folder);
  const { supervised, events } = supervise(clock);
  await supervised.start();
  setWorkingDirectory(UNUSABLE_FOLDERS.error);
  killWorker();
  await eventually('the wait before the restart', () => clock.sleeperCount === 1);
  await clock.advance(1);
  await eventually('the refused start', () => events.includes('processes.not_started'));
  supervised.stop('SIGTERM');
  assert.equal(await withTimeLimit('the process to end', supervised.whenEnded), 0);
});

for (const [how, unusableFolder] of Object.entries(UNUSABLE_FOLDERS))
  test(`a process whose first start the kernel refuses (reported as an ${how}) ends with exit code 1`, async () => {
    setWorkingDirectory(unusableFolder);
    const { supervised, events } = supervise(new ManualClock());
    assert.equal(await withTimeLimit('the start to fail', supervised.start()), undefined);
    assert.equal(await supervised.whenEnded, 1);
    assert.deepEqual(events, ['processes.not_started']);
  });
