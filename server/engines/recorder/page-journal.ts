// The timeline of one page while it is recorded: frames come in, slices of six seconds go out. A page at rest is held: its
// last frame stands at the beginning of the next slice.
import type { Clock } from '../../kit/clock.ts';
import type { CapturedFrame } from './capture.ts';
import { jpegSize } from './jpeg-size.ts';
import type { Size, TimedFrame } from './matroska.ts';
import type { PageFolder, PageNote, Slice, SliceWriter, WholeSlice } from './page-folder.ts';

export const SLICE_MS = 6_000;
/** A frame may arrive so much later than it was painted; slices are not closed before. */
const LATE_MS = 300;
/** A frame that seems to have been on its way for longer was painted by another calendar than ours. */
const CALENDARS_AGREE_MS = 10_000;
/** Where the disk did not take a frame, it is asked again after this. */
const RETRY_MS = 2_000;
/** The first picture stands from the beginning of the page on; of one that was long unseen, from so long before on. */
const HELD_BACK_MAX_MS = 60_000;

export interface JournalListener {
  /** In order; the slice is whole on disk. */
  sliced(slice: WholeSlice, size: Size): void;
  /** Frames between these times could not be written. */
  lost(fromMs: number, toMs: number, why: string): void;
}

interface Open {
  readonly slice: Slice;
  readonly size: Size;
  readonly writer: SliceWriter;
  readonly times: number[];
}

export class PageJournal {
  readonly folder: PageFolder;
  readonly note: PageNote;
  readonly #clock: Clock;
  readonly #listener: JournalListener;
  #open: Open | undefined;
  #last: { readonly frame: TimedFrame; readonly size: Size } | undefined;
  #next = 1;
  /** What the browser's clock is ahead of ours; unknown before the first frame of this process. */
  #aheadMs: number | undefined;
  /** The same as far as it is certain: no frame comes before it was painted. */
  #aheadLeastMs = Number.NEGATIVE_INFINITY;
  #lostSinceMs: number | undefined;
  #retryAtMs = 0;
  /** Where the last slice that was closed ends. */
  #closedMs = 0;
  /** Why no slice is open though the page goes on: it was to pause, or the disk took nothing. */
  #halted: 'paused' | 'broken' | undefined;
  #work: Promise<void> = Promise.resolve();
  #ended = false;

  private constructor(folder: PageFolder, note: PageNote, clock: Clock, listener: JournalListener) {
    this.folder = folder;
    this.note = note;
    this.#clock = clock;
    this.#listener = listener;
  }

  /** `leadMs`: how long the page had been there when its first frame was painted. */
  static async begin(
    folder: PageFolder,
    targetId: string,
    { first, leadMs }: { readonly first: CapturedFrame; readonly leadMs: number },
    clock: Clock,
    listener: JournalListener,
  ): Promise<PageJournal> {
    const startedAt = new Date(first.at.getTime() - leadMs);
    const note = { targetId, startedAt, baseMs: first.browserMs - leadMs };
    await folder.make(note);
    return new PageJournal(folder, note, clock, listener);
  }

  /** What a former process left: its whole slices are told of, and the open one goes on. */
  static async resume(
    folder: PageFolder,
    note: PageNote,
    clock: Clock,
    listener: JournalListener,
  ): Promise<PageJournal> {
    const journal = new PageJournal(folder, note, clock, listener);
    await journal.#resume();
    return journal;
  }

  /** Milliseconds since its beginning. */
  get nowMs(): number {
    if (this.#aheadMs === undefined) return this.#clock.now().getTime() - this.note.startedAt.getTime();
    return Math.round(this.#clock.monotonicMs() + this.#aheadMs - this.note.baseMs);
  }

  /** Whether it was being recorded when its process died, or is. */
  get isOpen(): boolean {
    return this.#open !== undefined && !this.#ended;
  }

  /** When its newest frame was painted. */
  get lastMs(): number {
    return this.#last?.frame.atMs ?? 0;
  }

  take(frame: CapturedFrame): Promise<void> {
    this.#compareClocks(frame);
    return this.#inTurn(() => this.#take(Math.round(frame.browserMs - this.note.baseMs), frame.jpeg));
  }

  /** The only frame of a page at rest may have been on its way for seconds, which the calendar tells. */
  #compareClocks({ browserMs, at }: CapturedFrame): void {
    const leastMs = browserMs - this.#clock.monotonicMs();
    const onItsWayMs = this.#clock.now().getTime() - at.getTime();
    const isKnown = onItsWayMs >= 0 && onItsWayMs <= CALENDARS_AGREE_MS;
    this.#aheadLeastMs = Math.max(this.#aheadLeastMs, leastMs);
    this.#aheadMs = Math.max(this.#aheadLeastMs, isKnown ? leastMs + onItsWayMs : leastMs);
  }

  /** Closes what is six seconds long, also where nothing changed. */
  tick(): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#ended || this.#clock.monotonicMs() < this.#retryAtMs) return;
      if (this.#open) await this.#roll(this.nowMs - LATE_MS);
      else if (this.#halted === 'broken') await this.#hold(this.nowMs);
    });
  }

  /** Ends what is being written here; the next frame goes on behind a gap. */
  pause(): Promise<void> {
    return this.#inTurn(async () => {
      await this.#closeAt(this.nowMs);
      this.#halted = 'paused';
    });
  }

  /** After a pause, with the last picture. */
  goOn(): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#halted && !this.#ended) await this.#hold(this.nowMs);
    });
  }

  /** Nothing comes any more. The last frame is held until then. */
  end(atMs = this.nowMs): Promise<void> {
    return this.#inTurn(async () => {
      this.#ended = true;
      // Behind a gap the last picture stands once more, so that the recording is as long as the page lived.
      if (this.#halted) await this.#hold(Math.max(this.#closedMs, atMs - SLICE_MS));
      await this.#closeAt(atMs);
    });
  }

  /** Lets the files be as they are, for a successor. */
  leave(): Promise<void> {
    return this.#inTurn(async () => {
      this.#ended = true;
      await this.#open?.writer.close();
      this.#open = undefined;
    });
  }

  #inTurn(step: () => Promise<void>): Promise<void> {
    const done = this.#work.then(() => this.#whole(step));
    this.#work = done;
    return done;
  }

  /** A disk that takes nothing costs frames, not the session. */
  async #whole(step: () => Promise<void>): Promise<void> {
    try {
      await step();
    } catch (error) {
      this.#lostSinceMs ??= this.#last?.frame.atMs ?? 0;
      this.#retryAtMs = this.#clock.monotonicMs() + RETRY_MS;
      this.#listener.lost(this.#lostSinceMs, this.nowMs, error instanceof Error ? error.message : String(error));
    }
  }

  async #take(paintedMs: number, jpeg: Buffer): Promise<void> {
    const size = jpegSize(jpeg);
    if (!size || this.#ended || this.#clock.monotonicMs() < this.#retryAtMs) return;
    if (this.#open && this.#last?.frame.jpeg.equals(jpeg)) return;
    await this.#roll(paintedMs);
    const atMs = this.#last
      ? Math.max(paintedMs, this.#open?.slice.startMs ?? this.#closedMs, this.#last.frame.atMs + 1)
      : Math.max(0, paintedMs - HELD_BACK_MAX_MS);
    if (this.#open && !sameSize(this.#open.size, size)) await this.#close(atMs);
    if (!this.#open) await this.#begin(atMs, size);
    await this.#append({ atMs, jpeg }, size);
  }

  async #append(frame: TimedFrame, size: Size): Promise<void> {
    if (!this.#open) return;
    await this.#open.writer.append(frame);
    this.#open.times.push(frame.atMs);
    this.#last = { frame, size };
    if (this.#lostSinceMs !== undefined) this.#listener.lost(this.#lostSinceMs, frame.atMs, 'the disk took nothing');
    this.#lostSinceMs = undefined;
  }

  /** The next slice stands before the one before it is told of, so that at every moment one is open. */
  async #roll(untilMs: number): Promise<void> {
    while (this.#open && untilMs >= this.#open.slice.startMs + SLICE_MS) {
      const full = this.#open;
      const endMs = full.slice.startMs + SLICE_MS;
      this.#open = undefined;
      try {
        await this.#hold(endMs);
      } finally {
        await this.#finish(full, endMs);
      }
    }
  }

  /** A slice that begins with the picture that is there. */
  async #hold(atMs: number): Promise<void> {
    if (!this.#last) return;
    const { frame, size } = this.#last;
    try {
      await this.#begin(atMs, size);
      await this.#append({ atMs, jpeg: frame.jpeg }, size);
    } catch (error) {
      await this.#abandon();
      throw error;
    }
  }

  /** Of a slice without a picture nothing is left; the next one is tried later. */
  async #abandon(): Promise<void> {
    this.#halted = 'broken';
    const empty = this.#open;
    this.#open = undefined;
    if (!empty) return;
    await empty.writer.close().catch(() => {});
    await this.folder.drop(empty.slice);
  }

  async #closeAt(atMs: number): Promise<void> {
    if (!this.#open) return;
    const endMs = Math.max(atMs, this.#open.slice.startMs, (this.#last?.frame.atMs ?? 0) + 1);
    await this.#roll(endMs - 1);
    await this.#close(endMs);
  }

  async #begin(startMs: number, size: Size): Promise<void> {
    const slice = { sequence: this.#next, startMs, endMs: undefined };
    const writer = await this.folder.begin(slice, size);
    this.#next++;
    this.#halted = undefined;
    this.#open = { slice, size, writer, times: [] };
  }

  async #close(endMs: number): Promise<void> {
    const full = this.#open;
    this.#open = undefined;
    if (full) await this.#finish(full, endMs);
  }

  async #finish({ slice, size, writer, times }: Open, endMs: number): Promise<void> {
    this.#closedMs = Math.max(this.#closedMs, endMs);
    await writer.close();
    if (times.length === 0 || endMs <= slice.startMs) return this.folder.drop(slice);
    this.#listener.sliced({ ...(await this.folder.end(slice, endMs)), times }, size);
  }

  /** A slice that another follows ends where that one begins; the last one goes on. */
  async #resume(): Promise<void> {
    const slices = await this.folder.slices();
    this.#next = (slices.at(-1)?.sequence ?? 0) + 1;
    for (const [index, slice] of slices.entries()) {
      const next = slices[index + 1];
      const { endMs } = slice;
      if (endMs !== undefined) await this.#tell({ ...slice, endMs });
      else if (next) await this.#tell(await this.folder.end(slice, next.startMs));
      else await this.#goOn(slice);
    }
  }

  async #tell(slice: Slice & { readonly endMs: number }): Promise<void> {
    const frames = await this.folder.frames(slice);
    const last = frames.at(-1);
    const size = last && jpegSize(last.jpeg);
    if (!last || !size) return this.folder.drop(slice);
    this.#last = { frame: last, size };
    this.#closedMs = slice.endMs;
    this.#listener.sliced({ ...slice, times: frames.map(({ atMs }) => atMs) }, size);
  }

  async #goOn(slice: Slice): Promise<void> {
    const resumed = await this.folder.resume(slice);
    const last = resumed?.frames.at(-1) ?? this.#last?.frame;
    const size = last && jpegSize(last.jpeg);
    if (!last || !size) return this.folder.drop(slice);
    this.#last = { frame: last, size };
    if (resumed) {
      this.#open = { slice, size, writer: resumed.writer, times: resumed.frames.map(({ atMs }) => atMs) };
      return;
    }
    this.#open = { slice, size, writer: await this.folder.begin(slice, size), times: [] };
    await this.#append({ atMs: slice.startMs, jpeg: last.jpeg }, size);
  }
}

const sameSize = (a: Size, b: Size): boolean => a.width === b.width && a.height === b.height;
