// Runs the screencast of one page at a limited rate: a frame is captured when the page has changed. For a page that
// changes all the time, the screencast is started for one frame at a time ("pulses"), because a running screencast
// copies every painted frame (measured).

import type { Clock } from '../../kit/clock.ts';
import { isObject, type JsonObject } from '../../kit/json.ts';
import type { Closeable } from '../../kit/scope.ts';
import { numberAt, type TargetChannel } from './channel.ts';
import type { FrameMetadata } from './hub.ts';

const RECORDED_FPS = 5;
const WATCHED_FPS = 15;
/**
 * The frame rate for a page that changes all the time. It is enough for a recording. A higher rate would cost more,
 * because the screencast is started for each frame.
 */
const PULSED_FPS = 2.5;
const SCREENCAST_OPTIONS: JsonObject = { format: 'jpeg', quality: 70 };
/**
 * Number of frames that Chromium sends before it waits for an acknowledgement. While it waits, it drops every change
 * that is painted. With one frame, a change that immediately followed another was lost if the acknowledgement was late.
 * Two frames cost no more (measured).
 */
const FRAMES_IN_FLIGHT_MAX = 2;
/**
 * Number of frames in flight while there are viewers. Quick successive changes are then shown without restarting the
 * screencast. Each restart costs a frame (on a busy machine, a change between two restarts was shown 300 ms late).
 */
const FRAMES_IN_FLIGHT_MAX_WATCHED = 3;
/**
 * A frame that arrives within this time after the acknowledgement of its predecessor counts as motion. The time is long
 * because machines may be loaded. If the page is not in motion after all, the next pulse produces an unchanged frame,
 * and the pulses end.
 */
const MOTION_GAP_MAX_MS = 1_000;
/** If a page changed before the acknowledgement and then stays unchanged, it is captured again after this time. */
const SETTLE_DELAY_MS = 150;
/** Replaces `SETTLE_DELAY_MS` while there are viewers. */
const SETTLE_DELAY_WATCHED_MS = 50;
/** Delay before a failed start is tried again. It is doubled after each attempt. */
const START_RETRY_MIN_MS = 100;
const START_RETRY_MAX_MS = 2_000;
/** Assumed maximum time until an acknowledgement reaches the browser. */
const ACK_TRANSIT_MAX_MS = 20;
/**
 * A page that has painted nothing is captured after this time at the latest. The time is shorter than 1 s, after which
 * the recording would report a gap.
 */
const FIRST_PAINT_TIMEOUT_MS = 750;
/** Pulses begin after this many frames in a row that count as motion. If pulses end early, the number is doubled. */
const MOTION_STREAK_MIN = 4;
const MOTION_STREAK_MAX = 256;
/**
 * After this many pulses with a changed picture, the number of frames that must count as motion is set back to
 * MOTION_STREAK_MIN.
 */
const CHANGED_PULSES_MIN = 5;

export interface CapturedFrame {
  readonly jpeg: Buffer;
  /** When the frame was painted, by the machine's monotonic clock, as reported by the browser. */
  readonly browserMs: number;
  /** When the frame was painted, in wall-clock time. */
  readonly at: Date;
  readonly metadata: FrameMetadata;
  /**
   * The distance, in frames, to an earlier frame that had already been handled when this frame was painted. The frames
   * in between may not have been handled by then.
   */
  readonly framesAhead: number;
}

/**
 * `rejected`: the frame must not be kept. `overmasked`: a larger area than necessary is black. In both cases the page
 * is captured again.
 */
export type FrameResult = 'kept' | 'overmasked' | 'rejected';

export interface CaptureOptions {
  readonly channel: TargetChannel;
  readonly clock: Clock;
  /**
   * Whether the page had painted nothing when its capture began. Its first frame is then captured after the first
   * paint, because most pages are opened empty.
   */
  readonly isUnpainted?: boolean;
  readonly isWatched: () => boolean;
  /** Handles a frame. When the promise resolves, the frame is acknowledged, and Chromium may send further frames. */
  readonly onFrame: (frame: CapturedFrame) => Promise<FrameResult>;
  readonly onVisibility: (isVisible: boolean) => void;
}

export class Capture implements Closeable {
  readonly #options: CaptureOptions;
  readonly #closeController = new AbortController();
  readonly #subscription: Closeable;
  #isPulsing = false;
  #isRunning = false;
  #streak = 0;
  #streakNeeded = MOTION_STREAK_MIN;
  #pulseCount = 0;
  #lastJpeg: Buffer | undefined;
  #frameCount = 0;
  #inFlightMax = FRAMES_IN_FLIGHT_MAX;
  /** Resolves when the last frame has been handled. Frames are handled in order. */
  #handling: Promise<unknown> = Promise.resolve();
  #framesBegun = 0;
  #framesDone = 0;
  /** Chromium numbers the runs of a screencast. Frames of earlier runs are ignored. */
  #lastRun = -1;
  #lastEndedRun = -1;
  /** Whether no frame has arrived since the last start. */
  #isAwaitingFrame = false;
  #framesDoneAtStart = 0;
  /**
   * The last acknowledgements of this run, oldest first. Each entry contains the time of the acknowledgement, and how
   * many frames had been handled by then.
   */
  #ackHistory: Array<{ readonly atMs: number; readonly done: number }> = [];
  #dueMs = Number.NEGATIVE_INFINITY;
  /** The number of frames received before the last navigation. */
  #framesBeforeNavigation: number | undefined;
  #startCount = 0;
  #startRetryMs = START_RETRY_MIN_MS;
  #arrivedMs = Number.NEGATIVE_INFINITY;
  /** Paint time of the newest frame, by the browser's clock. */
  #newestMs = Number.NEGATIVE_INFINITY;
  #lastAcknowledgedMs = Number.NEGATIVE_INFINITY;

  constructor(options: CaptureOptions) {
    this.#options = options;
    this.#subscription = options.channel.on((method, params, frameBytes) => {
      if (method === 'Page.screencastFrame') void this.#onScreencastFrame(params, frameBytes);
      else if (method === 'Page.screencastVisibilityChanged') options.onVisibility(params.visible === true);
      else if (method === 'Page.frameNavigated') this.#recordNavigation(params);
      else if (method === 'Page.lifecycleEvent' && params.name === 'firstPaint') this.#begin();
      else if (method === 'Page.loadEventFired') void this.#onLoad();
    });
    if (options.isUnpainted) void this.#beginAtFirstPaint();
    else this.#begin();
  }

  close(): void {
    if (this.#closeController.signal.aborted) return;
    this.#closeController.abort(new Error('the capture is closed'));
    void this.#subscription.close();
    if (this.#hasBegun && !this.#options.channel.isGone) this.#options.channel.post('Page.stopScreencast');
  }

  /** Call when the first viewer has arrived or the last one has left. */
  onViewersChanged(): void {
    if (this.#closeController.signal.aborted || this.#inFlightMax === this.#inFlightTarget) return;
    if (this.#isRunning) this.#stop();
    this.#start();
  }

  /** Captures a frame even if the page has not changed. */
  refresh(): void {
    if (this.#closeController.signal.aborted) return;
    this.#lastJpeg = undefined;
    if (!this.#hasBegun) return this.#start();
    // The screencast is started again soon, for example for the next pulse, and then sends a frame.
    if (!this.#isRunning) return;
    this.#stop();
    this.#start();
  }

  /** Resolves when the frames that have arrived so far are handled. */
  async whenHandled(): Promise<void> {
    await this.#handling;
  }

  get #hasBegun(): boolean {
    return this.#startCount > 0;
  }

  /** Starts the screencast, unless it was started before. */
  #begin(): void {
    if (!this.#hasBegun) this.#start();
  }

  /**
   * Starts the screencast at the first paint, which Chromium reports once for each document, or after
   * FIRST_PAINT_TIMEOUT_MS.
   */
  async #beginAtFirstPaint(): Promise<void> {
    this.#options.channel.post('Page.enable');
    this.#options.channel.post('Page.setLifecycleEventsEnabled', { enabled: true });
    await this.#sleep(FIRST_PAINT_TIMEOUT_MS);
    if (!this.#closeController.signal.aborted && !this.#options.channel.isGone) this.#begin();
  }

  #start(): void {
    this.#isRunning = true;
    this.#lastAcknowledgedMs = this.#options.clock.monotonicMs();
    this.#ackHistory = [];
    if (!this.#isAwaitingFrame) this.#framesDoneAtStart = this.#framesDone;
    this.#isAwaitingFrame = true;
    this.#inFlightMax = this.#inFlightTarget;
    const startNumber = ++this.#startCount;
    const startParams = { ...SCREENCAST_OPTIONS, maxFramesInFlight: this.#inFlightMax };
    this.#options.channel.send('Page.startScreencast', startParams).catch(() => this.#retryStart(startNumber));
  }

  /** Tries a failed start again. Chromium refuses to start while a page is being created or replaced (measured). */
  async #retryStart(start: number): Promise<void> {
    await this.#sleep(this.#startRetryMs);
    this.#startRetryMs = Math.min(this.#startRetryMs * 2, START_RETRY_MAX_MS);
    const isOver = this.#closeController.signal.aborted || this.#options.channel.isGone;
    if (!isOver && start === this.#startCount && this.#isRunning) this.#start();
  }

  #recordNavigation({ frame }: JsonObject): void {
    if (!isObject(frame) || frame.parentId !== undefined) return;
    this.#framesBeforeNavigation = this.#frameCount;
  }

  /**
   * Captures a loaded page that has sent no frame since its navigation. Chromium reports the load event only if the
   * Page domain is enabled on this channel, for example by the mask or the log.
   */
  async #onLoad(): Promise<void> {
    if (this.#framesBeforeNavigation === this.#frameCount) await this.#settle();
  }

  async #onScreencastFrame(params: JsonObject, frameBytes: Buffer | undefined): Promise<void> {
    const runNumber = numberAt(params, 'sessionId');
    if (runNumber <= this.#lastEndedRun) return;
    if (runNumber > this.#lastRun) this.#ackHistory = [];
    const frame = readFrame(params, frameBytes, this.#framesAhead);
    if (!frame || this.#closeController.signal.aborted) return;
    this.#lastRun = runNumber;
    this.#isAwaitingFrame = false;
    // Chromium encodes several frames at a time, so an older frame may arrive last (measured). Such a frame is
    // acknowledged and not shown.
    const isOutdated = frame.browserMs < this.#newestMs;
    const isNew = !isOutdated && !this.#lastJpeg?.equals(frame.jpeg);
    const startNumber = this.#startCount;
    this.#frameCount++;
    this.#startRetryMs = START_RETRY_MIN_MS;
    const paintedMs = this.#recordArrival(frame);
    if (!isOutdated) this.#advance(frame, isNew);
    const dueMs = this.#dueMs;
    const frameResult = isNew ? await this.#handleFrame(frame) : 'kept';
    if (frameResult === 'rejected') this.#discard();
    // Whichever frame comes next is handled even if the page has not changed.
    if (frameResult === 'overmasked' && this.#lastJpeg?.equals(frame.jpeg)) this.#lastJpeg = undefined;
    await this.#sleep((this.#isRunning ? dueMs : this.#arrivedMs + this.#periodMs) - this.#options.clock.monotonicMs());
    if (this.#closeController.signal.aborted) return;
    if (!this.#isRunning) return this.#start();
    if (startNumber !== this.#startCount) return;
    const gapMs = this.#acknowledge(runNumber) - paintedMs;
    if (frameResult === 'overmasked' || gapMs > -ACK_TRANSIT_MAX_MS)
      await this.#settle(isNew && this.#isWatched ? SETTLE_DELAY_WATCHED_MS : SETTLE_DELAY_MS);
  }

  /** Makes this the newest frame. */
  #advance({ browserMs, jpeg }: CapturedFrame, isNew: boolean): void {
    this.#newestMs = browserMs;
    this.#updatePace(isNew);
    if (this.#isPulsing && this.#isRunning) this.#stop();
    this.#lastJpeg = jpeg;
  }

  async #handleFrame(frame: CapturedFrame): Promise<FrameResult> {
    this.#framesBegun++;
    // If `onFrame` rejects, the frame counts as kept, so that the capture continues.
    const handlingResult = this.#handling.then(() => this.#options.onFrame(frame)).catch((): FrameResult => 'kept');
    this.#handling = handlingResult;
    const frameResult = await handlingResult;
    this.#framesDone++;
    return frameResult;
  }

  /** The value of `framesAhead` for a frame that arrives now. */
  get #framesAhead(): number {
    const handledCount = this.#ackHistory.at(-this.#inFlightMax)?.done ?? this.#framesDoneAtStart;
    return this.#framesBegun - handledCount + 1;
  }

  /** Returns when the frame was painted, by the server's monotonic clock. Also sets when the next frame is due. */
  #recordArrival(frame: CapturedFrame): number {
    this.#arrivedMs = this.#options.clock.monotonicMs();
    // The rate is an average: after a pause some frames may follow quickly.
    this.#dueMs = Math.max(this.#arrivedMs, this.#dueMs + this.#periodMs);
    // Browser and server read the same wall clock, and it is rarely adjusted between painting and arrival.
    return this.#arrivedMs - Math.max(0, this.#options.clock.now().getTime() - frame.at.getTime());
  }

  /**
   * Restarts the screencast if no new frame arrives within `afterMs`. Chromium sends a change that was painted before
   * the acknowledgement only together with the next change. After a restart, it sends the change at once.
   */
  async #settle(afterMs = SETTLE_DELAY_MS): Promise<void> {
    const frameCountBefore = this.#frameCount;
    await this.#sleep(afterMs);
    if (this.#closeController.signal.aborted || frameCountBefore !== this.#frameCount || !this.#isRunning) return;
    this.#stop();
    this.#start();
  }

  #stop(): void {
    this.#isRunning = false;
    this.#lastEndedRun = this.#lastRun;
    this.#options.channel.post('Page.stopScreencast');
  }

  /**
   * Stops the screencast and clears the last frame. The next frame then counts as new even if the page has not changed.
   */
  #discard(): void {
    this.#lastJpeg = undefined;
    if (this.#isRunning) this.#stop();
  }

  /** Acknowledges the frame. Returns the earliest time at which Chromium could send the following frame. */
  #acknowledge(runNumber: number): number {
    this.#lastAcknowledgedMs = this.#options.clock.monotonicMs();
    this.#options.channel.post('Page.screencastFrameAck', { sessionId: runNumber });
    const ackEntry = { atMs: this.#lastAcknowledgedMs, done: this.#framesDone };
    this.#ackHistory = [...this.#ackHistory, ackEntry].slice(-this.#inFlightMax);
    return this.#ackHistory.at(-this.#inFlightMax)?.atMs ?? Number.NEGATIVE_INFINITY;
  }

  /**
   * Begins or ends pulses. A pulse produces a frame even if the page has not changed. If such a frame is the same as
   * the previous one, the pulses end.
   */
  #updatePace(isNew: boolean): void {
    if (this.#isWatched) this.#resetPace();
    else if (this.#isPulsing) {
      if (!isNew) this.#endPulses();
      else if (++this.#pulseCount === CHANGED_PULSES_MIN) this.#streakNeeded = MOTION_STREAK_MIN;
    } else {
      this.#streak = this.#arrivedMs - this.#lastAcknowledgedMs < MOTION_GAP_MAX_MS ? this.#streak + 1 : 0;
      if (this.#streak < this.#streakNeeded) return;
      this.#isPulsing = true;
      this.#pulseCount = 0;
    }
  }

  #endPulses(): void {
    if (this.#pulseCount < CHANGED_PULSES_MIN) this.#streakNeeded = Math.min(this.#streakNeeded * 2, MOTION_STREAK_MAX);
    this.#resetPace();
  }

  #resetPace(): void {
    this.#isPulsing = false;
    this.#streak = 0;
  }

  get #isWatched(): boolean {
    return this.#options.isWatched();
  }

  get #inFlightTarget(): number {
    return this.#isWatched ? FRAMES_IN_FLIGHT_MAX_WATCHED : FRAMES_IN_FLIGHT_MAX;
  }

  get #periodMs(): number {
    if (this.#isWatched) return 1000 / WATCHED_FPS;
    return 1000 / (this.#isPulsing ? PULSED_FPS : RECORDED_FPS);
  }

  async #sleep(ms: number): Promise<void> {
    if (ms > 0) await this.#options.clock.sleep(ms, this.#closeController.signal).catch(() => {});
  }
}

function readFrame(
  { data, metadata }: JsonObject,
  frameBytes: Buffer | undefined,
  framesAhead: number,
): CapturedFrame | undefined {
  if (typeof data !== 'string' || !isObject(metadata)) return undefined;
  const wallMs = numberAt(metadata, 'timestamp') * 1000;
  return {
    jpeg: frameBytes ?? Buffer.from(data, 'base64'),
    // Older browsers report only the wall-clock time.
    browserMs: metadata.monotonicTimestamp === undefined ? wallMs : numberAt(metadata, 'monotonicTimestamp') * 1000,
    at: new Date(wallMs),
    framesAhead,
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
