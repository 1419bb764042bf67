// Runs background tasks periodically. A task takes no arguments and compares the actual state with the desired state,
// so it can be repeated or killed at any time. Calling `trigger` only makes a task run earlier.
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import type { Log } from '../../kit/log.ts';
import { loopWatch } from '../../kit/loop-watch.ts';
import type { Closeable } from '../../kit/scope.ts';
import type { Task } from '../../kit/task.ts';
import { runOutsideSpans } from '../../kit/trace.ts';

/** A task that has found nothing to do for this long is at rest. */
const REST_DELAY_MS = 60_000;
/** Tasks run at multiples of this interval, so that a process with little to do wakes once for all due tasks. */
const BEAT_INTERVAL_MS = 1_000;

export interface TasksOptions {
  /** Returns true if the process has no session and serves no client. */
  readonly isUnused: () => boolean;
  /** Returns true if neither clients nor browsers have sent anything for a while. */
  readonly isQuiet: () => boolean;
}

export class Tasks implements Closeable {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #options: TasksOptions;
  readonly #closeController = new AbortController();
  readonly #loops: Promise<void>[] = [];
  /** Fulfilled when the task that is started next may begin its first run. */
  #nextStart: Promise<void> = Promise.resolve();
  readonly #tasks = new Map<string, Task>();
  /** The current run of each task that is running. */
  readonly #currentRuns = new Map<Task, Promise<void>>();
  /** The next run of each task, until it begins. All callers that request a run before then share this run. */
  readonly #nextRuns = new Map<Task, Promise<void>>();
  /** When the last run of each task ended or, if it is still in progress, when it began. */
  readonly #lastRunMs = new Map<Task, number>();
  /** When each task last did something or was triggered. */
  readonly #lastActiveMs = new Map<Task, number>();

  constructor(clock: Clock, log: Log, options: TasksOptions) {
    this.#clock = clock;
    this.#log = log;
    this.#options = options;
  }

  start(task: Task): void {
    if (this.#tasks.has(task.name)) throw new Error(`two tasks are called ${task.name}`);
    if (task.everyMs < BEAT_INTERVAL_MS)
      throw new Error(`the interval of the task ${task.name} is shorter than ${BEAT_INTERVAL_MS} ms`);
    this.#loops.push(this.#loop(task, this.#tasks.size, this.#nextStart));
    // The first runs begin in separate turns of the event loop, because together they would be a long turn.
    this.#nextStart = this.#nextStart.then(() => nextTurn());
    this.#tasks.set(task.name, task);
  }

  /**
   * Runs the task with this name once more, `ms` milliseconds from now. A task that has not been started yet runs when
   * it is started.
   */
  trigger(name: string, ms = 0): void {
    const run = async (): Promise<void> => {
      const task = this.#tasks.get(name);
      if (!task) return;
      this.#noteActivity(task);
      await this.#runOnce(task);
    };
    void this.#clock.sleep(ms, this.#closeController.signal).then(run, () => {}); // `sleep` rejects when the tasks are closing.
  }

  async close(): Promise<void> {
    this.#closeController.abort(new Error('the tasks are closing'));
    await Promise.all(this.#loops);
    await Promise.all(this.#currentRuns.values());
  }

  async #loop(task: Task, taskIndex: number, start: Promise<void>): Promise<void> {
    const { signal } = this.#closeController;
    await start;
    this.#noteActivity(task);
    while (!signal.aborted) {
      await this.#runOnce(task);
      // The due time is computed again at least every `everyMs`, because the longer interval of a task at rest may stop
      // applying in the meantime.
      while (!signal.aborted) {
        const [beatMs, dueMs] = [toBeat(this.#clock.monotonicMs()), this.#dueMs(task, taskIndex)];
        if (beatMs >= dueMs) break;
        await this.#sleepUntil(Math.min(dueMs, beatMs + toBeat(task.everyMs)));
      }
    }
  }

  #dueMs(task: Task, taskIndex: number): number {
    const { everyMs, restMs = 0, unusedMs = 0, quietMs = 0 } = task;
    const { isUnused, isQuiet } = this.#options;
    const hasFoundNothing = this.#hasFoundNothing(task);
    const intervalMs = Math.max(
      everyMs,
      this.#isAtRest(task) ? restMs : 0,
      hasFoundNothing && isUnused() ? unusedMs : 0,
      hasFoundNothing && isQuiet() ? quietMs : 0,
    );
    return nextBeat(this.#lastRunMs.get(task) ?? 0, intervalMs, taskIndex);
  }

  async #sleepUntil(ms: number): Promise<void> {
    await this.#clock.sleep(ms - this.#clock.monotonicMs(), this.#closeController.signal).catch(() => {});
  }

  #isAtRest(task: Task): boolean {
    return task.isAtRest?.() ?? this.#hasFoundNothing(task);
  }

  /** Whether the task has neither found anything to do nor been triggered for a while. */
  #hasFoundNothing(task: Task): boolean {
    return this.#clock.monotonicMs() - (this.#lastActiveMs.get(task) ?? 0) >= REST_DELAY_MS;
  }

  #noteActivity(task: Task): void {
    this.#lastActiveMs.set(task, this.#clock.monotonicMs());
  }

  /**
   * If the task is running, waits for the current run and runs the task once more, because the current run may already
   * have done its check. A task never runs twice at the same time.
   */
  #runOnce(task: Task): Promise<void> {
    const next = this.#nextRuns.get(task) ?? this.#runAfter(task, this.#currentRuns.get(task));
    this.#nextRuns.set(task, next);
    return next;
  }

  async #runAfter(task: Task, current: Promise<void> | undefined): Promise<void> {
    await current;
    this.#nextRuns.delete(task);
    if (this.#closeController.signal.aborted) return;
    const run = this.#run(task);
    this.#currentRuns.set(task, run);
    await run;
    if (this.#currentRuns.get(task) === run) this.#currentRuns.delete(task);
  }

  async #run(task: Task): Promise<void> {
    const endWork = loopWatch.begin({ what: `clock.${task.name}` }, false);
    this.#lastRunMs.set(task, this.#clock.monotonicMs());
    try {
      const counts = await runOutsideSpans(() => task.run());
      if (Object.values(counts).every(count => count === 0)) return;
      this.#noteActivity(task);
      this.#log.info(`clock.${task.name}`, counts);
    } catch (error) {
      this.#noteActivity(task);
      this.#log.error(`clock.${task.name}_failed`, { reason: reason(error) });
    } finally {
      this.#lastRunMs.set(task, this.#clock.monotonicMs());
      endWork();
    }
  }
}

const toBeat = (ms: number): number => Math.round(ms / BEAT_INTERVAL_MS) * BEAT_INTERVAL_MS;

/**
 * Returns the next beat after `lastRunMs` at which the task with this index runs. Tasks with the same interval run at
 * different beats where possible, so that they do not all need a database connection at once.
 */
function nextBeat(lastRunMs: number, intervalMs: number, taskIndex: number): number {
  const phaseMs = (taskIndex * BEAT_INTERVAL_MS) % intervalMs;
  return Math.ceil((toBeat(lastRunMs) + BEAT_INTERVAL_MS - phaseMs) / intervalMs) * intervalMs + phaseMs;
}
