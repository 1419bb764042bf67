// What runs in a worker thread of the pool: one job after the other, each a module's function `work`. It answers each with
// its result or with the words of its error.
import { readlinkSync } from 'node:fs';
import { setPriority } from 'node:os';
import { basename } from 'node:path';
import { parentPort } from 'node:worker_threads';
import { wholeBufferOf } from './whole-buffer.ts';

export interface Order {
  readonly id: number;
  /** The module whose `work` is to be run. */
  readonly module: string;
  readonly input: unknown;
}

export type Outcome = { readonly id: number } & ({ readonly output: unknown } | { readonly failed: string });

const port = parentPort;
if (!port) throw new Error('this file runs as a worker thread only');

/** Everybody waits for the main thread: it goes first where both want a core. On Linux a thread has a priority of its own. */
const NICENESS = 10;
setPriority(Number(basename(readlinkSync('/proc/thread-self'))), NICENESS);

port.on('message', ({ id, module, input }: Order) => {
  void perform(module, input).then(
    output => {
      const outcome: Outcome = { id, output };
      port.postMessage(outcome, buffersIn(output));
    },
    (error: unknown) => {
      const outcome: Outcome = { id, failed: error instanceof Error ? error.message : 'it threw no error' };
      port.postMessage(outcome);
    },
  );
});

async function perform(module: string, input: unknown): Promise<unknown> {
  const loaded: { work(input: unknown): unknown } = await import(module);
  return loaded.work(input);
}

/** Whole buffers at the top of a result are moved and not copied. */
function buffersIn(output: unknown): ArrayBuffer[] {
  const values =
    output instanceof Uint8Array
      ? [output]
      : typeof output === 'object' && output !== null
        ? Object.values(output)
        : [];
  return values.flatMap(value => (value instanceof Uint8Array ? wholeBufferOf(value) : []));
}
