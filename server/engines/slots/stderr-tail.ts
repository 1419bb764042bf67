// Keeps the last 8 KiB that a program wrote to its standard error.
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { guardListener } from '../../kit/guard.ts';
import { withTimeout } from '../../kit/wait.ts';

const CLOSE_TIMEOUT_MS = 200;
const TAIL_BYTES = 8192;

export class StderrTail {
  readonly #stream: Readable;
  #tail = Buffer.alloc(0);

  constructor(stream: Readable) {
    this.#stream = stream;
    const appendChunk = (chunk: Buffer): void => {
      this.#tail = Buffer.concat([this.#tail, chunk]).subarray(-TAIL_BYTES);
    };
    stream.on(
      'data',
      guardListener(() => stream.destroy(), appendChunk),
    );
    stream.on('error', () => {});
  }

  text(): string {
    return this.#tail.toString('utf8').trim();
  }

  /**
   * Waits until the stream closes, but only for a short time, because a descendant of the program may keep the write
   * end open.
   */
  async whenClosed(): Promise<void> {
    if (this.#stream.closed) return;
    await withTimeout(CLOSE_TIMEOUT_MS, 'standard error to close', signal =>
      once(this.#stream, 'close', { signal }),
    ).catch(() => {});
  }

  close(): void {
    this.#stream.destroy();
  }
}
