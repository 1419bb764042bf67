// One page being recorded: capture, journal and pipeline in a row, and the hub for whoever watches.
import type { Clock } from '../../kit/clock.ts';
import type { Log } from '../../kit/log.ts';
import { Capture, type CapturedFrame } from './capture.ts';
import type { TargetChannel } from './channel.ts';
import type { Ffmpeg } from './ffmpeg.ts';
import { Hub } from './hub.ts';
import { jpegSize } from './jpeg-size.ts';
import { PageFolder } from './page-folder.ts';
import { type JournalListener, PageJournal } from './page-journal.ts';
import type { Mask } from './page-mask.ts';
import { Pipeline, type Segment } from './pipeline.ts';

export interface RecordedPage {
  readonly session: string;
  readonly page: number;
}

/** Where recordings go; every call returns when what it was told is durable. */
export interface RecordingSink {
  began(page: RecordedPage, startedAt: Date): Promise<void>;
  keep(page: RecordedPage, segment: Segment): Promise<void>;
  span(page: RecordedPage, kind: 'hidden' | 'missing', fromMs: number, toMs: number, why?: string): Promise<void>;
  done(page: RecordedPage): Promise<void>;
}

export interface PageRecordingParts {
  readonly id: RecordedPage;
  readonly path: string;
  readonly ffmpeg: Ffmpeg;
  readonly sink: RecordingSink;
  readonly clock: Clock;
  readonly log: Log;
  /** Whether there is room for more of it on disk. */
  readonly hasRoom: () => boolean;
  /** All of which something is not stored yet. */
  readonly unstored: Set<PageRecording>;
}

export class PageRecording {
  readonly hub = new Hub();
  readonly #parts: PageRecordingParts;
  readonly #pipeline: Pipeline;
  #capture: Capture | undefined;
  #journal: PageJournal | undefined;
  #beginning: Promise<PageJournal> | undefined;
  #hiddenSinceMs: number | undefined;
  #ending = false;

  constructor(parts: PageRecordingParts) {
    this.#parts = parts;
    parts.unstored.add(this);
    const { id, sink, unstored } = parts;
    this.#pipeline = new Pipeline({
      ...parts,
      folder: new PageFolder(parts.path),
      sink: {
        keep: segment => sink.keep(id, segment),
        lose: (fromMs, toMs, why) => sink.span(id, 'missing', fromMs, toMs, why),
        done: async () => {
          await sink.done(id);
          unstored.delete(this);
        },
      },
    });
  }

  /** What a former process left of it; undefined when that is nothing. */
  static async resume(parts: PageRecordingParts): Promise<{ recording: PageRecording; targetId: string } | undefined> {
    const { path, clock, sink, id } = parts;
    const note = await new PageFolder(path).note();
    if (!note) return undefined;
    const recording = new PageRecording(parts);
    recording.#pipeline.do(() => sink.began(id, note.startedAt));
    recording.#journal = await PageJournal.resume(path, note, clock, recording.#listener);
    return { recording, targetId: note.targetId };
  }

  /** Whether frames may still come. */
  get isOpen(): boolean {
    return this.#journal?.isOpen ?? !this.#ending;
  }

  capture(channel: TargetChannel, mask: Mask): void {
    const { clock } = this.#parts;
    this.#capture = new Capture({
      channel,
      clock,
      isWatched: () => this.hub.viewers > 0,
      taken: frame => this.#taken(frame, channel, mask),
      visible: isVisible => this.#visible(isVisible),
    });
  }

  tick(): void {
    void this.#journal?.tick();
  }

  /** Nothing comes any more; resolves when the files say so. What is left to encode goes on. */
  async end(atMs?: number): Promise<void> {
    if (this.#ending) return;
    this.#ending = true;
    this.#capture?.close();
    const journal = await this.#journalIfAny();
    if (!journal) return void this.#parts.unstored.delete(this);
    const endMs = atMs ?? journal.nowMs;
    if (this.#hiddenSinceMs !== undefined) this.#note('hidden', this.#hiddenSinceMs, endMs);
    await journal.end(endMs);
    void this.#pipeline.finish();
  }

  /** The end of one that nobody captured: what time it was when it was last seen alive. */
  endAt(at: Date): Promise<void> {
    const startedMs = this.#journal?.note.startedAt.getTime() ?? at.getTime();
    return this.end(Math.max(0, at.getTime() - startedMs));
  }

  /** Stops taking; `end` may follow. */
  pause(): void {
    this.#capture?.close();
  }

  /** Lets go without ending it: the files are left as a killed process leaves them. */
  async leave(): Promise<void> {
    this.#capture?.close();
    await (await this.#journalIfAny())?.leave();
    await this.#pipeline.close();
  }

  get pausedAtMs(): number | undefined {
    return this.#journal?.nowMs;
  }

  async #journalIfAny(): Promise<PageJournal | undefined> {
    return this.#journal ?? (await this.#beginning?.catch(() => undefined));
  }

  /** False: it must not be kept as it is, and another is wanted. */
  async #taken(frame: CapturedFrame, channel: TargetChannel, mask: Mask): Promise<boolean> {
    const jpeg = await mask(frame);
    const size = jpeg && jpegSize(jpeg);
    if (!jpeg || !size) return false;
    if (this.#ending) return true;
    const shown = { ...frame, jpeg };
    this.hub.show({ jpeg, at: frame.at, ...size, metadata: frame.metadata });
    if (!this.#parts.hasRoom()) return true;
    const journal = await this.#begun(shown, channel.id);
    await journal?.take(shown);
    return true;
  }

  async #begun(first: CapturedFrame, targetId: string): Promise<PageJournal | undefined> {
    if (this.#journal) return this.#journal;
    const { path, clock, id, sink, log } = this.#parts;
    this.#beginning ??= PageJournal.begin(path, targetId, first, clock, this.#listener);
    try {
      this.#journal = await this.#beginning;
      this.#pipeline.do(() => sink.began(id, first.at));
      return this.#journal;
    } catch (error) {
      this.#beginning = undefined;
      log.warn('recording.not_begun', { ...id, error });
      return undefined;
    }
  }

  #visible(isVisible: boolean): void {
    const journal = this.#journal;
    if (!journal) return;
    if (!isVisible) this.#hiddenSinceMs ??= journal.nowMs;
    else if (this.#hiddenSinceMs !== undefined) {
      this.#note('hidden', this.#hiddenSinceMs, journal.nowMs);
      this.#hiddenSinceMs = undefined;
    }
  }

  #note(kind: 'hidden' | 'missing', fromMs: number, toMs: number, why?: string): void {
    const { id, sink } = this.#parts;
    this.#pipeline.do(() => sink.span(id, kind, Math.round(fromMs), Math.round(toMs), why));
  }

  readonly #listener: JournalListener = {
    sliced: (slice, size) => this.#pipeline.add(slice, size),
    lost: (fromMs, toMs, why) => this.#note('missing', fromMs, toMs, why),
  };
}
