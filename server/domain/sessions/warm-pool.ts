// Keeps warm browsers, so that a create does not have to wait for Chromium to start. Some have the settings of an empty
// create, and some have settings that were requested recently. A browser is claimed once and never returned.
import type { Box } from '../../engines/slots/slots.ts';
import { addMs } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import { newId, type SessionId } from '../../kit/ids.ts';
import type { Runtime } from '../../kit/runtime.ts';
import { WaitExpired, withTimeout } from '../../kit/wait.ts';
import { type BootedBrowser, boot } from './boot.ts';
import type { BrowserHost } from './browser-host.ts';
import type { RecentClaims } from './recent-claims.ts';
import { claimSettings, fingerprint, type LaunchSettings } from './settings.ts';
import type { StartGate } from './start-gate.ts';

/** A browser that has been waiting this long is replaced. */
const WAIT_MAX_MS = 30 * 60_000;
/** Browsers with settings that have not been requested for this long are no longer started in advance. */
const LAUNCH_RETENTION_MS = 10 * 60_000;
const START_TIMEOUT_MS = 30_000;
/** A create that has waited this long for a warm browser that is being started starts its own. */
const CLAIM_TIMEOUT_MS = 3_500;
const BACKOFF_MIN_MS = 1_000;
const BACKOFF_MAX_MS = 60_000;
/** Consecutive failed starts after which /readyz reports that browsers do not start. */
const UNHEALTHY_FAILURES_MIN = 3;
/**
 * How long failed starts count if no browsers are started in advance. In that case, only a create can show that
 * browsers start again.
 */
const FAILURE_MEMORY_MS = 60_000;

interface IdleBrowser {
  readonly settingsKey: string;
  readonly launch: LaunchSettings;
  readonly bootedBrowser: BootedBrowser;
  /**
   * The id of the Chromium program from which the browser was started. Undefined if the program was being replaced at
   * that time.
   */
  readonly programId: string | undefined;
  readonly replaceAt: Date;
}

/** A browser that is being started. A create that finds no warm browser may claim it. */
interface PendingBrowser {
  readonly settingsKey: string;
  readonly arrival: PromiseWithResolvers<BootedBrowser | undefined>;
  /** True if the box has low priority, which can be raised only once the box is running. */
  readonly background: boolean;
  box?: Box;
  isPromised: boolean;
  /** True once a create has waited too long for this browser. No other create then waits for it. */
  isLate: boolean;
  /** Ends the start of a late browser that the pool does not need, because another one was started in its place. */
  readonly cancelController: AbortController;
}

export interface WarmPoolParts extends Pick<Runtime, 'clock' | 'log'> {
  /**
   * The number of warm browsers with the settings of an empty create, and the maximum number with recently requested
   * settings.
   */
  readonly size: number;
  /** The launch settings of an empty create. */
  readonly defaultSettings: LaunchSettings;
  readonly browserHost: BrowserHost;
  /**
   * The number of sessions that are being started. When one of these starts has ended, the task that calls `reconcile`
   * is triggered.
   */
  readonly starting: () => number;
  readonly claims: RecentClaims;
  readonly gate: Pick<StartGate, 'hold'>;
  /** The maximum number of browsers that are started in advance at the same time. */
  readonly processors: number;
  readonly recordClaim: (outcome: 'hit' | 'miss') => void;
}

export class WarmPool {
  readonly #parts: WarmPoolParts;
  readonly #defaultSettingsKey: string;
  readonly #idleBrowsers: IdleBrowser[] = [];
  readonly #recentLaunches = new Map<string, { launch: LaunchSettings; until: Date }>();
  readonly #closeController = new AbortController();
  /** Oldest first. */
  readonly #pendingBrowsers: PendingBrowser[] = [];
  readonly #starts = new Set<Promise<void>>();
  #failures = 0;
  #failedAt: Date | undefined;
  #retryAt: Date | undefined;

  constructor(parts: WarmPoolParts) {
    this.#parts = parts;
    this.#defaultSettingsKey = fingerprint(parts.defaultSettings);
  }

  get size(): number {
    return this.#idleBrowsers.length;
  }

  /** The number of browsers that are being started in advance, including browsers that creates are waiting for. */
  get pending(): number {
    return this.#pendingBrowsers.length;
  }

  /** Whether browsers are started in advance on every processor. */
  get isUnderPressure(): boolean {
    return this.#parts.claims.areContinuous;
  }

  /** Whether browsers start successfully, with a description. */
  get health(): { ok: boolean; detail: string } {
    const { size, clock } = this.#parts;
    const areFailuresPast = size === 0 && (!this.#failedAt || addMs(this.#failedAt, FAILURE_MEMORY_MS) < clock.now());
    const ok = areFailuresPast || this.#failures < UNHEALTHY_FAILURES_MIN;
    return {
      ok,
      detail: ok ? `${this.#idleBrowsers.length} warm browsers` : `${this.#failures} browsers in a row did not start`,
    };
  }

  /** Records whether a browser started, either in advance or for a create. */
  noteStart(hasStarted: boolean): void {
    this.#failures = hasStarted ? 0 : this.#failures + 1;
    if (!hasStarted) this.#failedAt = this.#parts.clock.now();
  }

  /** Returns a browser with these settings, which the caller then owns. Undefined if there is no such browser. */
  async claim(launch: LaunchSettings, signal: AbortSignal): Promise<BootedBrowser | undefined> {
    if (this.#parts.size === 0) return undefined;
    this.#parts.claims.add();
    const settingsKey = fingerprint(launch);
    this.#remember(settingsKey, launch);
    const claimedBrowser = this.#takeIdle(settingsKey) ?? (await this.#takePending(settingsKey, signal));
    this.#parts.recordClaim(claimedBrowser ? 'hit' : 'miss');
    return claimedBrowser;
  }

  /** Ends browsers that are old or no longer needed, and starts missing browsers. */
  async reconcile(): Promise<{ started: number; ended: number }> {
    const ended = await this.#endUnwanted();
    return { started: this.#fill(), ended };
  }

  async close(): Promise<void> {
    this.#closeController.abort(new Error('the warm pool is closing'));
    await Promise.all(this.#starts);
    await Promise.all(this.#idleBrowsers.splice(0).map(one => one.bootedBrowser.scope.close()));
  }

  /** Starts the missing browsers. Called again at the end of each start. */
  #fill(): number {
    let startedCount = 0;
    for (let launchToStart = this.#nextLaunch(); launchToStart; launchToStart = this.#nextLaunch()) {
      const start = this.#start(launchToStart).finally(() => {
        this.#starts.delete(start);
        this.#fill();
      });
      this.#starts.add(start);
      startedCount++;
    }
    return startedCount;
  }

  #takeIdle(settingsKey: string): BootedBrowser | undefined {
    const index = this.#idleBrowsers.findIndex(one => one.settingsKey === settingsKey && this.#isCurrent(one));
    return index < 0 ? undefined : this.#idleBrowsers.splice(index, 1)[0]?.bootedBrowser;
  }

  /**
   * Claims the oldest matching browser that is being started, which is ready sooner than a new one. A browser with low
   * priority can be claimed only when its box is running, because its priority cannot be raised earlier. Undefined if
   * there is no such browser, or if the start fails or takes too long.
   */
  async #takePending(settingsKey: string, signal: AbortSignal): Promise<BootedBrowser | undefined> {
    const pendingBrowser = this.#pendingBrowsers.find(
      one => one.settingsKey === settingsKey && !one.isPromised && !one.isLate && (one.box || !one.background),
    );
    if (!pendingBrowser) return undefined;
    pendingBrowser.isPromised = true;
    pendingBrowser.box?.claim();
    this.#fill();
    try {
      return await withTimeout(
        CLAIM_TIMEOUT_MS,
        'a browser that is being started',
        () => pendingBrowser.arrival.promise,
        signal,
      );
    } catch (error) {
      pendingBrowser.isPromised = false;
      // Close the browser if it arrived for this create. If it is still starting, it may be kept for another one.
      void Promise.race([pendingBrowser.arrival.promise, undefined])
        .then(bootedBrowser => bootedBrowser?.scope.close())
        .catch(closeError => this.#logCloseFailure(closeError));
      if (!(error instanceof WaitExpired) || signal.aborted) throw error;
      pendingBrowser.isLate = true;
      const wantedCount = settingsKey === this.#defaultSettingsKey ? this.#parts.size : 1;
      if (this.#countUnclaimed(settingsKey) > wantedCount) pendingBrowser.cancelController.abort();
      return undefined;
    }
  }

  #nextLaunch(): LaunchSettings | undefined {
    if (this.#closeController.signal.aborted || !this.#hasFreeProcessor() || this.#isBackingOff()) return undefined;
    return this.#missingLaunch();
  }

  /**
   * Whether another browser may be started now. Normally, one browser is started at a time, and none while a session is
   * being started, because the session needs the processor time. Under continuous demand, every create would then have
   * to start its own browser. Therefore, one browser per processor is started at a time in this case, including the
   * browsers that are started for creates.
   */
  #hasFreeProcessor(): boolean {
    const { starting, claims, processors } = this.#parts;
    if (!claims.areContinuous) return this.#pendingBrowsers.length === 0 && starting() === 0;
    const promisedCount = this.#pendingBrowsers.filter(({ isPromised }) => isPromised).length;
    return this.#pendingBrowsers.length + Math.max(0, starting() - promisedCount) < processors;
  }

  async #start(launch: LaunchSettings): Promise<void> {
    const { browserHost, clock, log } = this.#parts;
    const cancelController = new AbortController();
    const signal = AbortSignal.any([
      this.#closeController.signal,
      cancelController.signal,
      AbortSignal.timeout(START_TIMEOUT_MS),
    ]);
    const programId = browserHost.programId(launch);
    const background = !this.#parts.claims.areContinuous;
    const arrival = Promise.withResolvers<BootedBrowser | undefined>();
    const pendingBrowser: PendingBrowser = {
      settingsKey: fingerprint(launch),
      arrival,
      background,
      isPromised: false,
      isLate: false,
      cancelController,
    };
    this.#pendingBrowsers.push(pendingBrowser);
    const onBoxRunning = async (box: Box): Promise<void> => {
      pendingBrowser.box = box;
    };
    try {
      const request = { id: newId<SessionId>(clock.now()), launch, background, onBoxRunning };
      const start = () => boot(browserHost, request, signal);
      const bootedBrowser = await (background ? start() : this.#parts.gate.hold(start));
      await this.#prepare(bootedBrowser);
      this.noteStart(true);
      if (pendingBrowser.isPromised) pendingBrowser.arrival.resolve(bootedBrowser);
      else
        this.#keep({
          settingsKey: pendingBrowser.settingsKey,
          launch,
          bootedBrowser,
          programId,
          replaceAt: addMs(clock.now(), WAIT_MAX_MS),
        });
    } catch (error) {
      pendingBrowser.arrival.resolve(undefined);
      if (this.#closeController.signal.aborted || cancelController.signal.aborted) return;
      this.noteStart(false);
      this.#retryAt = addMs(clock.now(), Math.min(BACKOFF_MAX_MS, BACKOFF_MIN_MS * 2 ** (this.#failures - 1)));
      log.warn('warm.start_failed', { failures: this.#failures, reason: reason(error) });
    } finally {
      this.#pendingBrowsers.splice(this.#pendingBrowsers.indexOf(pendingBrowser), 1);
    }
  }

  /** Applies the default settings, so that they do not have to be applied when the browser is claimed. */
  async #prepare({ browser, scope }: BootedBrowser): Promise<void> {
    try {
      await browser.applySettings(claimSettings({}));
    } catch (error) {
      await scope.close();
      throw error;
    }
  }

  /** Adds a browser to the pool. If the browser ends, it is removed at once, so that no session gets it. */
  #keep(idleBrowser: IdleBrowser): void {
    this.#idleBrowsers.push(idleBrowser);
    const { box, browser, scope } = idleBrowser.bootedBrowser;
    void Promise.race([box.whenGone, browser.failed]).then(async () => {
      const index = this.#idleBrowsers.indexOf(idleBrowser);
      if (index < 0) return;
      this.#idleBrowsers.splice(index, 1);
      this.#parts.log.warn('warm.died', { box: box.session });
      await scope.close().catch(error => this.#logCloseFailure(error));
    });
  }

  #remember(settingsKey: string, launch: LaunchSettings): void {
    if (settingsKey === this.#defaultSettingsKey) return;
    this.#recentLaunches.delete(settingsKey);
    this.#recentLaunches.set(settingsKey, { launch, until: addMs(this.#parts.clock.now(), LAUNCH_RETENTION_MS) });
    const [oldest] = this.#recentLaunches.keys();
    if (this.#recentLaunches.size > this.#parts.size && oldest !== undefined) this.#recentLaunches.delete(oldest);
  }

  #missingLaunch(): LaunchSettings | undefined {
    if (this.#countUnclaimed(this.#defaultSettingsKey) < this.#parts.size) return this.#parts.defaultSettings;
    for (const [settingsKey, { launch }] of this.#recentLaunches)
      if (this.#countUnclaimed(settingsKey) === 0) return launch;
    return undefined;
  }

  /** The number of browsers with these settings that are ready or being started, and that no create has claimed. */
  #countUnclaimed(settingsKey: string): number {
    const unclaimedBrowsers = [...this.#idleBrowsers, ...this.#pendingBrowsers.filter(({ isPromised }) => !isPromised)];
    return unclaimedBrowsers.filter(one => one.settingsKey === settingsKey).length;
  }

  #logCloseFailure(error: unknown): void {
    this.#parts.log.error('warm.close_failed', { reason: reason(error) });
  }

  async #endUnwanted(): Promise<number> {
    const now = this.#parts.clock.now();
    for (const [settingsKey, { until }] of this.#recentLaunches)
      if (until <= now) this.#recentLaunches.delete(settingsKey);
    const isWanted = (one: IdleBrowser): boolean =>
      this.#isCurrent(one) &&
      one.replaceAt > now &&
      (one.settingsKey === this.#defaultSettingsKey || this.#recentLaunches.has(one.settingsKey));
    const unwantedBrowsers = this.#idleBrowsers.filter(one => !isWanted(one));
    for (const one of unwantedBrowsers) this.#idleBrowsers.splice(this.#idleBrowsers.indexOf(one), 1);
    await Promise.all(unwantedBrowsers.map(one => one.bootedBrowser.scope.close()));
    return unwantedBrowsers.length;
  }

  /**
   * Whether the browser was started from the installed Chromium. While Chromium is being replaced, every browser counts
   * as current.
   */
  #isCurrent({ programId, launch }: IdleBrowser): boolean {
    const installedProgramId = this.#parts.browserHost.programId(launch);
    return installedProgramId === undefined || programId === installedProgramId;
  }

  #isBackingOff(): boolean {
    return this.#retryAt !== undefined && this.#retryAt > this.#parts.clock.now();
  }
}
