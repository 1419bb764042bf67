// The screencast of one page, paced: a frame is taken when the page has changed, at most so many a second. A page that
// never rests is looked at in pulses instead, because a screencast that runs copies every painted frame (measured).

import type { Clock } from '../../kit/clock.ts';
import { isObject, type JsonObject } from '../../kit/json.ts';
import type { Closeable } from '../../kit/scope.ts';
import { numberAt, type TargetChannel } from './channel.ts';
import type { FrameMetadata } from './hub.ts';

const RECORDED_FPS = 5;
const WATCHED_FPS = 15;
/** Of a page that never rests: who looks at what it did needs no more, and every pulse costs. */
const PULSED_FPS = 2.5;
const SCREENCAST: JsonObject = { format: 'jpeg', quality: 70 };
/** Frames that Chromium sends before it waits for a permission. Where nobody looks one, which costs least. */
const IN_FLIGHT = 1;
/**
 * Where somebody looks: what follows a change closely is shown too, without a new start of the screencast, of which each
 * costs a frame (on a busy machine one followed another, and a change between two of them was 300 ms late).
 */
const IN_FLIGHT_WATCHED = 3;
/** A frame that follows its permission within this counts as motion, on a machine of any load: pulses show what is true. */
const MOTION_MS = 1_000;
/** A page that changed while it was not to show a frame, and then rests, is looked at once more after this. */
const SETTLE_MS = 150;
/** The same where somebody looks. */
const SETTLE_WATCHED_MS = 50;
/** Where a screencast could not be started, it is tried again after this, and each time after twice as long. */
const RESTART_MIN_MS = 100;
const RESTART_MAX_MS = 2_000;
/** Faster than a page can show two changes. */
const AT_ONCE_MS = 12;
/** So many moving frames in a row, and pulses are tried; each try that meets a page at rest doubles it. */
const STREAK_MIN = 4;
const STREAK_MAX = 256;
/** So many pulses that all showed something new, and the next try comes as early as the first did. */
const PULSES_PROVEN = 5;

export interface CapturedFrame {
  readonly jpeg: Buffer;
  /** Of the machine's monotonic clock, as the browser reads it. */
  readonly browserMs: number;
  /** The same moment by the calendar. */
  readonly at: Date;
  readonly metadata: FrameMetadata;
  /** The frame so many before it was done with when this one was painted; those between may not have been. */
  readonly ahead: number;
}

/** `wrong`: it must not be kept. `wide`: more of it is black than need be. The page must be looked at again, changed or not. */
export type Taken = 'kept' | 'wide' | 'wrong';

export interface CaptureParts {
  readonly channel: TargetChannel;
  readonly clock: Clock;
  readonly isWatched: () => boolean;
  /** A frame is followed by others only so far as it is done with. */
  readonly taken: (frame: CapturedFrame) => Promise<Taken>;
  readonly visible: (isVisible: boolean) => void;
}

export class Capture implements Closeable {
  readonly #parts: CaptureParts;
  readonly #closing = new AbortController();
  readonly #listening: Closeable;
  #pulsing = false;
  #running = false;
  #streak = 0;
  #streakNeeded = STREAK_MIN;
  #pulses = 0;
  #last: Buffer | undefined;
  #frames = 0;
  #inFlight = IN_FLIGHT;
  /** Frames are done with in their order. */
  #taking: Promise<unknown> = Promise.resolve();
  #begunWith = 0;
  #doneWith = 0;
  /** Chromium numbers the starts of a screencast; frames of those before the present one are of no use. */
  #runSeen = -1;
  #runOver = -1;
  /** Nothing has come since the last start. */
  #isUnseen = false;
  #doneAtStart = 0;
  /** When the last frames of this start were allowed to be followed by others, the newest last. */
  #allowed: Array<{ readonly atMs: number; readonly done: number }> = [];
  #dueMs = Number.NEGATIVE_INFINITY;
  /** When the page was navigated last. */
  #framesBefore: number | undefined;
  #starts = 0;
  #restartMs = RESTART_MIN_MS;
  #frameMs = Number.NEGATIVE_INFINITY;
  #allowedMs = Number.NEGATIVE_INFINITY;
  /** From painted to here, by two clocks of which only changes can be compared: the least so far. */
  #leastDelayMs = Number.POSITIVE_INFINITY;

  constructor(parts: CaptureParts) {
    this.#parts = parts;
    this.#listening = parts.channel.on((method, params, picture) => {
      if (method === 'Page.screencastFrame') void this.#frame(params, picture);
      else if (method === 'Page.screencastVisibilityChanged') parts.visible(params.visible === true);
      else if (method === 'Page.frameNavigated') this.#navigated(params);
      else if (method === 'Page.loadEventFired') void this.#loaded();
    });
    this.#start();
  }

  close(): void {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort(new Error('the capture is closed'));
    void this.#listening.close();
    if (!this.#parts.channel.isGone) this.#parts.channel.post('Page.stopScreencast');
  }

  /** Somebody came to look, or nobody looks any more. */
  watchedOrNot(): void {
    if (this.#closing.signal.aborted || this.#inFlight === this.#inFlightWanted) return;
    if (this.#running) this.#stop();
    this.#start();
  }

  /** Shows a frame also of a page that has not changed. */
  again(): void {
    if (this.#closing.signal.aborted) return;
    this.#last = undefined;
    if (!this.#running) return; // Between two pulses: the next one shows a frame.
    this.#stop();
    this.#start();
  }

  #start(): void {
    this.#running = true;
    this.#allowedMs = this.#parts.clock.monotonicMs();
    this.#allowed = [];
    if (!this.#isUnseen) this.#doneAtStart = this.#doneWith;
    this.#isUnseen = true;
    this.#inFlight = this.#inFlightWanted;
    const start = ++this.#starts;
    const asked = { ...SCREENCAST, maxFramesInFlight: this.#inFlight };
    this.#parts.channel.send('Page.startScreencast', asked).catch(() => this.#startLater(start));
  }

  /** While a page is made, or replaced by another, Chromium refuses: there is nothing to capture (measured). */
  async #startLater(start: number): Promise<void> {
    await this.#sleep(this.#restartMs);
    this.#restartMs = Math.min(this.#restartMs * 2, RESTART_MAX_MS);
    const isOver = this.#closing.signal.aborted || this.#parts.channel.isGone;
    if (!isOver && start === this.#starts && this.#running) this.#start();
  }

  #navigated({ frame }: JsonObject): void {
    if (isObject(frame) && frame.parentId === undefined) this.#framesBefore = this.#frames;
  }

  /** A page that is there and has not shown itself since it came is looked at; told of where masks or logs listen. */
  async #loaded(): Promise<void> {
    if (this.#framesBefore === this.#frames) await this.#settle();
  }

  async #frame(params: JsonObject, picture: Buffer | undefined): Promise<void> {
    const run = numberAt(params, 'sessionId');
    if (run <= this.#runOver) return;
    if (run > this.#runSeen) this.#allowed = [];
    const frame = readFrame(params, picture, this.#ahead);
    if (!frame || this.#closing.signal.aborted) return;
    this.#runSeen = run;
    this.#isUnseen = false;
    const isNew = !this.#last?.equals(frame.jpeg);
    const start = this.#starts;
    this.#frames++;
    this.#restartMs = RESTART_MIN_MS;
    const paintedMs = this.#arrived(frame);
    this.#judge(isNew);
    if (this.#pulsing && this.#running) this.#stop();
    this.#last = frame.jpeg;
    const dueMs = this.#dueMs;
    const taken = isNew ? await this.#taken(frame) : 'kept';
    if (taken === 'wrong') this.#lookAgain();
    await this.#sleep((this.#running ? dueMs : this.#frameMs + this.#periodMs) - this.#parts.clock.monotonicMs());
    if (this.#closing.signal.aborted) return;
    if (!this.#running) return this.#start();
    if (start !== this.#starts) return;
    const unheardMs = this.#allow(run) - paintedMs;
    if (taken === 'wide' || unheardMs > AT_ONCE_MS)
      await this.#settle(isNew && this.#isWatched ? SETTLE_WATCHED_MS : SETTLE_MS, taken === 'wide');
  }

  async #taken(frame: CapturedFrame): Promise<Taken> {
    this.#begunWith++;
    // What went wrong its owner has said.
    const done = this.#taking.then(() => this.#parts.taken(frame)).catch((): Taken => 'kept');
    this.#taking = done;
    const taken = await done;
    this.#doneWith++;
    return taken;
  }

  /** When a frame that comes now was painted, so many that came before it were done with at the least. */
  get #ahead(): number {
    const done = this.#allowed.at(-this.#inFlight)?.done ?? this.#doneAtStart;
    return this.#begunWith - done + 1;
  }

  /** When it was painted, by our clock; and from when on the next one may be sent. */
  #arrived(frame: CapturedFrame): number {
    const beforeMs = this.#frameMs;
    this.#frameMs = this.#parts.clock.monotonicMs();
    // Watched: so many a second, and after a rest some at once.
    this.#dueMs = this.#isWatched ? Math.max(this.#frameMs, this.#dueMs + this.#periodMs) : beforeMs + this.#periodMs;
    return this.#frameMs - this.#lateMs(frame);
  }

  /** How long the frame was on its way, beyond the usual; of the first one that is not known, and it may be long. */
  #lateMs({ browserMs }: CapturedFrame): number {
    const delayMs = this.#frameMs - browserMs;
    const isFirst = this.#leastDelayMs === Number.POSITIVE_INFINITY;
    this.#leastDelayMs = Math.min(this.#leastDelayMs, delayMs);
    return isFirst ? SETTLE_MS : delayMs - this.#leastDelayMs;
  }

  /** What changed before the next frame was allowed is told only with the next change: a new start shows it now. */
  async #settle(afterMs = SETTLE_MS, anyhow = false): Promise<void> {
    const frames = this.#frames;
    await this.#sleep(afterMs);
    if (this.#closing.signal.aborted || frames !== this.#frames || !this.#running) return;
    if (anyhow) this.#last = undefined;
    this.#stop();
    this.#start();
  }

  #stop(): void {
    this.#running = false;
    this.#runOver = this.#runSeen;
    this.#parts.channel.post('Page.stopScreencast');
  }

  /** A screencast that starts shows a frame whether or not the page has changed. */
  #lookAgain(): void {
    this.#last = undefined;
    if (this.#running) this.#stop();
  }

  /** Gives the moment from which on Chromium could send what followed this frame. */
  #allow(run: number): number {
    this.#allowedMs = this.#parts.clock.monotonicMs();
    this.#parts.channel.post('Page.screencastFrameAck', { sessionId: run });
    const allowed = { atMs: this.#allowedMs, done: this.#doneWith };
    this.#allowed = [...this.#allowed, allowed].slice(-this.#inFlight);
    return this.#allowed.at(-this.#inFlight)?.atMs ?? Number.NEGATIVE_INFINITY;
  }

  /** A pulse shows a frame whether or not the page has changed: one that shows nothing new ends them. */
  #judge(isNew: boolean): void {
    if (this.#isWatched) this.#rest();
    else if (this.#pulsing) {
      if (!isNew) this.#tireOfPulses();
      else if (++this.#pulses === PULSES_PROVEN) this.#streakNeeded = STREAK_MIN;
    } else {
      this.#streak = this.#frameMs - this.#allowedMs < MOTION_MS ? this.#streak + 1 : 0;
      if (this.#streak < this.#streakNeeded) return;
      this.#pulsing = true;
      this.#pulses = 0;
    }
  }

  #tireOfPulses(): void {
    if (this.#pulses < PULSES_PROVEN) this.#streakNeeded = Math.min(this.#streakNeeded * 2, STREAK_MAX);
    this.#rest();
  }

  #rest(): void {
    this.#pulsing = false;
    this.#streak = 0;
  }

  get #isWatched(): boolean {
    return this.#parts.isWatched();
  }

  get #inFlightWanted(): number {
    return this.#isWatched ? IN_FLIGHT_WATCHED : IN_FLIGHT;
  }

  get #periodMs(): number {
    if (this.#isWatched) return 1000 / WATCHED_FPS;
    return 1000 / (this.#pulsing ? PULSED_FPS : RECORDED_FPS);
  }

  async #sleep(ms: number): Promise<void> {
    if (ms > 0) await this.#parts.clock.sleep(ms, this.#closing.signal).catch(() => {});
  }
}

function readFrame(
  { data, metadata }: JsonObject,
  picture: Buffer | undefined,
  ahead: number,
): CapturedFrame | undefined {
  if (typeof data !== 'string' || !isObject(metadata)) return undefined;
  const wallMs = numberAt(metadata, 'timestamp') * 1000;
  return {
    jpeg: picture ?? Buffer.from(data, 'base64'),
    // Older browsers tell the time of day only.
    browserMs: metadata.monotonicTimestamp === undefined ? wallMs : numberAt(metadata, 'monotonicTimestamp') * 1000,
    at: new Date(wallMs),
    ahead,
    metadata: {
      offsetTop: numberAt(metadata, 'offsetTop'),
      pageScaleFactor: numberAt(metadata, 'pageScaleFactor'),
      deviceWidth: numberAt(metadata, 'deviceWidth'),
      deviceHeight: numberAt(metadata, 'deviceHeight'),
      scrollOffsetX: numberAt(metadata, 'scrollOffsetX'),
      scrollOffsetY: numberAt(metadata, 'scrollOffsetY'),
    },
  };
}
