// The journal of one page on disk: what the page is, and one file for each segment to be. A file's name says when it
// begins and, once it is closed, when it ends; so what a killed server left tells its own story.
import {
  constants,
  type FileHandle,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rm,
  rmdir,
  stat,
  truncate,
  unlink,
} from 'node:fs/promises';
import { join } from 'node:path';
import { isObject } from './channel.ts';
import { journalFrameHead, journalHead, readJournal, type Size, type TimedFrame } from './matroska.ts';

export interface PageNote {
  readonly targetId: string;
  /** When its recording begins, by the calendar and by the machine's monotonic clock as the browser reads it. */
  readonly startedAt: Date;
  readonly baseMs: number;
}

/** A slice on disk: the frames of one segment. `endMs` is missing while it is being written. */
export interface Slice {
  readonly sequence: number;
  readonly startMs: number;
  readonly endMs: number | undefined;
}

/** One that may be encoded, with the times of its frames. */
export interface WholeSlice extends Slice {
  readonly endMs: number;
  readonly times: readonly number[];
}

const NOTE = 'page.json';
/** Appending: where a torn frame was cut off, the next one stands right behind the last whole one. */
const NEW_TO_APPEND = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_APPEND;
const SLICE = /^(\d+)\.(\d+)(?:\.(\d+))?\.mkv$/;

export class PageFolder {
  readonly path: string;
  readonly #grown: (bytes: number) => void;
  readonly #bytes = new Map<number, number>();

  /** `grown` is told of every byte that stands here, and with a minus of those that no longer do. */
  constructor(path: string, grown: (bytes: number) => void = () => {}) {
    this.path = path;
    this.#grown = grown;
  }

  async make(note: PageNote): Promise<void> {
    await mkdir(this.path, { recursive: true, mode: 0o700 });
    const file = await open(join(this.path, `${NOTE}.new`), 'w', 0o600);
    await file.writeFile(JSON.stringify(note));
    await file.close();
    await rename(join(this.path, `${NOTE}.new`), join(this.path, NOTE));
  }

  async note(): Promise<PageNote | undefined> {
    try {
      const note: unknown = JSON.parse(await readFile(join(this.path, NOTE), 'utf8'));
      if (!isObject(note) || typeof note.targetId !== 'string' || typeof note.baseMs !== 'number') return undefined;
      return { targetId: note.targetId, startedAt: new Date(String(note.startedAt)), baseMs: note.baseMs };
    } catch {
      return undefined;
    }
  }

  /** In the order of their segments. */
  async slices(): Promise<Slice[]> {
    const names = await readdir(this.path).catch(() => []);
    const slices = names
      .flatMap(name => {
        const [, sequence, startMs, endMs] = SLICE.exec(name) ?? [];
        if (sequence === undefined) return [];
        const ended = endMs === undefined ? undefined : Number(endMs);
        return [{ sequence: Number(sequence), startMs: Number(startMs), endMs: ended }];
      })
      .sort((a, b) => a.sequence - b.sequence);
    for (const slice of slices) this.#count(slice.sequence, (await stat(this.pathOf(slice))).size);
    return slices;
  }

  async begin(slice: Slice, size: Size): Promise<SliceWriter> {
    const file = await open(this.pathOf(slice), NEW_TO_APPEND, 0o600);
    return new SliceWriter(file, journalHead(size), 0, bytes => this.#count(slice.sequence, bytes));
  }

  /** Goes on with what a former process began, behind its last whole frame. */
  async resume(slice: Slice): Promise<{ writer: SliceWriter; frames: readonly TimedFrame[] } | undefined> {
    const path = this.pathOf(slice);
    const { frames, wholeBytes } = readJournal(await readFile(path));
    if (frames.length === 0) return undefined;
    await truncate(path, wholeBytes);
    const grown = (bytes: number): void => this.#count(slice.sequence, bytes);
    return { writer: new SliceWriter(await open(path, 'a', 0o600), undefined, wholeBytes, grown), frames };
  }

  /** From now on it is whole, and may be encoded. */
  async end(slice: Slice, endMs: number): Promise<Slice & { readonly endMs: number }> {
    const ended = { ...slice, endMs };
    await rename(this.pathOf(slice), this.pathOf(ended));
    return ended;
  }

  async frames(slice: Slice): Promise<readonly TimedFrame[]> {
    return readJournal(await readFile(this.pathOf(slice))).frames;
  }

  async drop(slice: Slice): Promise<void> {
    await unlink(this.pathOf(slice)).catch(() => {});
    this.#count(slice.sequence, 0);
  }

  /** Everything of the page is stored elsewhere. Its session's folder goes with the last page. */
  async remove(): Promise<void> {
    await rm(this.path, { recursive: true, force: true });
    await rmdir(join(this.path, '..')).catch(() => {});
    for (const sequence of [...this.#bytes.keys()]) this.#count(sequence, 0);
  }

  #count(sequence: number, bytes: number): void {
    const before = this.#bytes.get(sequence) ?? 0;
    if (bytes === 0) this.#bytes.delete(sequence);
    else this.#bytes.set(sequence, bytes);
    this.#grown(bytes - before);
  }

  pathOf({ sequence, startMs, endMs }: Slice): string {
    return join(this.path, endMs === undefined ? `${sequence}.${startMs}.mkv` : `${sequence}.${startMs}.${endMs}.mkv`);
  }
}

export class SliceWriter {
  readonly #file: FileHandle;
  readonly #grown: (bytes: number) => void;
  #head: Buffer | undefined;
  #bytes: number;

  /** `bytes`: how long the file is. */
  constructor(file: FileHandle, head: Buffer | undefined, bytes: number, grown: (bytes: number) => void) {
    this.#file = file;
    this.#head = head;
    this.#bytes = bytes;
    this.#grown = grown;
  }

  /** One write a frame, so that a killed server leaves all frames but the last whole. */
  async append(frame: TimedFrame): Promise<void> {
    const parts = [...(this.#head ? [this.#head] : []), journalFrameHead(frame), frame.jpeg];
    const bytes = parts.reduce((sum, part) => sum + part.length, 0);
    try {
      const { bytesWritten } = await this.#file.writev(parts);
      if (bytesWritten < bytes) throw new Error(`the disk took ${bytesWritten} of ${bytes} bytes`);
    } catch (error) {
      // What the disk took of it would hide what is written behind it.
      await this.#file.truncate(this.#bytes).catch(() => {});
      throw error;
    }
    this.#head = undefined;
    this.#bytes += bytes;
    this.#grown(this.#bytes);
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}
