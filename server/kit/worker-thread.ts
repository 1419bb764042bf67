// Runs in each worker thread of the pool: calls the function `work` of a job's module, one job at a time, and posts the
// result or the error message.
import { readlinkSync } from 'node:fs';
import { setPriority } from 'node:os';
import { basename } from 'node:path';
import { parentPort } from 'node:worker_threads';
import { wholeBufferOf } from './whole-buffer.ts';

export interface JobRequest {
  readonly id: number;
  /** The module whose function `work` is to be called. */
  readonly module: string;
  readonly input: unknown;
}

/** The first message that a thread sends to the pool. */
export interface ThreadStarted {
  /** The kernel's id of the thread, as in /proc/self/task. */
  readonly thread: number;
}

/** Sent when the module of the job has been loaded and its work begins. */
export interface JobBegun {
  readonly begun: number;
}

export type Outcome = { readonly id: number } & ({ readonly output: unknown } | { readonly errorMessage: string });

const port = parentPort;
if (!port) throw new Error('this file can run only as a worker thread');

/**
 * The priority is lower than that of the main thread, because all other work depends on the main thread. On Linux, each
 * thread has a priority of its own.
 */
const NICENESS = 10;
const startMessage: ThreadStarted = { thread: Number(basename(readlinkSync('/proc/thread-self'))) };
setPriority(startMessage.thread, NICENESS);
port.postMessage(startMessage);

port.on('message', ({ id, module, input }: JobRequest) => {
  void perform(id, module, input).then(
    output => {
      const outcome: Outcome = { id, output };
      port.postMessage(outcome, buffersIn(output));
    },
    (error: unknown) => {
      const outcome: Outcome = {
        id,
        errorMessage: error instanceof Error ? error.message : 'it threw a value that is not an Error',
      };
      port.postMessage(outcome);
    },
  );
});

async function perform(id: number, module: string, input: unknown): Promise<unknown> {
  const jobModule: { work(input: unknown): unknown } = await import(module);
  const begun: JobBegun = { begun: id };
  port?.postMessage(begun);
  return jobModule.work(input);
}

/** Returns the buffers at the top level of a result, to be moved instead of copied. */
function buffersIn(output: unknown): ArrayBuffer[] {
  const values =
    output instanceof Uint8Array
      ? [output]
      : typeof output === 'object' && output !== null
        ? Object.values(output)
        : [];
  return values.flatMap(value => (value instanceof Uint8Array ? wholeBufferOf(value) : []));
}
