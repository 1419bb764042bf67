import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../../../tests/harness/hand-clock.ts';
import { silentLog } from '../../kit/log.ts';
import type { Task } from '../../kit/task.ts';
import { Tasks } from './tasks.ts';

const SECOND_MS = 1_000;

const never = (): boolean => false;

function startTask(task: Partial<Task>, { did = { done: 0 }, isUnused = never, isQuiet = never } = {}) {
  const clock = new ManualClock();
  const tasks = new Tasks(clock, silentLog, { isUnused, isQuiet });
  let runs = 0;
  const run = async () => {
    runs++;
    return did;
  };
  tasks.start({ name: 'task', everyMs: SECOND_MS, run, ...task });
  return {
    ...{ clock, tasks, did },
    /** Advances the clock by this many seconds, and returns how often the task ran in this time. */
    runsIn: async (seconds: number): Promise<number> => {
      const runsBefore = runs;
      await clock.advance(seconds * SECOND_MS, SECOND_MS);
      return runs - runsBefore;
    },
  };
}

/** A task that has begun its first run, which lasts until `end` is called. Later runs take a second. */
async function startBlockedTask() {
  const clock = new ManualClock();
  const tasks = new Tasks(clock, silentLog, { isUnused: never, isQuiet: never });
  const firstRun = Promise.withResolvers<void>();
  const counts = { runs: 0, ended: 0, atOnce: 0 };
  const run = async () => {
    counts.runs++;
    counts.atOnce = Math.max(counts.atOnce, counts.runs - counts.ended);
    await (counts.runs === 1 ? firstRun.promise : clock.sleep(SECOND_MS));
    counts.ended++;
    return { done: 0 };
  };
  tasks.start({ name: 'task', everyMs: 3_600 * SECOND_MS, run });
  await clock.advance(SECOND_MS);
  return { clock, tasks, counts, end: firstRun.resolve };
}

test('runs a task less often after a minute without work, and at the normal rate when there is work again', async () => {
  const { tasks, did, runsIn } = startTask({ restMs: 10 * SECOND_MS });
  assert.equal(await runsIn(59), 59);
  assert.equal(await runsIn(41), 5);
  did.done = 1;
  await runsIn(10);
  assert.equal(await runsIn(30), 30);
  did.done = 0;
  await runsIn(60);
  assert.equal(await runsIn(30), 3);
  await tasks.close();
});

test('runs a resting task immediately when the task is triggered, and at the normal rate afterwards', async () => {
  const { tasks, runsIn } = startTask({ restMs: 10 * SECOND_MS });
  await runsIn(105);
  tasks.trigger('task');
  assert.equal(await runsIn(1), 1, 'the run that is due in the same second is the one that was triggered');
  assert.equal(await runsIn(20), 20);
  await tasks.close();
});

test('runs a task at its rest interval while isAtRest returns true, and runs a task without a rest interval at the normal rate', async () => {
  let isAtRest = true;
  const taskWithRest = startTask({ restMs: 10 * SECOND_MS, isAtRest: () => isAtRest });
  assert.equal(await taskWithRest.runsIn(30), 4, 'the first run is at once');
  isAtRest = false;
  assert.equal(await taskWithRest.runsIn(30), 30);
  const taskWithoutRest = startTask({});
  assert.equal(await taskWithoutRest.runsIn(120), 120);
  for (const { tasks } of [taskWithRest, taskWithoutRest]) await tasks.close();
});

for (const [interval, condition, when] of [
  ['unusedMs', 'isUnused', 'the process is unused'],
  ['quietMs', 'isQuiet', 'nothing is received, even if the process holds sessions'],
] as const)
  test(`runs a task with ${interval} less often while the task has nothing to do and ${when}`, async () => {
    let isConditionMet = true;
    const { tasks, did, runsIn } = startTask({ [interval]: 10 * SECOND_MS }, { [condition]: () => isConditionMet });
    assert.equal(await runsIn(60), 60, 'it may still find something');
    assert.equal(await runsIn(30), 3);
    did.done = 1;
    await runsIn(10);
    assert.equal(await runsIn(30), 30, 'it has found something');
    did.done = 0;
    await runsIn(60);
    assert.equal(await runsIn(30), 3);
    isConditionMet = false;
    assert.equal(await runsIn(30), 30);
    await tasks.close();
  });

test('starts the first runs of several tasks in separate turns of the event loop, and later runs of resting tasks in different seconds', async () => {
  const clock = new ManualClock();
  const tasks = new Tasks(clock, silentLog, { isUnused: () => true, isQuiet: () => true });
  const secondsOfRuns: number[] = [];
  const run = async () => {
    secondsOfRuns.push(clock.monotonicMs() / SECOND_MS);
    return { done: 0 };
  };
  for (const name of ['one', 'two', 'three'])
    tasks.start({ name, everyMs: 5 * SECOND_MS, restMs: 20 * SECOND_MS, isAtRest: () => true, run });
  await clock.advance(70 * SECOND_MS, SECOND_MS); // Each step is one turn.
  assert.deepEqual(secondsOfRuns, [1, 2, 3, 20, 21, 22, 40, 41, 42, 60, 61, 62]);
  await tasks.close();
});

test('a task that is triggered several times while it runs is run once more, and never twice at the same time', async () => {
  const { clock, tasks, counts, end } = await startBlockedTask();
  for (let triggers = 0; triggers < 3; triggers++) tasks.trigger('task');
  await clock.advance(SECOND_MS);
  assert.deepEqual(counts, { runs: 1, ended: 0, atOnce: 1 });
  end();
  await clock.advance(10 * SECOND_MS, SECOND_MS);
  assert.deepEqual(counts, { runs: 2, ended: 2, atOnce: 1 });
  tasks.trigger('task');
  await clock.advance(10 * SECOND_MS, SECOND_MS);
  assert.deepEqual(counts, { runs: 3, ended: 3, atOnce: 1 });
  await tasks.close();
});

test('close waits for the current run, and a trigger that was made before close does not start another run', async () => {
  const { clock, tasks, counts, end } = await startBlockedTask();
  tasks.trigger('task');
  await clock.advance(SECOND_MS);
  const closePromise = tasks.close();
  end();
  await closePromise;
  assert.deepEqual(counts, { runs: 1, ended: 1, atOnce: 1 });
});

test('refuses a task with an interval of less than a second', async () => {
  const tasks = new Tasks(new ManualClock(), silentLog, { isUnused: never, isQuiet: never });
  const task = { name: 'fast', everyMs: 999, run: async () => ({}) };
  assert.throws(() => tasks.start(task), /the interval of the task fast is shorter than 1000 ms/);
  await tasks.close();
});
