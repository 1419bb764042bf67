// Records all pages of sessions. While a page is open, its frames are written to the data folder. They are then encoded
// into segments, which are stored. If a killed server left files in the folder, the next server continues the
// recordings.
import { type FileHandle, mkdir, open, readdir, readFile, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import type { Log } from '../../kit/log.ts';
import type { Runtime } from '../../kit/runtime.ts';
import type { Closeable } from '../../kit/scope.ts';
import type { SecretTexts } from '../../kit/secret-texts.ts';
import type { Workers } from '../../kit/worker-pool.ts';
import { Backlog, type BacklogLimits } from './backlog.ts';
import type { TargetChannel } from './channel.ts';
import { EncodeQueue } from './encode-queue.ts';
import { EndedRecordings } from './ended-recordings.ts';
import { type Confinement, Ffmpeg } from './ffmpeg.ts';
import type { Frame, Hub } from './hub.ts';
import { PageFolder } from './page-folder.ts';
import { type MaskKind, PageMask } from './page-mask.ts';
import {
  type Appearance,
  PageRecording,
  type PageRecordingOptions,
  type PauseReason,
  type RecordedPage,
  type RecordingSink,
} from './page-recording.ts';
import type { TypingOutcome, TypingRequest } from './type-text.ts';

/** Maximum number of tabs per session that are recorded at the same time. */
export const PAGES_AT_ONCE_MAX = 64;
const TICK_INTERVAL_MS = 500;
/**
 * Free disk space is checked on every 4th tick. This is often enough, because a host writes only a few MiB between two
 * checks.
 */
const TICKS_PER_DISK_CHECK = 4;
/** Recording pauses while less than this is free on the disk. */
const FREE_BYTES_MIN = 512 * 1024 ** 2;
/** A recording counts as watched for this long after it was last requested. */
const WATCHED_TIMEOUT_MS = 60_000;
const ALIVE_FILE_NAME = 'alive';
const PAGE_FOLDER_NAME = /^\d{1,3}$/;

export interface RecorderOptions extends Pick<Runtime, 'clock' | 'log'> {
  /** Folder for data that is not stored yet. */
  readonly folder: string;
  readonly sink: RecordingSink;
  readonly workers: Workers;
  /** Returns the command that runs ffmpeg in a jail. ffmpeg needs one because it decodes untrusted images. */
  readonly confine: Confinement;
  readonly ffmpegPath?: string;
  /** Maximum number of ffmpeg processes at the same time. */
  readonly encoders?: number;
  readonly backlog?: BacklogLimits;
  /** Whether a processor is free. Recordings of ended sessions wait for a free processor. Default: always free. */
  readonly isQuiet?: () => boolean;
}

/**
 * Why a part of a session is not recorded. `not_resumed`: the recording that an earlier server began cannot be read.
 */
export type Shortfall = 'too_many_at_once' | 'not_resumed' | Exclude<PauseReason, 'handoff'>;

export interface RecordingOptions {
  readonly session: string;
  readonly maskKind: MaskKind;
  /** Strings that must not be visible in recordings of the session's pages. */
  readonly secrets: Pick<SecretTexts, 'forms'>;
  /**
   * Called when something is not recorded. If a single page is not recorded, or must wait before it is recorded,
   * `targetId` and `page` identify it.
   */
  readonly reportShortfall: (why: Shortfall, targetId?: string, page?: number) => void;
}

export class Recorder implements Closeable {
  readonly ffmpeg: Ffmpeg;
  readonly #encodeQueue: EncodeQueue;
  readonly #endedRecordings: EndedRecordings;
  readonly #options: RecorderOptions;
  readonly #sessions = new Map<string, SessionRecording>();
  readonly #unstoredRecordings = new Set<PageRecording>();
  /**
   * Pages whose recordings, which an earlier server began, have been resumed or are being resumed. The set prevents a
   * page from being resumed twice.
   */
  readonly #resumedPages = new Set<string>();
  readonly #closeController = new AbortController();
  /** The time at which an earlier server last wrote to the file `alive`. Undefined if no earlier server wrote to it. */
  #formerAliveAt: Date | undefined;
  readonly #backlog: Backlog;
  #isDiskFull = false;
  #aliveFile: FileHandle | undefined;
  #tickCount = 0;
  #tickLoop: Promise<void> | undefined;

  private constructor(options: RecorderOptions) {
    this.#options = options;
    this.ffmpeg = new Ffmpeg(options.confine, options.ffmpegPath, options.encoders);
    this.#encodeQueue = new EncodeQueue(this.ffmpeg, options.clock, options.log);
    this.#backlog = new Backlog(options.backlog);
    const { clock, isQuiet = () => true } = options;
    this.#endedRecordings = new EndedRecordings({ clock, isQuiet, mayWait: session => this.#mayHoldBack(session) });
  }

  static async open(options: RecorderOptions): Promise<Recorder> {
    await mkdir(options.folder, { recursive: true, mode: 0o700 });
    const recorder = new Recorder(options);
    const aliveText = await readFile(join(options.folder, ALIVE_FILE_NAME), 'utf8').catch(() => '');
    if (/^\d+$/.test(aliveText)) recorder.#formerAliveAt = new Date(Number(aliveText));
    return recorder;
  }

  /**
   * Starts recording a session. Its pages are then added with `recordPage`. Recordings that an earlier process began
   * are continued.
   */
  async record(options: RecordingOptions): Promise<SessionRecording> {
    const knownRecording = this.#sessions.get(options.session);
    const { clock, workers, log } = this.#options;
    const recording =
      knownRecording ??
      new SessionRecording({ ...options, workers, log }, clock, id =>
        this.#pageOptions(options.session, id, options.reportShortfall),
      );
    this.#sessions.set(options.session, recording);
    this.#tickLoop ??= this.#tick();
    if (!knownRecording) await recording.resume(await this.#pagesOf(options.session), this.#lastAliveAt);
    return recording;
  }

  sessionOf(session: string): SessionRecording | undefined {
    return this.#sessions.get(session);
  }

  /**
   * Call when someone watches the recording. For the next WATCHED_TIMEOUT_MS, its segments are encoded without delay.
   * Resolves when segments that were held back are stored.
   */
  async markWatched(session: string): Promise<void> {
    const recording = this.#sessions.get(session);
    if (!recording) return;
    const isFirstRequest = !recording.isWatchedNow;
    await recording.markWatched();
    this.#endedRecordings.releaseSession(session);
    if (isFirstRequest) await Promise.all(this.#endedPagesOf(session).map(page => page.settled));
  }

  /**
   * Call when the session has ended. Ends the recordings of its pages; the remaining segments are encoded later. Also
   * handles a session that a killed server left behind. If a page of such a session cannot be read, the next call tries
   * again.
   */
  async finish(session: string): Promise<void> {
    const recording = this.#sessions.get(session);
    this.#sessions.delete(session);
    if (recording) {
      await recording.end();
      for (const page of recording.unreadablePages) await this.#finishLeftoverPage(session, page);
      if (recording.isWatchedNow) this.#endedRecordings.releaseSession(session);
      return;
    }
    for (const page of await this.#pagesOf(session)) await this.#finishLeftoverPage(session, page);
  }

  /** Ends a page's recording that a killed server left unfinished. */
  async #finishLeftoverPage(session: string, page: number): Promise<void> {
    if (this.#isResumed(session, page)) return;
    const pageKey = join(session, String(page));
    this.#resumedPages.add(pageKey);
    let isResumed = false;
    try {
      const resumedPage = await PageRecording.resume(this.#pageOptions(session, page), this.#lastAliveAt);
      isResumed = resumedPage !== undefined;
      if (resumedPage) await resumedPage.recording.endAt(this.#lastAliveAt);
      // The earlier server was killed while it created the folder, so nothing was recorded.
      else await new PageFolder(join(this.#options.folder, pageKey)).removeIfUndescribed();
    } catch (error) {
      // A failure of one page must not affect the other pages, the other sessions or the start of the server.
      logNotResumed(this.#options.log, { session, page }, error);
    }
    if (!isResumed) this.#resumedPages.delete(pageKey);
  }

  /**
   * Resolves to true when the recording of an ended session is stored, or to false if it was not stored, for example
   * because the recorder is closing.
   */
  async whenSettled(session: string): Promise<boolean> {
    await this.finish(session);
    this.#endedRecordings.releaseSession(session);
    await Promise.all(this.#endedPagesOf(session).map(page => page.settled));
    return (await this.#pagesOf(session)).length === 0;
  }

  /** The number of pages that have ended and are not stored yet. */
  get unstoredCount(): number {
    return [...this.#unstoredRecordings].filter(page => page.hasEnded).length;
  }

  /** Resolves when the recordings of all ended sessions are stored, or the recorder closes. */
  async whenAllSettled(): Promise<void> {
    this.#endedRecordings.releaseAll();
    await Promise.all([...this.#unstoredRecordings].filter(page => page.hasEnded).map(page => page.settled));
  }

  #endedPagesOf(session: string): readonly PageRecording[] {
    return [...this.#unstoredRecordings].filter(page => page.id.session === session && page.hasEnded);
  }

  #isResumed(session: string, page: number): boolean {
    if (this.#resumedPages.has(join(session, String(page)))) return true;
    return [...this.#unstoredRecordings].some(({ id }) => id.session === session && id.page === page);
  }

  get #lastAliveAt(): Date {
    return this.#formerAliveAt ?? this.#options.clock.now();
  }

  /** Returns the sessions that have data that is not stored yet and that are not being recorded now. */
  async listLeftovers(): Promise<readonly string[]> {
    const names = await readdir(this.#options.folder).catch(() => []);
    return names.filter(name => name !== ALIVE_FILE_NAME && !this.#sessions.has(name));
  }

  async close(): Promise<void> {
    this.#closeController.abort(new Error('the recorder is closed'));
    await this.#tickLoop;
    for (const session of this.#sessions.values()) session.pause();
    await Promise.all([...this.#unstoredRecordings].map(page => page.leave()));
    await this.#endedRecordings.close();
    this.#sessions.clear();
    await this.#aliveFile?.close();
  }

  /** Runs while any session is being recorded. */
  async #tick(): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#closeController;
    while (this.#sessions.size > 0) {
      await clock.sleep(TICK_INTERVAL_MS, signal).catch(() => {});
      if (signal.aborted) return;
      await this.#checkDiskAndReportAlive().catch(error => this.#options.log.warn('recording.tick_failed', { error }));
      for (const session of this.#sessions.values()) session.tick();
    }
    this.#tickLoop = undefined;
  }

  async #checkDiskAndReportAlive(): Promise<void> {
    const { folder, clock } = this.#options;
    if (this.#tickCount++ % TICKS_PER_DISK_CHECK === 0) {
      const { bavail, bsize } = await statfs(folder);
      this.#isDiskFull = bavail * bsize < FREE_BYTES_MIN;
    }
    // The time always has the same number of digits. A reader therefore sees either the old time or the new one, never
    // a mix.
    this.#aliveFile ??= await open(join(folder, ALIVE_FILE_NAME), 'w', 0o600);
    await this.#aliveFile.write(String(clock.now().getTime()), 0);
  }

  #shortageFor(session: string): Exclude<PauseReason, 'handoff'> | undefined {
    if (this.#isDiskFull) return 'disk_full';
    return this.#backlog.isFullFor(session) ? 'backlog' : undefined;
  }

  #mayHoldBack(session: string): boolean {
    const isWatched = this.#sessions.get(session)?.isWatchedNow ?? false;
    return !isWatched && !this.#isDiskFull && this.#backlog.mayHoldBack(session);
  }

  async #pagesOf(session: string): Promise<readonly number[]> {
    const names = await readdir(join(this.#options.folder, session)).catch(() => []);
    return names.filter(name => PAGE_FOLDER_NAME.test(name)).map(Number);
  }

  #pageOptions(
    session: string,
    page: number,
    onShortfall: RecordingOptions['reportShortfall'] = () => {},
  ): PageRecordingOptions {
    const { folder, sink, clock, log } = this.#options;
    return {
      id: { session, page },
      path: join(folder, session, String(page)),
      encodeQueue: this.#encodeQueue,
      mayHoldBack: () => this.#mayHoldBack(session),
      whenDue: () => this.#endedRecordings.whenDue(session),
      sink,
      clock,
      log,
      isCovered: () => this.#sessions.get(session)?.isCovered ?? false,
      reasonToPause: () => {
        if (this.#sessions.get(session)?.isPausedForHandoff) return 'handoff';
        const why = this.#shortageFor(session);
        if (why) onShortfall(why);
        return why;
      },
      onGrowth: bytes => this.#backlog.recordChange(session, bytes),
      unstoredRecordings: this.#unstoredRecordings,
    };
  }
}

/** A page that is recorded, or waits to be recorded. */
interface RecordablePage {
  readonly target: TargetChannel;
  readonly page: number;
  readonly mask: PageMask;
}

interface SessionRecordingOptions extends RecordingOptions, Pick<Runtime, 'log'> {
  readonly workers: Workers;
}

class SessionRecording {
  /**
   * The pages whose earlier recordings could not be read. They are not recorded until the session ends, because a new
   * recording would be written over the earlier one.
   */
  readonly unreadablePages = new Set<number>();
  readonly #options: SessionRecordingOptions;
  readonly #optionsOf: (page: number) => PageRecordingOptions;
  readonly #recordingsByTarget = new Map<string, PageRecording>();
  readonly #recordingsByNumber = new Map<number, PageRecording>();
  /** The masks, by target id, of the pages that are being recorded or wait to be recorded. */
  readonly #masks = new Map<string, PageMask>();
  /** The newest frame of all pages that have ended. */
  #newestEndedFrame: Frame | undefined;
  /** The pages that wait to be recorded, by target id, in the order in which they appeared. */
  readonly #waitingPages = new Map<string, RecordablePage & { readonly at: Date }>();
  readonly #clock: Clock;
  #watchedAtMs = Number.NEGATIVE_INFINITY;
  #isPaused = false;
  #cover: 'mask' | 'pause' | undefined;
  /** How many times `setPageCover` was called. Only the last call takes effect. */
  #coverChanges = 0;

  constructor(options: SessionRecordingOptions, clock: Clock, optionsOf: (page: number) => PageRecordingOptions) {
    this.#options = options;
    this.#clock = clock;
    this.#optionsOf = optionsOf;
  }

  /**
   * Continues the recordings that an earlier process began. The recordings of pages that no longer exist are ended by
   * `settle`, once all targets are listed. A page that cannot be read does not prevent the others from being continued.
   */
  async resume(pages: readonly number[], lastAliveAt: Date): Promise<void> {
    for (const page of pages) {
      const resumedPage = await PageRecording.resume(this.#optionsOf(page), lastAliveAt).catch(error => {
        this.unreadablePages.add(page);
        logNotResumed(this.#options.log, { session: this.#options.session, page }, error);
      });
      if (!resumedPage) continue;
      resumedPage.recording.reportGapSince(lastAliveAt);
      this.#recordingsByTarget.set(resumedPage.targetId, resumedPage.recording);
      this.#recordingsByNumber.set(page, resumedPage.recording);
    }
  }

  /** Call when the observer has listed all targets. Ends the recordings of pages that are not among them. */
  async settle(presentIds: ReadonlySet<string>): Promise<void> {
    for (const [targetId, recording] of [...this.#recordingsByTarget])
      if (!presentIds.has(targetId)) await this.#endPage(targetId, recording);
  }

  /**
   * Starts recording a page. `page` is the number of the page. If PAGES_AT_ONCE_MAX pages are being recorded, the page
   * waits. A page whose earlier recording could not be read is not recorded.
   */
  recordPage(target: TargetChannel, page: number, appearance: Appearance): void {
    if (this.#isPaused) return;
    const { maskKind: pageMaskKind, session, secrets, workers } = this.#options;
    const mask = new PageMask({ kind: pageMaskKind, session, secrets, workers, isCovered: () => this.isCovered });
    mask.add(target);
    // Set even for a page that must wait, because its out-of-process frames are reported only once, and `addFrame`
    // needs the mask.
    this.#masks.set(target.id, mask);
    this.#recordOrWait({ target, page, mask }, appearance);
  }

  #recordOrWait(recordablePage: RecordablePage, appearance: Appearance): void {
    if (this.#isPaused) return;
    const { target, page, mask } = recordablePage;
    const existingRecording = this.#recordingsByTarget.get(target.id);
    const isUnreadable = this.unreadablePages.has(page);
    if (isUnreadable || (!existingRecording && this.#recordingsByTarget.size >= PAGES_AT_ONCE_MAX)) {
      if (!isUnreadable) this.#waitingPages.set(target.id, { ...recordablePage, at: appearance.at });
      target.whenGone(() => {
        this.#waitingPages.delete(target.id);
        if (!this.#recordingsByTarget.has(target.id)) this.#masks.delete(target.id);
      });
      return this.#options.reportShortfall(isUnreadable ? 'not_resumed' : 'too_many_at_once', target.id, page);
    }
    const recording = existingRecording ?? new PageRecording(this.#optionsOf(page), appearance);
    this.#recordingsByTarget.set(target.id, recording);
    this.#recordingsByNumber.set(page, recording);
    recording.capture(target, mask.mask);
    target.whenGone(() => {
      if (!this.#isPaused) void this.#endPage(target.id, recording);
    });
  }

  get isCovered(): boolean {
    return this.#cover !== undefined;
  }

  get isPausedForHandoff(): boolean {
    return this.#cover === 'pause';
  }

  /**
   * Makes the pictures of all pages black (`mask`), or stops recording them (`pause`), while a person has control of
   * the session. With `undefined`, the pages are shown and recorded again. Before that, a new frame of each page is
   * captured, so that no hidden frame becomes visible.
   */
  async setPageCover(cover: 'mask' | 'pause' | undefined): Promise<void> {
    const changeNumber = ++this.#coverChanges;
    if (cover === undefined && this.#cover !== undefined) {
      await Promise.all([...this.#recordingsByTarget.values()].map(recording => recording.captureNewFrame()));
      if (changeNumber !== this.#coverChanges) return;
    }
    const hasChanged = cover !== this.#cover;
    this.#cover = cover;
    if (hasChanged) for (const recording of this.#recordingsByTarget.values()) recording.refresh();
  }

  hubOfTarget(targetId: string): Hub | undefined {
    return this.#recordingsByTarget.get(targetId)?.hub;
  }

  maskOfTarget(targetId: string): PageMask | undefined {
    return this.#masks.get(targetId);
  }

  /** Whether fields in the pages of this recording are masked. */
  get hasMasks(): boolean {
    return this.#options.maskKind !== 'none';
  }

  get hasSecrets(): boolean {
    return this.#options.secrets.forms.length > 0;
  }

  /**
   * Types into the element that is marked with `typing.mark`, in any page that is recorded or waits to be recorded.
   * Returns undefined if no page has the element.
   */
  async type(typing: TypingRequest): Promise<TypingOutcome | undefined> {
    for (const mask of [...this.#masks.values()]) {
      const outcome = await mask.type(typing);
      if (outcome) return outcome;
    }
    return undefined;
  }

  /**
   * Hides everything that is masked in all pages, or shows it again. Resolves to false if any of it was visible while
   * it should have been hidden.
   */
  async cover(shouldCover: boolean): Promise<boolean> {
    const coverResults = await Promise.all([...this.#masks.values()].map(mask => mask.cover(shouldCover)));
    return coverResults.every(Boolean);
  }

  /** The newest frame of all pages, including pages that have ended. */
  get newest(): Frame | undefined {
    const frames = [...this.#recordingsByTarget.values()].map(({ hub }) => hub.newestFrame);
    return [this.#newestEndedFrame, ...frames].reduce(newerFrame);
  }

  /**
   * Adds an out-of-process frame, which shows another site. Its fields are masked in the picture of the page that
   * contains it.
   */
  addFrame(target: TargetChannel): void {
    let page = target;
    while (page.parent) page = page.parent;
    this.#masks.get(page.id)?.add(target);
  }

  /**
   * Returns the hub of a page, which holds the newest frame of the page and its viewers. Returns undefined if the page
   * is not being recorded.
   */
  hubOf(page: number): Hub | undefined {
    return this.#recordingsByNumber.get(page)?.hub;
  }

  /** Whether the recording was watched within the last minute. */
  get isWatchedNow(): boolean {
    return this.#clock.monotonicMs() - this.#watchedAtMs < WATCHED_TIMEOUT_MS;
  }

  /**
   * Call when the recording is watched. If it was not watched within the last minute, resolves when the segments that
   * were held back are stored. Otherwise resolves at once.
   */
  async markWatched(): Promise<void> {
    const isFirstRequest = !this.isWatchedNow;
    this.#watchedAtMs = this.#clock.monotonicMs();
    if (isFirstRequest)
      await Promise.all([...this.#recordingsByTarget.values()].map(recording => recording.storeHeldSegments()));
  }

  tick(): void {
    const recordings = [...this.#recordingsByTarget.values()];
    for (const recording of recordings) recording.tick();
    // When the segments of one page must be encoded, those of the other pages are encoded together with them.
    if (recordings.some(({ isDue }) => isDue)) for (const recording of recordings) void recording.storeHeldSegments();
  }

  /**
   * Call when the browser is about to end or be released. No more frames arrive, but it is not yet known how the
   * session ends.
   */
  pause(): void {
    this.#isPaused = true;
    for (const recording of this.#recordingsByTarget.values()) recording.pause();
  }

  async end(): Promise<void> {
    this.#isPaused = true;
    await Promise.all([...this.#recordingsByTarget].map(([targetId, recording]) => this.#endPage(targetId, recording)));
  }

  async #endPage(targetId: string, recording: PageRecording): Promise<void> {
    this.#newestEndedFrame = newerFrame(this.#newestEndedFrame, recording.hub.newestFrame);
    this.#recordingsByTarget.delete(targetId);
    this.#masks.delete(targetId);
    for (const [number, one] of this.#recordingsByNumber)
      if (one === recording) this.#recordingsByNumber.delete(number);
    // Called before the `await`. Otherwise a page that appears during the `await` could be recorded instead of a page
    // that has waited longer.
    this.#recordNextWaiting();
    await recording.end();
  }

  #recordNextWaiting(): void {
    const [waitingPage] = this.#waitingPages.values();
    if (!waitingPage) return;
    this.#waitingPages.delete(waitingPage.target.id);
    this.#recordOrWait(waitingPage, { at: waitingPage.at, waitReason: 'too_many_at_once' });
  }
}

const logNotResumed = (log: Log, page: RecordedPage, error: unknown): void =>
  log.warn('recording.not_resumed', { ...page, reason: reason(error) });

const newerFrame = (one: Frame | undefined, other: Frame | undefined): Frame | undefined =>
  !one || (other && other.at > one.at) ? other : one;
