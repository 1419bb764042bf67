// A kernel file, such as a counter of a cgroup, that is read several times a second. It stays open, because opening it
// costs five times as much as reading it.
import { closeSync, openSync, readSync } from 'node:fs';

/** Larger than any of the counters. All files share this buffer, because reading is synchronous. */
const buffer = Buffer.alloc(4096);

export class KernelFile {
  readonly #path: string;
  #descriptor: number | undefined;
  #isClosed = false;

  constructor(path: string) {
    this.#path = path;
  }

  /** Returns the current content, or an empty string if the file does not exist or is closed. */
  read(): string {
    if (this.#isClosed) return '';
    try {
      this.#descriptor ??= openSync(this.#path, 'r');
      return buffer.toString('latin1', 0, readSync(this.#descriptor, buffer, 0, buffer.length, 0));
    } catch {
      this.#release();
      return '';
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#release();
  }

  #release(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#descriptor = undefined;
  }
}
