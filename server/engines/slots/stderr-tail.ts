// Keeps the last lines that a program wrote to its error output, and nothing more.
import type { Readable } from 'node:stream';

const TAIL_BYTES = 8192;

export class StderrTail {
  readonly #stream: Readable;
  #kept = Buffer.alloc(0);

  constructor(stream: Readable) {
    this.#stream = stream;
    stream.on('data', (chunk: Buffer) => {
      this.#kept = Buffer.concat([this.#kept, chunk]).subarray(-TAIL_BYTES);
    });
    stream.on('error', () => {});
  }

  text(): string {
    return this.#kept.toString('utf8').trim();
  }

  close(): void {
    this.#stream.destroy();
  }
}
