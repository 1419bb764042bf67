// The folder of one page on disk: a description of the page, and one file for each raw segment. The name of a file
// contains the time at which the segment begins and, once the segment is closed, the time at which it ends. The files
// that a killed server left behind can therefore be read without other data.

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
import { hasCode } from '../../kit/durable.ts';
import { parseJson } from '../../kit/foreign.ts';
import { isObject } from '../../kit/json.ts';
import { journalFrameHead, journalHead, readJournal, type Size, type TimedFrame } from './matroska.ts';

export interface PageDescription {
  readonly targetId: string;
  /**
   * The time at which the recording began. `startedAt` is in wall-clock time. `baseMs` is the same moment by the
   * monotonic clock, which the browser also uses.
   */
  readonly startedAt: Date;
  readonly baseMs: number;
}

/** The frames of one segment on disk, not encoded yet. `endMs` is missing while the file is being written. */
export interface RawSegment {
  readonly sequence: number;
  readonly startMs: number;
  readonly endMs: number | undefined;
}

/** A closed segment, which may be encoded, with the times of its frames. */
export interface CompleteRawSegment extends RawSegment {
  readonly endMs: number;
  readonly times: readonly number[];
}

const NOTE_FILE_NAME = 'page.json';
/**
 * Creates a file in append mode. Every write goes to the end of the file. After an incomplete frame has been cut off,
 * the next frame therefore directly follows the last complete frame.
 */
const CREATE_FOR_APPEND_FLAGS = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_APPEND;
const SEGMENT_NAME_PATTERN = /^(\d+)\.(\d+)(?:\.(\d+))?\.mkv$/;

export class PageFolder {
  readonly path: string;
  readonly #onGrowth: (bytes: number) => void;
  readonly #bytesBySequence = new Map<number, number>();

  /** `onGrowth` is called with the change in bytes on disk. The number is negative when files shrink or are deleted. */
  constructor(path: string, onGrowth: (bytes: number) => void = () => {}) {
    this.path = path;
    this.#onGrowth = onGrowth;
  }

  async make(description: PageDescription): Promise<void> {
    await mkdir(this.path, { recursive: true, mode: 0o700 });
    const file = await open(join(this.path, `${NOTE_FILE_NAME}.new`), 'w', 0o600);
    await file.writeFile(JSON.stringify(description));
    await file.close();
    await rename(join(this.path, `${NOTE_FILE_NAME}.new`), join(this.path, NOTE_FILE_NAME));
  }

  /** Returns undefined if the folder has no valid description. Rejects if the description cannot be read. */
  async readDescription(): Promise<PageDescription | undefined> {
    const text = await readFile(join(this.path, NOTE_FILE_NAME), 'utf8').catch((error: unknown) => {
      if (hasCode(error, 'ENOENT')) return '';
      throw error;
    });
    const description = parseJson(text);
    if (!isObject(description) || typeof description.targetId !== 'string' || typeof description.baseMs !== 'number')
      return undefined;
    return {
      targetId: description.targetId,
      startedAt: new Date(String(description.startedAt)),
      baseMs: description.baseMs,
    };
  }

  /** Removes the folder if it has no valid description, because nothing can then be read from it. */
  async removeIfUndescribed(): Promise<void> {
    if ((await this.readDescription()) === undefined) await this.remove();
  }

  /**
   * Returns the segments in the order of their sequence numbers. If the folder exists but cannot be read, rejects
   * instead of returning an empty list, because callers may remove a folder that has no segments.
   */
  async segments(): Promise<RawSegment[]> {
    const names = await readdir(this.path).catch((error: unknown) => {
      if (hasCode(error, 'ENOENT')) return [];
      throw error;
    });
    const segments = names
      .flatMap(name => {
        const [, sequence, startMs, endMs] = SEGMENT_NAME_PATTERN.exec(name) ?? [];
        if (sequence === undefined) return [];
        const parsedEndMs = endMs === undefined ? undefined : Number(endMs);
        return [{ sequence: Number(sequence), startMs: Number(startMs), endMs: parsedEndMs }];
      })
      .sort((a, b) => a.sequence - b.sequence);
    for (const segment of segments) this.#recordBytes(segment.sequence, (await stat(this.pathOf(segment))).size);
    return segments;
  }

  async begin(segment: RawSegment, size: Size): Promise<SegmentWriter> {
    const file = await open(this.pathOf(segment), CREATE_FOR_APPEND_FLAGS, 0o600);
    return new SegmentWriter(file, journalHead(size), 0, bytes => this.#recordBytes(segment.sequence, bytes));
  }

  /** Continues a file that an earlier process wrote, after its last complete frame. */
  async resume(segment: RawSegment): Promise<{ writer: SegmentWriter; frames: readonly TimedFrame[] } | undefined> {
    const path = this.pathOf(segment);
    const { frames, completeFramesBytes } = readJournal(await readFile(path));
    if (frames.length === 0) return undefined;
    await truncate(path, completeFramesBytes);
    const onWritten = (bytes: number): void => this.#recordBytes(segment.sequence, bytes);
    return {
      writer: new SegmentWriter(await open(path, 'a', 0o600), undefined, completeFramesBytes, onWritten),
      frames,
    };
  }

  /** Marks the segment as complete, so that it may be encoded. */
  async end(segment: RawSegment, endMs: number): Promise<RawSegment & { readonly endMs: number }> {
    const endedSegment = { ...segment, endMs };
    await rename(this.pathOf(segment), this.pathOf(endedSegment));
    return endedSegment;
  }

  async frames(segment: RawSegment): Promise<readonly TimedFrame[]> {
    return readJournal(await readFile(this.pathOf(segment))).frames;
  }

  async drop(segment: RawSegment): Promise<void> {
    await unlink(this.pathOf(segment)).catch(() => {});
    this.#recordBytes(segment.sequence, 0);
  }

  /**
   * Call when all data of the page is stored elsewhere. Removes the folder of the page and, with the last page, the
   * folder of the session.
   */
  async remove(): Promise<void> {
    await rm(this.path, { recursive: true, force: true });
    await rmdir(join(this.path, '..')).catch(() => {});
    this.uncount();
  }

  /** Stops counting the files, because they have been deleted or another object counts them. */
  uncount(): void {
    for (const sequence of [...this.#bytesBySequence.keys()]) this.#recordBytes(sequence, 0);
  }

  #recordBytes(sequence: number, bytes: number): void {
    const bytesBefore = this.#bytesBySequence.get(sequence) ?? 0;
    if (bytes === 0) this.#bytesBySequence.delete(sequence);
    else this.#bytesBySequence.set(sequence, bytes);
    this.#onGrowth(bytes - bytesBefore);
  }

  pathOf({ sequence, startMs, endMs }: RawSegment): string {
    return join(this.path, endMs === undefined ? `${sequence}.${startMs}.mkv` : `${sequence}.${startMs}.${endMs}.mkv`);
  }
}

export class SegmentWriter {
  readonly #file: FileHandle;
  readonly #onWritten: (bytes: number) => void;
  #head: Buffer | undefined;
  #bytes: number;

  /** `bytes`: the length of the file. */
  constructor(file: FileHandle, head: Buffer | undefined, bytes: number, onWritten: (bytes: number) => void) {
    this.#file = file;
    this.#head = head;
    this.#bytes = bytes;
    this.#onWritten = onWritten;
  }

  /** Appends a frame with one write. If the server is killed, only the last frame can be incomplete. */
  async append(frame: TimedFrame): Promise<void> {
    const parts = [...(this.#head ? [this.#head] : []), journalFrameHead(frame), frame.jpeg];
    const bytes = parts.reduce((sum, part) => sum + part.length, 0);
    try {
      const { bytesWritten } = await this.#file.writev(parts);
      if (bytesWritten < bytes)
        throw new Error(`only ${bytesWritten} of ${bytes} bytes of a frame were written to the disk`);
    } catch (error) {
      // A partial write would make everything after it unreadable, so it is cut off.
      await this.#file.truncate(this.#bytes).catch(() => {});
      throw error;
    }
    this.#head = undefined;
    this.#bytes += bytes;
    this.#onWritten(this.#bytes);
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}
