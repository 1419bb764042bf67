// The timeline of one page while it is recorded: takes frames and closes raw segments of six seconds. While the page
// does not change, its last frame begins the next segment.
import type { Clock } from '../../kit/clock.ts';
import type { CapturedFrame } from './capture.ts';
import { jpegSize } from './jpeg-size.ts';
import type { Size, TimedFrame } from './matroska.ts';
import type { CompleteRawSegment, PageDescription, PageFolder, RawSegment, SegmentWriter } from './page-folder.ts';

/** Length of a full segment. Encoding and playlists use this number. */
export const SEGMENT_MS = 6_000;
/** A frame may arrive this long after it was painted. Segments are not closed earlier. */
const LATENESS_MAX_MS = 300;
/**
 * If a frame seems to arrive later than this, its time is assumed to come from a wall clock that differs from the
 * server's.
 */
const CLOCK_SKEW_MAX_MS = 10_000;
/** Delay before writing is tried again after a write has failed. */
const RETRY_DELAY_MS = 2_000;
/** The first frame is also shown for the time before it was painted, but for at most this long. */
const LEAD_MAX_MS = 60_000;

export interface JournalListener {
  /** Called for each segment, in order, when the segment is complete on disk. */
  segmentComplete(segment: CompleteRawSegment, size: Size): void;
  /** Called when the frames between these two times could not be written. `why` is the reason. */
  lost(fromMs: number, toMs: number, why: string): void;
}

interface OpenSegment {
  readonly segment: RawSegment;
  readonly size: Size;
  readonly writer: SegmentWriter;
  readonly times: number[];
}

export class PageJournal {
  readonly folder: PageFolder;
  readonly description: PageDescription;
  readonly #clock: Clock;
  readonly #listener: JournalListener;
  #openSegment: OpenSegment | undefined;
  #lastFrame: { readonly frame: TimedFrame; readonly size: Size } | undefined;
  #nextSequence = 1;
  /**
   * How far the clock of the browser is ahead of the server's clock. Undefined before the first frame of this process.
   */
  #aheadMs: number | undefined;
  /** The smallest possible value of `#aheadMs`. It is known because no frame arrives before it was painted. */
  #aheadMinMs = Number.NEGATIVE_INFINITY;
  #lostSinceMs: number | undefined;
  #retryAtMs = 0;
  /** The end of the segment that was closed last, in milliseconds since the beginning of the recording. */
  #closedMs = 0;
  /** Why no segment is open although the page exists: recording is paused, or a write failed. */
  #haltReason: 'paused' | 'broken' | undefined;
  #queuedSteps: Promise<void> = Promise.resolve();
  #hasEnded = false;

  private constructor(folder: PageFolder, description: PageDescription, clock: Clock, listener: JournalListener) {
    this.folder = folder;
    this.description = description;
    this.#clock = clock;
    this.#listener = listener;
  }

  /** `leadMs`: how long the page had existed when its first frame was painted. */
  static async begin(
    folder: PageFolder,
    targetId: string,
    { first, leadMs }: { readonly first: CapturedFrame; readonly leadMs: number },
    clock: Clock,
    listener: JournalListener,
  ): Promise<PageJournal> {
    const startedAt = new Date(first.at.getTime() - leadMs);
    const description = { targetId, startedAt, baseMs: first.browserMs - leadMs };
    await folder.make(description);
    return new PageJournal(folder, description, clock, listener);
  }

  /**
   * Resumes the recording that an earlier process left unfinished: reports its complete segments and continues the open
   * segment.
   */
  static async resume(
    folder: PageFolder,
    description: PageDescription,
    clock: Clock,
    listener: JournalListener,
  ): Promise<PageJournal> {
    const journal = new PageJournal(folder, description, clock, listener);
    try {
      await journal.#resume();
    } catch (error) {
      await journal.leave();
      throw error;
    }
    return journal;
  }

  /** Milliseconds since the beginning of the recording. */
  get nowMs(): number {
    if (this.#aheadMs === undefined) return this.#clock.now().getTime() - this.description.startedAt.getTime();
    return Math.round(this.#clock.monotonicMs() + this.#aheadMs - this.description.baseMs);
  }

  /** Whether a segment is open: the page is being recorded, or was being recorded when an earlier process died. */
  get isOpen(): boolean {
    return this.#openSegment !== undefined && !this.#hasEnded;
  }

  /** When the newest frame was painted, in milliseconds since the beginning of the recording. */
  get lastFrameMs(): number {
    return this.#lastFrame?.frame.atMs ?? 0;
  }

  take(frame: CapturedFrame): Promise<void> {
    const browserMs = Math.min(frame.browserMs, this.#latestMs);
    this.#compareClocks({ browserMs, at: frame.at });
    return this.#inTurn(() => this.#addFrame(Math.round(browserMs - this.description.baseMs), frame.jpeg));
  }

  /**
   * The latest time, by the clock of the browser, at which a frame can have been painted. Later times of frames are
   * clamped to it. Otherwise, a browser that an attacker controls could fill the disk with one frame, because all
   * segments up to the time of a frame are written. The frame itself is kept: if the first frame arrived very late, the
   * times of correct frames also seem to be in the future.
   */
  get #latestMs(): number {
    if (this.#aheadMs === undefined && !this.#lastFrame) return Number.POSITIVE_INFINITY;
    return this.description.baseMs + this.nowMs + CLOCK_SKEW_MAX_MS;
  }

  /**
   * Updates the difference between the clocks. If a page does not change, its only frame may arrive seconds late. The
   * wall clock then shows how late it is.
   */
  #compareClocks({ browserMs, at }: Pick<CapturedFrame, 'browserMs' | 'at'>): void {
    const minAheadMs = browserMs - this.#clock.monotonicMs();
    const delayMs = this.#clock.now().getTime() - at.getTime();
    const isDelayPlausible = delayMs >= 0 && delayMs <= CLOCK_SKEW_MAX_MS;
    this.#aheadMinMs = Math.max(this.#aheadMinMs, minAheadMs);
    this.#aheadMs = Math.max(this.#aheadMinMs, isDelayPlausible ? minAheadMs + delayMs : minAheadMs);
  }

  /** Closes segments that are six seconds long, even if nothing has changed. */
  tick(): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#hasEnded || this.#clock.monotonicMs() < this.#retryAtMs) return;
      if (this.#openSegment) await this.#closeFullSegments(this.nowMs - LATENESS_MAX_MS);
      else if (this.#haltReason === 'broken') await this.#beginWithLastFrame(this.nowMs);
    });
  }

  /** Closes the open segment. Until recording continues, the recording has a gap. */
  pause(): Promise<void> {
    return this.#inTurn(async () => {
      await this.#closeAt(this.nowMs);
      this.#haltReason = 'paused';
    });
  }

  /** Continues after a pause, beginning with the last frame. */
  unpause(): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#haltReason && !this.#hasEnded) await this.#beginWithLastFrame(this.nowMs);
    });
  }

  /** Call after the last frame. The last frame is shown until `atMs`. */
  end(atMs = this.nowMs): Promise<void> {
    return this.#inTurn(async () => {
      this.#hasEnded = true;
      // After a gap the last frame is written once more, so that the recording ends when the page ended.
      if (this.#haltReason) await this.#beginWithLastFrame(Math.max(this.#closedMs, atMs - SEGMENT_MS));
      await this.#closeAt(atMs);
      this.#lastFrame = undefined; // The frame is on disk now.
    });
  }

  /** Leaves the files as they are, for the next process. */
  leave(): Promise<void> {
    return this.#inTurn(async () => {
      this.#hasEnded = true;
      await this.#openSegment?.writer.close();
      this.#openSegment = undefined;
    });
  }

  #inTurn(step: () => Promise<void>): Promise<void> {
    const stepPromise = this.#queuedSteps.then(() => this.#runStep(step));
    this.#queuedSteps = stepPromise;
    return stepPromise;
  }

  /** Runs a step. If a write fails, frames are lost, but the session does not end. */
  async #runStep(step: () => Promise<void>): Promise<void> {
    try {
      await step();
    } catch (error) {
      this.#lostSinceMs ??= this.#lastFrame?.frame.atMs ?? 0;
      this.#retryAtMs = this.#clock.monotonicMs() + RETRY_DELAY_MS;
      this.#listener.lost(this.#lostSinceMs, this.nowMs, error instanceof Error ? error.message : String(error));
    }
  }

  async #addFrame(paintedMs: number, jpeg: Buffer): Promise<void> {
    const size = jpegSize(jpeg);
    if (!size || this.#hasEnded || this.#clock.monotonicMs() < this.#retryAtMs) return;
    if (this.#openSegment && this.#lastFrame?.frame.jpeg.equals(jpeg)) return;
    await this.#closeFullSegments(paintedMs);
    const atMs = this.#lastFrame
      ? Math.max(paintedMs, this.#openSegment?.segment.startMs ?? this.#closedMs, this.#lastFrame.frame.atMs + 1)
      : Math.max(0, paintedMs - LEAD_MAX_MS);
    if (this.#openSegment && !isSameSize(this.#openSegment.size, size)) await this.#close(atMs);
    if (!this.#openSegment) await this.#begin(atMs, size);
    await this.#append({ atMs, jpeg }, size);
  }

  async #append(frame: TimedFrame, size: Size): Promise<void> {
    if (!this.#openSegment) return;
    await this.#openSegment.writer.append(frame);
    this.#openSegment.times.push(frame.atMs);
    this.#lastFrame = { frame, size };
    if (this.#lostSinceMs !== undefined)
      this.#listener.lost(this.#lostSinceMs, frame.atMs, 'the frames could not be written to disk');
    this.#lostSinceMs = undefined;
  }

  /**
   * Closes full segments. The next segment is opened before the full one is reported, so there is always an open
   * segment.
   */
  async #closeFullSegments(untilMs: number): Promise<void> {
    while (this.#openSegment && untilMs >= this.#openSegment.segment.startMs + SEGMENT_MS) {
      const fullSegment = this.#openSegment;
      const endMs = fullSegment.segment.startMs + SEGMENT_MS;
      this.#openSegment = undefined;
      try {
        await this.#beginWithLastFrame(endMs);
      } finally {
        await this.#finish(fullSegment, endMs);
      }
    }
  }

  /** Opens a segment that begins with the last frame. */
  async #beginWithLastFrame(atMs: number): Promise<void> {
    if (!this.#lastFrame) return;
    const { frame, size } = this.#lastFrame;
    try {
      await this.#begin(atMs, size);
      await this.#append({ atMs, jpeg: frame.jpeg }, size);
    } catch (error) {
      await this.#abandon();
      throw error;
    }
  }

  /** Deletes the open segment, which has no frame yet. A later frame opens a new segment. */
  async #abandon(): Promise<void> {
    this.#haltReason = 'broken';
    const emptySegment = this.#openSegment;
    this.#openSegment = undefined;
    if (!emptySegment) return;
    await emptySegment.writer.close().catch(() => {});
    await this.folder.drop(emptySegment.segment);
  }

  async #closeAt(atMs: number): Promise<void> {
    if (!this.#openSegment) return;
    const endMs = Math.max(atMs, this.#openSegment.segment.startMs, (this.#lastFrame?.frame.atMs ?? 0) + 1);
    await this.#closeFullSegments(endMs - 1);
    await this.#close(endMs);
  }

  async #begin(startMs: number, size: Size): Promise<void> {
    const segment = { sequence: this.#nextSequence, startMs, endMs: undefined };
    const writer = await this.folder.begin(segment, size);
    this.#nextSequence++;
    this.#haltReason = undefined;
    this.#openSegment = { segment, size, writer, times: [] };
  }

  async #close(endMs: number): Promise<void> {
    const segmentToClose = this.#openSegment;
    this.#openSegment = undefined;
    if (segmentToClose) await this.#finish(segmentToClose, endMs);
  }

  async #finish({ segment, size, writer, times }: OpenSegment, endMs: number): Promise<void> {
    this.#closedMs = Math.max(this.#closedMs, endMs);
    await writer.close();
    if (times.length === 0 || endMs <= segment.startMs) return this.folder.drop(segment);
    this.#listener.segmentComplete({ ...(await this.folder.end(segment, endMs)), times }, size);
  }

  /**
   * Resumes the segments of an earlier process. An unfinished segment ends where the next segment begins. If it is the
   * last segment, it is continued.
   */
  async #resume(): Promise<void> {
    const segments = await this.folder.segments();
    this.#nextSequence = (segments.at(-1)?.sequence ?? 0) + 1;
    for (const [index, segment] of segments.entries()) {
      const nextSegment = segments[index + 1];
      const { endMs } = segment;
      if (endMs !== undefined) await this.#report({ ...segment, endMs });
      else if (nextSegment) await this.#report(await this.folder.end(segment, nextSegment.startMs));
      else await this.#continueSegment(segment);
    }
  }

  async #report(segment: RawSegment & { readonly endMs: number }): Promise<void> {
    const frames = await this.folder.frames(segment);
    const finalFrame = frames.at(-1);
    const size = finalFrame && jpegSize(finalFrame.jpeg);
    if (!finalFrame || !size) return this.folder.drop(segment);
    this.#lastFrame = { frame: finalFrame, size };
    this.#closedMs = segment.endMs;
    this.#listener.segmentComplete({ ...segment, times: frames.map(({ atMs }) => atMs) }, size);
  }

  async #continueSegment(segment: RawSegment): Promise<void> {
    const resumedSegment = await this.folder.resume(segment);
    const last = resumedSegment?.frames.at(-1) ?? this.#lastFrame?.frame;
    const size = last && jpegSize(last.jpeg);
    if (!last || !size) {
      await resumedSegment?.writer.close();
      return this.folder.drop(segment);
    }
    this.#lastFrame = { frame: last, size };
    if (resumedSegment) {
      this.#openSegment = {
        segment,
        size,
        writer: resumedSegment.writer,
        times: resumedSegment.frames.map(({ atMs }) => atMs),
      };
      return;
    }
    this.#openSegment = { segment, size, writer: await this.folder.begin(segment, size), times: [] };
    await this.#append({ atMs: segment.startMs, jpeg: last.jpeg }, size);
  }
}

const isSameSize = (a: Size, b: Size): boolean => a.width === b.width && a.height === b.height;
