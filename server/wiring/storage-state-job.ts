// Writes a storage state as JSON, in a worker thread: cookies as they were stored, and local storage from Chromium's
// database. The JSON is written origin by origin, so that the whole text is never in memory.
import { writeSync } from 'node:fs';
import type { StateInput, StateJob, StateOutput } from '../domain/contexts/export.ts';
import { exportedCookies } from '../domain/contexts/storage-state.ts';
import { LevelDbError } from '../engines/profiles/leveldb/bytes.ts';
import { readLocalStorage } from '../engines/profiles/local-storage.ts';

/** Exporting the largest stored state takes a few seconds. */
const JOB_TIME_LIMIT_MS = 60_000;
const PIECE_CHARS = 256 * 1024;

export const STORAGE_STATE: StateJob = {
  name: 'export a storage state',
  module: import.meta.url,
  limitMs: JOB_TIME_LIMIT_MS,
  isLong: true,
};

export function work({ cookies, localStorage, descriptor }: StateInput): StateOutput {
  try {
    const files = [...localStorage].map(([name, bytes]) => [name, asBuffer(bytes)] as const);
    const file = new TextFile(descriptor);
    writeState(file, cookies ? asBuffer(cookies).toString() : '[]', new Map(files));
    return { bytes: file.end() };
  } catch (error) {
    if (error instanceof LevelDbError || error instanceof SyntaxError) return { damaged: error.message };
    throw error;
  }
}

function writeState(file: TextFile, cookies: string, files: ReadonlyMap<string, Buffer>): void {
  const parsedCookies: unknown = JSON.parse(cookies);
  const origins = readLocalStorage(files);
  file.put(
    `{"cookies":${JSON.stringify(exportedCookies(Array.isArray(parsedCookies) ? parsedCookies : []))},"origins":[`,
  );
  for (const [index, { origin, items }] of origins.entries()) {
    file.put(`${index === 0 ? '' : ','}{"origin":${JSON.stringify(origin)},"localStorage":[`);
    let separator = '';
    for (const [name, value] of items) {
      file.put(`${separator}{"name":${JSON.stringify(name)},"value":${JSON.stringify(value)}}`);
      separator = ',';
    }
    file.put(']}');
  }
  file.put(']}');
}

const asBuffer = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength);

class TextFile {
  readonly #descriptor: number;
  #bufferedTexts: string[] = [];
  #bufferedChars = 0;
  #writtenTotalBytes = 0;

  constructor(descriptor: number) {
    this.#descriptor = descriptor;
  }

  put(text: string): void {
    this.#bufferedTexts.push(text);
    this.#bufferedChars += text.length;
    if (this.#bufferedChars > PIECE_CHARS) this.#write();
  }

  /** Writes the remaining text, and returns the total size in bytes. */
  end(): number {
    this.#write();
    return this.#writtenTotalBytes;
  }

  #write(): void {
    let remainingBytes = Buffer.from(this.#bufferedTexts.join(''));
    this.#bufferedTexts = [];
    this.#bufferedChars = 0;
    while (remainingBytes.length > 0) {
      const writtenBytes = writeSync(
        this.#descriptor,
        remainingBytes,
        0,
        remainingBytes.length,
        this.#writtenTotalBytes,
      );
      this.#writtenTotalBytes += writtenBytes;
      remainingBytes = remainingBytes.subarray(writtenBytes);
    }
  }
}
