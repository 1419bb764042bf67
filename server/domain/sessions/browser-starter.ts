// Starts the browser of a session, or connects to one that a previous process started. If a step fails, the completed
// steps are undone in reverse order.
import type { Box, BoxRecord } from '../../engines/slots/slots.ts';
import type { SessionRow, SessionRows } from '../../engines/store/rows/sessions.ts';
import { reason } from '../../kit/fault.ts';
import type { SessionId } from '../../kit/ids.ts';
import type { Runtime } from '../../kit/runtime.ts';
import { WaitExpired, withDeadline } from '../../kit/wait.ts';
import { diskFull } from '../faults.ts';
import { type BootedBrowser, boot, boxJsonOf, equipAdopted } from './boot.ts';
import type { BrowserHost } from './browser-host.ts';
import { LiveSession } from './live.ts';
import { Presence, type PresenceParts } from './presence.ts';
import { claimSettings, launchSettings } from './settings.ts';
import type { StartGate } from './start-gate.ts';
import type { WarmPool } from './warm-pool.ts';
import type { Watchers } from './watchers.ts';

/** Time limit for starting or adopting the browser of a session. */
export const BROWSER_START_TIMEOUT_MS = 30_000;
/** Chromium's part of it, because users expect a browser that hangs to be reported within 15 seconds. */
const CONNECT_TIMEOUT_MS = 11_000;

export interface BrowserStarterParts extends Pick<Runtime, 'clock' | 'log' | 'trace'> {
  readonly browserHost: BrowserHost;
  readonly pool: WarmPool;
  readonly gate: StartGate;
  readonly rows: SessionRows;
  readonly presenceParts: PresenceParts;
  readonly watchers: Watchers;
}

const isCallerGone = ({ aborted, reason }: AbortSignal): boolean => aborted && !(reason instanceof WaitExpired);

export class BrowserStarter {
  readonly #parts: BrowserStarterParts;

  constructor(parts: BrowserStarterParts) {
    this.#parts = parts;
  }

  /** Refuses a create if little disk space is free, so that enough remains for sessions that are already running. */
  async assertDiskRoom(): Promise<void> {
    const refusal = diskFull(await this.#parts.browserHost.slots.readDiskRoom());
    if (refusal) throw refusal;
  }

  start(row: SessionRow, signal: AbortSignal): Promise<LiveSession> {
    return withDeadline(
      BROWSER_START_TIMEOUT_MS,
      'the browser to start',
      async deadlineSignal => {
        const newBrowser = await this.#boot(row, deadlineSignal);
        return this.#closeOnFailure(newBrowser, () => this.#createConfiguredSession(row, newBrowser, deadlineSignal));
      },
      signal,
    );
  }

  /** Adopts the browser of a session. Undefined if the browser has ended. */
  async adopt(row: SessionRow, boxId: SessionId, record: BoxRecord): Promise<LiveSession | undefined> {
    const { browserHost } = this.#parts;
    return withDeadline(BROWSER_START_TIMEOUT_MS, 'a running browser to be adopted', async deadlineSignal => {
      const box = await browserHost.slots.adopt(boxId, record, deadlineSignal);
      if (!box) return undefined;
      const adoptedBrowser = await equipAdopted(browserHost, box, deadlineSignal);
      return this.#closeOnFailure(adoptedBrowser, async () => {
        await this.#reapplySettings(row, adoptedBrowser);
        return this.#createLiveSession(row, adoptedBrowser, deadlineSignal);
      });
    });
  }

  /** A browser that refuses a setting is adopted nevertheless. */
  async #reapplySettings(row: SessionRow, { browser }: BootedBrowser): Promise<void> {
    await browser
      .reapplySettings(claimSettings(row.settings))
      .catch(error =>
        this.#parts.log.warn('session.settings_not_reapplied', { sessionId: row.id, reason: reason(error) }),
      );
  }

  async #boot(row: SessionRow, signal: AbortSignal): Promise<BootedBrowser> {
    const { browserHost, pool, trace, watchers } = this.#parts;
    const preparation = await trace.runInSpan('session.prepare', () => watchers.prepare(row, signal));
    const launch = launchSettings(row.settings, preparation);
    const needsOwnBrowser = preparation?.mounts || preparation?.fill;
    const claimedBrowser = needsOwnBrowser
      ? undefined
      : await trace.runInSpan('session.claim', () => pool.claim(launch, signal));
    if (claimedBrowser) return this.#attachToWarmBrowser(row, claimedBrowser);
    const onBoxRunning = (box: Box): Promise<void> => this.#recordBox(row, box);
    const request = {
      ...{ id: row.id, launch, background: false, connectTimeoutMs: CONNECT_TIMEOUT_MS, onBoxRunning },
      ...(preparation ? { preparation } : {}),
    };
    return trace.runInSpan('session.launch', async () => {
      try {
        const launchedBrowser = await this.#parts.gate.inTurn(() => boot(browserHost, request, signal), signal);
        pool.noteStart(true);
        return launchedBrowser;
      } catch (error) {
        // A failed start is not counted if the caller has added something to the browser, such as an extension, that
        // may be the cause.
        if (!needsOwnBrowser && !isCallerGone(signal)) pool.noteStart(false);
        throw error;
      }
    });
  }

  /**
   * Takes over a claimed warm browser. Its box is written to the row by the statement that sets the status to RUNNING.
   * If the process ends before that, the next process removes the box instead of adopting it.
   */
  #attachToWarmBrowser(row: SessionRow, warmBrowser: BootedBrowser): BootedBrowser {
    warmBrowser.box.claim();
    this.#logBox(row, warmBrowser.box);
    return warmBrowser;
  }

  /** Claims the box, and records it in the row. Called before anything is sent to a browser started for the session. */
  #recordBox(row: SessionRow, box: Box): Promise<void> {
    box.claim();
    this.#logBox(row, box);
    return this.#parts.rows.setBox(row.id, boxJsonOf(box), this.#parts.clock.now());
  }

  #logBox(row: SessionRow, box: Box): void {
    this.#parts.log.info('session.boxed', { sessionId: row.id, box: box.session, pid: box.record.pid });
  }

  async #createConfiguredSession(
    row: SessionRow,
    bootedBrowser: BootedBrowser,
    signal: AbortSignal,
  ): Promise<LiveSession> {
    await this.#parts.trace.runInSpan('browser.take', () =>
      bootedBrowser.browser.applySettings(claimSettings(row.settings)),
    );
    return this.#createLiveSession(row, bootedBrowser, signal);
  }

  async #createLiveSession(row: SessionRow, bootedBrowser: BootedBrowser, signal: AbortSignal): Promise<LiveSession> {
    const { watchers, presenceParts, log, trace } = this.#parts;
    bootedBrowser.egress.assign(row.id);
    const live = new LiveSession(row, bootedBrowser, new Presence(row, presenceParts), log, trace);
    try {
      await trace.runInSpan('session.attend', () => watchers.attend(live, row, signal));
      return live;
    } catch (error) {
      await live.endAttendances();
      throw error;
    }
  }

  async #closeOnFailure<T>(bootedBrowser: BootedBrowser, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      await bootedBrowser.scope.close();
      throw error;
    }
  }
}
