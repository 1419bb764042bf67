// The recording of one page: capture, journal and pipeline, and the hub for viewers.

import type { Runtime } from '../../kit/runtime.ts';
import { Capture, type CapturedFrame, type FrameResult } from './capture.ts';
import type { TargetChannel } from './channel.ts';
import type { EncodeQueue } from './encode-queue.ts';
import { Hub } from './hub.ts';
import { FRAME_PIXELS_MAX, isTooLarge, jpegSize } from './jpeg-size.ts';
import { PageFolder } from './page-folder.ts';
import { type JournalListener, PageJournal } from './page-journal.ts';
import type { Mask } from './page-mask.ts';
import { Pipeline, type Segment } from './pipeline.ts';

export interface RecordedPage {
  readonly session: string;
  readonly page: number;
}

/** A period for which there are no frames of the page. */
export interface Span {
  readonly kind: 'hidden' | 'missing';
  readonly fromMs: number;
  readonly toMs?: number;
  readonly why?: string;
}

/** Where recordings are stored. Every call resolves when the data is durable. */
export interface RecordingSink {
  began(page: RecordedPage, startedAt: Date): Promise<void>;
  keep(page: RecordedPage, segment: Segment): Promise<void>;
  /**
   * Stores a period without frames. While the period lasts, `toMs` is absent. When the period is over, `span` is called
   * again with the same `fromMs`.
   */
  span(page: RecordedPage, span: Span): Promise<void>;
  /** Ends the periods that an earlier process stored without an end. */
  endSpans(page: RecordedPage, atMs: number): Promise<void>;
  done(page: RecordedPage): Promise<void>;
}

/** A page that paints nothing for longer than this after it appears has a gap in its recording. */
const UNPAINTED_MAX_MS = 1_000;

const TOO_LARGE_MESSAGE = `the picture has more than ${FRAME_PIXELS_MAX} pixels`;

/** The reason why the recording of a page pauses. */
export type PauseReason = 'disk_full' | 'backlog' | 'handoff';

export interface PageRecordingOptions extends Pick<Runtime, 'clock' | 'log'> {
  readonly id: RecordedPage;
  readonly path: string;
  readonly encodeQueue: EncodeQueue;
  /** Whether segments of the page may be held back and encoded together. */
  readonly mayHoldBack: () => boolean;
  /** Called when the page has ended. Resolves when the remaining segments should be encoded. */
  readonly whenDue: () => Promise<void>;
  readonly sink: RecordingSink;
  /** Returns why recording must pause. Undefined if recording may continue. */
  readonly reasonToPause: () => PauseReason | undefined;
  /** While true, all pictures are black. */
  readonly isCovered: () => boolean;
  /** Called with the change in the number of bytes that are waiting to be stored. */
  readonly onGrowth: (bytes: number) => void;
  /** All recordings with data that is not stored yet. */
  readonly unstoredRecordings: Set<PageRecording>;
}

/** When a page appeared. If its recording began later, `waitReason` is the reason. */
export interface Appearance {
  readonly at: Date;
  readonly waitReason?: 'too_many_at_once';
}

export class PageRecording {
  readonly hub = new Hub(() => this.#capture?.onViewersChanged());
  readonly #options: PageRecordingOptions;
  readonly #folder: PageFolder;
  readonly #pipeline: Pipeline;
  readonly #appearance: Appearance;
  /** When the page appeared, by the server's monotonic clock. */
  readonly #appearedMs: number;
  #capture: Capture | undefined;
  #journal: PageJournal | undefined;
  #journalStart: Promise<PageJournal> | undefined;
  #currentSpan: Span | undefined;
  #pauseReason: PauseReason | undefined;
  /** Why there is no frame for the time before the first frame. */
  #initialGap: { readonly kind: 'hidden' | 'missing'; readonly why: string } | undefined;
  #isVisible = true;
  #hasEnded = false;
  readonly #whenSettled = Promise.withResolvers<void>();

  constructor(options: PageRecordingOptions, appearance: Appearance) {
    this.#options = options;
    this.#appearance = appearance;
    const { id, sink, unstoredRecordings, clock } = options;
    this.#appearedMs = clock.monotonicMs() - Math.max(0, clock.now().getTime() - appearance.at.getTime());
    unstoredRecordings.add(this);
    this.#folder = new PageFolder(options.path, options.onGrowth);
    this.#pipeline = new Pipeline({
      ...options,
      session: id.session,
      folder: this.#folder,
      sink: {
        keep: segment => sink.keep(id, segment),
        reportGap: (fromMs, toMs, why) => sink.span(id, { kind: 'missing', fromMs, toMs, why }),
        done: async () => {
          await sink.done(id);
          unstoredRecordings.delete(this);
        },
      },
    });
  }

  /**
   * Resumes recording from the files that an earlier process left behind. Returns undefined if there is nothing to
   * resume. If the returned promise rejects, the function can be called again.
   */
  static async resume(
    options: PageRecordingOptions,
    lastAliveAt: Date,
  ): Promise<{ recording: PageRecording; targetId: string } | undefined> {
    const { path, clock, sink, id } = options;
    const description = await new PageFolder(path).readDescription();
    if (!description) return undefined;
    const recording = new PageRecording(options, { at: description.startedAt });
    recording.#pipeline.runInOrder(() => sink.began(id, description.startedAt));
    const journal = await PageJournal.resume(recording.#folder, description, clock, recording.#listener).catch(
      async error => {
        await recording.#giveUp();
        throw error;
      },
    );
    recording.#journal = journal;
    const gapStartMs = Math.max(journal.lastFrameMs, lastAliveAt.getTime() - description.startedAt.getTime());
    recording.#pipeline.runInOrder(() => sink.endSpans(id, gapStartMs));
    return { recording, targetId: description.targetId };
  }

  /** Reports the time since `at` as a gap, because the page is still open but was not observed. */
  reportGapSince(at: Date): void {
    const journal = this.#journal;
    if (!journal?.isOpen) return;
    const gapStartMs = Math.max(journal.lastFrameMs, at.getTime() - journal.description.startedAt.getTime());
    this.#openSpan('missing', gapStartMs, 'the service was down');
  }

  capture(channel: TargetChannel, mask: Mask): void {
    const { clock } = this.#options;
    this.#capture = new Capture({
      channel,
      clock,
      isUnpainted: channel.url === '' || channel.url === 'about:blank',
      isWatched: () => this.hub.viewerCount > 0,
      onFrame: frame => this.#handleFrame(frame, channel, mask),
      onVisibility: isVisible => this.#setVisible(isVisible),
    });
  }

  tick(): void {
    const why = this.#options.reasonToPause();
    if (why) this.#pause(why);
    else if (this.#pauseReason) this.#unpause();
    void this.#journal?.tick();
  }

  /** Captures a new frame. Resolves when the frames that had arrived before have been handled. */
  async captureNewFrame(): Promise<void> {
    this.#capture?.refresh();
    await this.#capture?.whenHandled();
  }

  refresh(): void {
    this.#capture?.refresh();
  }

  get id(): RecordedPage {
    return this.#options.id;
  }

  /** Whether segments that are held back must be encoded now. */
  get isDue(): boolean {
    return this.#pipeline.isDue;
  }

  /** Encodes the segments that were held back. Resolves when they are stored. */
  storeHeldSegments(): Promise<void> {
    return this.#pipeline.releaseAndStore();
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** Resolves when everything is stored, or when nothing more will be stored. */
  get settled(): Promise<void> {
    return this.#whenSettled.promise;
  }

  /**
   * Call after the last frame. Resolves when the files contain the end of the recording. The remaining segments are
   * encoded later.
   */
  async end(atMs?: number): Promise<void> {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#capture?.close();
    const journal = await this.#journalIfAny();
    if (!journal) {
      this.#options.unstoredRecordings.delete(this);
      return this.#whenSettled.resolve();
    }
    const endMs = atMs ?? journal.nowMs;
    this.#closeSpan(endMs);
    await journal.end(endMs);
    this.hub.clear();
    void this.#pipeline.finish(this.#options.whenDue()).then(this.#whenSettled.resolve);
  }

  /**
   * Ends a recording that has no capture. `at` is the last time at which the process that recorded the page was alive.
   */
  endAt(at: Date): Promise<void> {
    const startedMs = this.#journal?.description.startedAt.getTime() ?? at.getTime();
    return this.end(Math.max(0, at.getTime() - startedMs));
  }

  /** Stops the capture. The recording stays open until `end` or `leave`. */
  pause(): void {
    this.#capture?.close();
  }

  /**
   * Closes without ending the recording. The files are left in the state in which a killed process would leave them.
   */
  async leave(): Promise<void> {
    this.#capture?.close();
    await (await this.#journalIfAny())?.leave();
    await this.#pipeline.close();
    this.#whenSettled.resolve();
  }

  /**
   * Gives up a recording that could not be resumed. Nothing refers to the recording afterward, and its files are kept.
   */
  async #giveUp(): Promise<void> {
    await this.leave();
    this.#folder.uncount();
    this.#options.unstoredRecordings.delete(this);
  }

  async #journalIfAny(): Promise<PageJournal | undefined> {
    return this.#journal ?? (await this.#journalStart?.catch(() => undefined));
  }

  async #handleFrame(frame: CapturedFrame, channel: TargetChannel, mask: Mask): Promise<FrameResult> {
    const originalSize = jpegSize(frame.jpeg);
    if (originalSize && isTooLarge(originalSize)) return this.#rejectTooLarge();
    const isCovered = this.#options.isCovered();
    const maskedFrame = await mask(frame);
    const size = maskedFrame && jpegSize(maskedFrame.jpeg);
    if (!maskedFrame || !size) return 'rejected';
    const { jpeg, isOvermasked } = maskedFrame;
    const frameResult = isOvermasked ? 'overmasked' : 'kept';
    if (this.#hasEnded) return frameResult;
    const shownFrame = { ...frame, jpeg };
    this.hub.show({ jpeg, unmasked: frame.jpeg, at: frame.at, isCovered, ...size, metadata: frame.metadata });
    const why = this.#options.reasonToPause();
    if (why) this.#pause(why);
    if (this.#pauseReason) return frameResult;
    const journal = await this.#beginJournal(shownFrame, channel.id);
    if (journal && this.#currentSpan?.kind === 'missing') this.#closeSpan(frame.browserMs - journal.description.baseMs);
    await journal?.take(shownFrame);
    return frameResult;
  }

  /**
   * Handles a frame that is too large. Such a frame is not decoded and therefore cannot be masked. Until a smaller
   * frame arrives, the recording has a gap.
   */
  #rejectTooLarge(): FrameResult {
    const { id, log } = this.#options;
    if (this.#hasEnded || this.#pauseReason) return 'kept';
    if (this.#currentSpan?.why === TOO_LARGE_MESSAGE || this.#initialGap?.why === TOO_LARGE_MESSAGE) return 'kept';
    log.warn('recording.picture_too_large', { ...id });
    if (this.#journal) this.#openSpan('missing', this.#journal.nowMs, TOO_LARGE_MESSAGE);
    else this.#initialGap ??= { kind: 'missing', why: TOO_LARGE_MESSAGE };
    return 'kept';
  }

  async #beginJournal(first: CapturedFrame, targetId: string): Promise<PageJournal | undefined> {
    if (this.#journal) return this.#journal;
    const { clock, id, sink, log } = this.#options;
    const leadMs = this.#leadOf(first);
    this.#journalStart ??= PageJournal.begin(this.#folder, targetId, { first, leadMs }, clock, this.#listener);
    try {
      const journal = await this.#journalStart;
      this.#journal = journal;
      this.#pipeline.runInOrder(() => sink.began(id, journal.description.startedAt));
      this.#reportInitialGap(leadMs);
      return journal;
    } catch (error) {
      this.#journalStart = undefined;
      log.warn('recording.not_begun', { ...id, error });
      return undefined;
    }
  }

  /**
   * How long the page had existed when its first frame was painted. Uses the wall clock if it agrees with the server's
   * monotonic clock, otherwise the monotonic clock.
   */
  #leadOf({ at }: CapturedFrame): number {
    const ageMs = this.#options.clock.monotonicMs() - this.#appearedMs;
    const paintDelayMs = at.getTime() - this.#appearance.at.getTime();
    return Math.round(paintDelayMs >= 0 && paintDelayMs <= ageMs ? paintDelayMs : ageMs);
  }

  /**
   * The first frame is also shown for the time before it was painted. If it was painted late, that time is reported as
   * a gap.
   */
  #reportInitialGap(leadMs: number): void {
    const { waitReason } = this.#appearance;
    const lateGap = { kind: 'missing', why: waitReason ?? 'the page had not been painted yet' } as const;
    if (waitReason || this.#initialGap || leadMs >= UNPAINTED_MAX_MS)
      this.#storeSpan({ ...(waitReason ? lateGap : (this.#initialGap ?? lateGap)), fromMs: 0, toMs: leadMs });
  }

  #setVisible(isVisible: boolean): void {
    this.#isVisible = isVisible;
    if (this.#hasEnded) return;
    if (isVisible) {
      if (this.#journal && this.#currentSpan?.kind === 'hidden') this.#closeSpan(this.#journal.nowMs);
    } else if (!this.#journal) this.#initialGap ??= { kind: 'hidden', why: 'another tab was in front' };
    else if (this.#currentSpan?.kind !== 'hidden' && !this.#pauseReason) this.#openSpan('hidden', this.#journal.nowMs);
  }

  #pause(why: PauseReason): void {
    if (this.#pauseReason || this.#hasEnded) return;
    this.#pauseReason = why;
    if (!this.#journal) {
      this.#initialGap ??= { kind: 'missing', why };
      return;
    }
    this.#openSpan('missing', this.#journal.nowMs, why);
    void this.#journal.pause();
  }

  /** Called when the reason for the pause no longer applies. Captures the page even if it has not changed. */
  #unpause(): void {
    this.#pauseReason = undefined;
    if (!this.#isVisible && this.#journal) {
      this.#openSpan('hidden', this.#journal.nowMs);
      void this.#journal.unpause();
    } else this.#capture?.refresh();
  }

  /** Begins a period without frames, and ends the current one, if any. */
  #openSpan(kind: 'hidden' | 'missing', fromMs: number, why?: string): void {
    this.#closeSpan(fromMs);
    this.#currentSpan = { kind, fromMs: Math.round(fromMs), ...(why ? { why } : {}) };
    this.#storeSpan(this.#currentSpan);
  }

  #closeSpan(atMs: number): void {
    if (!this.#currentSpan) return;
    const span = this.#currentSpan;
    this.#currentSpan = undefined;
    this.#storeSpan({ ...span, toMs: Math.max(Math.round(atMs), span.fromMs + 1) });
  }

  #storeSpan(span: Span): void {
    const { id, sink } = this.#options;
    this.#pipeline.runInOrder(() => sink.span(id, span));
  }

  readonly #listener: JournalListener = {
    segmentComplete: (segment, size) => this.#pipeline.add(segment, size),
    lost: (fromMs, toMs, why) =>
      this.#storeSpan({ kind: 'missing', fromMs: Math.round(fromMs), toMs: Math.round(toMs), why }),
  };
}
