// Worker threads for work on untrusted bytes, so that it does not block the event loop. Threads, queued jobs, memory
// and the time of each job are bounded. A job that takes too long, needs too much memory or dies does not affect other
// jobs; its thread is replaced. Idle threads end.
import { readFileSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { compiledCodeEnv } from './compiled-code.ts';
import { reason } from './fault.ts';
import type { Closeable } from './scope.ts';
import type { JobBegun, JobRequest, Outcome, ThreadStarted } from './worker-thread.ts';

interface JobFacts {
  /** The name of the job in logs and errors, for example "mask a picture". */
  readonly name: string;
  /** The URL of a module that exports `work(input: Input): Output | Promise<Output>`. */
  readonly module: string;
  /**
   * The limit on processor time, counted from the moment the module has been loaded. The limit on elapsed time is
   * `ELAPSED_FACTOR_MAX` times as long, because threads have to wait for a processor on a busy machine.
   */
  readonly limitMs: number;
  /** Whether the job takes seconds. Such jobs never occupy all threads. */
  readonly isLong?: boolean;
  /**
   * Whether input from the session or application determines how long the job takes. Only one such job per session or
   * application runs at a time, so that one session or application cannot occupy all threads.
   */
  readonly isSolo?: boolean;
}

/**
 * A kind of work: which function runs, and how long it may take. `Input` and `Output` must be types that can be cloned
 * (structured clone).
 */
export interface Job<Input, Output> extends JobFacts {
  /** Never set. Exists only for type inference. */
  readonly signature?: (input: Input) => Output;
}

export interface JobOptions {
  /**
   * The session or application that the job is for. Sessions and applications take turns, regardless of how many jobs
   * each of them has.
   */
  readonly owner: string;
  /**
   * Buffers of the input that are transferred to the thread instead of copied. Afterwards they are empty in the calling
   * thread.
   */
  readonly movedBuffers?: readonly ArrayBuffer[];
}

export interface WorkerPoolLimits {
  readonly threads: number;
  readonly waitingMax: number;
  readonly waitingPerOwnerMax: number;
  readonly heapMb: number;
  readonly idleMs: number;
}

const WORKER_POOL_LIMITS: WorkerPoolLimits = {
  threads: 2,
  waitingMax: 256,
  waitingPerOwnerMax: 64,
  /**
   * The maximum heap for JavaScript objects in each thread. It does not include buffers, whose size the jobs themselves
   * limit.
   */
  heapMb: 512,
  /** A thread without work ends after this time, because it holds a few megabytes. */
  idleMs: 30_000,
};

const ELAPSED_FACTOR_MAX = 4;
/** The maximum time for the start of a thread and the loading of a module. */
const LOADING_MS_MAX = 60_000;
const RECHECK_MS_MIN = 50;

export type WorkFailure = 'too_many' | 'too_long' | 'died' | 'failed' | 'closed';

export class WorkFailed extends Error {
  override readonly name = 'WorkFailed';
  readonly why: WorkFailure;
  constructor(jobName: string, why: WorkFailure, explanation: string) {
    super(`"${jobName}" ${explanation}`);
    this.why = why;
  }
}

/** The interface of the pool for code that only runs jobs. */
export interface Workers {
  run<Input, Output>(job: Job<Input, Output>, input: Input, options: JobOptions): Promise<Output>;
}

interface WaitingJob {
  readonly job: JobFacts;
  readonly input: unknown;
  readonly options: JobOptions;
  readonly response: PromiseWithResolvers<unknown>;
}

interface Thread {
  readonly worker: Worker;
  /** The kernel's id of the thread, once the thread has started. */
  id: number | undefined;
  current: WaitingJob | undefined;
  timer: NodeJS.Timeout | undefined;
}

export class WorkerPool implements Workers, Closeable {
  readonly #limits: WorkerPoolLimits;
  readonly #threads = new Set<Thread>();
  /** Waiting jobs by session or application. The session or application whose job was taken last is at the end. */
  readonly #waitingJobs = new Map<string, WaitingJob[]>();
  #waitingCount = 0;
  #nextId = 0;
  #isClosed = false;

  constructor(limits: Partial<WorkerPoolLimits> = {}) {
    this.#limits = { ...WORKER_POOL_LIMITS, ...limits };
  }

  /** The number of jobs that wait for a thread. */
  get waitingJobCount(): number {
    return this.#waitingCount;
  }

  /** The number of worker threads that exist now. */
  get threadCount(): number {
    return this.#threads.size;
  }

  run<Input, Output>(job: Job<Input, Output>, input: Input, options: JobOptions): Promise<Output> {
    const response = Promise.withResolvers<unknown>();
    const refusal = this.#refusal(job.name, options.owner);
    if (refusal) response.reject(refusal);
    else {
      const jobsOfOwner = this.#waitingJobs.get(options.owner) ?? [];
      this.#waitingJobs.set(options.owner, jobsOfOwner);
      jobsOfOwner.push({ job, input, options, response });
      this.#waitingCount++;
      this.#assign();
    }
    // The cast is safe if the job declares the types of its module correctly.
    return response.promise as Promise<Output>;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const endingThreads = [...this.#threads];
    for (const queuedJob of [...this.#waitingJobs.values()].flat())
      queuedJob.response.reject(closedFailure(queuedJob.job.name));
    this.#waitingJobs.clear();
    this.#waitingCount = 0;
    await Promise.all(endingThreads.map(thread => this.#end(thread, name => closedFailure(name))));
  }

  #refusal(name: string, jobOwner: string): WorkFailed | undefined {
    const { waitingMax: waiting, waitingPerOwnerMax: waitingPerOwner } = this.#limits;
    if (this.#isClosed) return closedFailure(name);
    if (this.#waitingCount < waiting && (this.#waitingJobs.get(jobOwner)?.length ?? 0) < waitingPerOwner)
      return undefined;
    return new WorkFailed(
      name,
      'too_many',
      'cannot run now: too much work of this kind is already waiting. Try again later.',
    );
  }

  #assign(): void {
    for (;;) {
      const freeThread = [...this.#threads].find(thread => !thread.current);
      if (!freeThread && this.#threads.size >= this.#limits.threads) return;
      const nextJob = this.#takeNextJob();
      if (!nextJob) return;
      this.#begin(freeThread ?? this.#start(), nextJob);
    }
  }

  #takeNextJob(): WaitingJob | undefined {
    const longJobs = [...this.#threads].filter(({ current }) => current?.job.isLong).length;
    const mayStartLongJob = longJobs < Math.max(1, this.#limits.threads - 1);
    for (const [queueOwner, jobsOfOwner] of this.#waitingJobs) {
      const isSoloJobRunning = [...this.#threads].some(
        ({ current }) => current?.job.isSolo && current.options.owner === queueOwner,
      );
      const index = jobsOfOwner.findIndex(
        ({ job }) => (mayStartLongJob || !job.isLong) && !(isSoloJobRunning && job.isSolo),
      );
      const [next] = index < 0 ? [] : jobsOfOwner.splice(index, 1);
      if (!next) continue;
      this.#waitingJobs.delete(queueOwner);
      if (jobsOfOwner.length > 0) this.#waitingJobs.set(queueOwner, jobsOfOwner);
      this.#waitingCount--;
      return next;
    }
    return undefined;
  }

  #start(): Thread {
    const { heapMb } = this.#limits;
    const worker = new Worker(new URL('./worker-thread.ts', import.meta.url), {
      name: 'berth-worker',
      // Threads inherit neither the Node options nor the environment variables of the server.
      execArgv: [],
      env: compiledCodeEnv(),
      resourceLimits: { maxOldGenerationSizeMb: heapMb, maxYoungGenerationSizeMb: 32, stackSizeMb: 4 },
    });
    const thread: Thread = { worker, id: undefined, current: undefined, timer: undefined };
    this.#threads.add(thread);
    worker.on('message', (threadMessage: Outcome | ThreadStarted | JobBegun) => {
      if ('thread' in threadMessage) thread.id = threadMessage.thread;
      else if ('begun' in threadMessage) this.#limitTime(thread);
      else this.#settle(thread, threadMessage);
    });
    worker.on(
      'error',
      (error: Error) =>
        void this.#end(thread, name => new WorkFailed(name, 'died', `crashed its worker thread: ${error.message}`)),
    );
    worker.on(
      'exit',
      () => void this.#end(thread, name => new WorkFailed(name, 'died', 'ended its worker thread without a result')),
    );
    return thread;
  }

  #begin(thread: Thread, waitingJob: WaitingJob): void {
    const { job, input, options } = waitingJob;
    thread.current = waitingJob;
    thread.worker.ref();
    clearTimeout(thread.timer);
    thread.timer = setTimeout(() => void this.#end(thread, timeoutFailure(job)), LOADING_MS_MAX);
    const jobRequest: JobRequest = { id: ++this.#nextId, module: job.module, input };
    try {
      thread.worker.postMessage(jobRequest, [...(options.movedBuffers ?? [])]);
    } catch (error) {
      // The input cannot be cloned, or one of its buffers has already been moved.
      this.#settle(thread, { id: jobRequest.id, errorMessage: reason(error) });
    }
  }

  #limitTime(thread: Thread): void {
    clearTimeout(thread.timer);
    if (thread.current) this.#watch(thread, thread.current.job, usedMs(thread), thread.current.job.limitMs);
  }

  /** Limits the time of a job. `usedMsAtStart`: the processor time that the thread had used when the job began. */
  #watch(thread: Thread, job: JobFacts, usedMsAtStart: number, waitMs: number, waitedMs = waitMs): void {
    thread.timer = setTimeout(() => {
      const remainingMs = job.limitMs - (usedMs(thread) - usedMsAtStart);
      const nextWaitMs = Math.max(remainingMs, RECHECK_MS_MIN);
      if (remainingMs > 0 && waitedMs < ELAPSED_FACTOR_MAX * job.limitMs)
        return this.#watch(thread, job, usedMsAtStart, nextWaitMs, waitedMs + nextWaitMs);
      void this.#end(thread, timeoutFailure(job));
    }, waitMs);
  }

  #settle(thread: Thread, outcome: Outcome): void {
    const finishedJob = thread.current;
    thread.current = undefined;
    clearTimeout(thread.timer);
    thread.worker.unref();
    thread.timer = setTimeout(() => void this.#end(thread, closedFailure), this.#limits.idleMs).unref();
    if ('output' in outcome) finishedJob?.response.resolve(outcome.output);
    else
      finishedJob?.response.reject(new WorkFailed(finishedJob.job.name, 'failed', `failed: ${outcome.errorMessage}`));
    this.#assign();
  }

  /** Ends a thread. The job that it is running fails with `failure`; waiting jobs get another thread. */
  async #end(thread: Thread, failure: (job: string) => WorkFailed): Promise<void> {
    if (!this.#threads.delete(thread)) return;
    clearTimeout(thread.timer);
    const { current } = thread;
    thread.current = undefined;
    current?.response.reject(failure(current.job.name));
    const termination = thread.worker.terminate();
    if (!this.#isClosed) this.#assign();
    await termination;
  }
}

const timeoutFailure =
  ({ limitMs }: JobFacts) =>
  (name: string): WorkFailed =>
    new WorkFailed(name, 'too_long', `took longer than ${limitMs} ms and was stopped`);

const closedFailure = (name: string): WorkFailed =>
  new WorkFailed(name, 'closed', 'did not finish, because the server is closing');

/** The processor time of a thread: 0 before it has started, and infinite if the kernel does not report it. */
function usedMs({ id }: Thread): number {
  if (id === undefined) return 0;
  try {
    const [nanoseconds = ''] = readFileSync(`/proc/self/task/${id}/schedstat`, 'utf8').split(' ', 1);
    return Number(nanoseconds) / 1e6;
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}
