// Warm browsers, so that a create need not wait for Chromium to start: some with the settings of an empty create, some with
// settings that were requested recently. A browser is claimed once and never returned.
import type { Box } from '../../engines/slots/slots.ts';
import { plus } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import { newId, type SessionId } from '../../kit/ids.ts';
import type { Runtime } from '../../kit/runtime.ts';
import { within } from '../../kit/wait.ts';
import { type Booted, boot } from './boot.ts';
import type { BrowserHost } from './browser-host.ts';
import { claimSettings, fingerprint, type LaunchSettings } from './settings.ts';

/** A browser that waited this long is replaced. */
const WAIT_MAX_MS = 30 * 60_000;
/** Settings that were not requested for this long are forgotten. */
const RECENT_MS = 10 * 60_000;
const START_MS = 30_000;
const BACKOFF_LEAST_MS = 1_000;
const BACKOFF_MOST_MS = 60_000;
/** Failed starts in a row after which /readyz reports it. */
const FAILURES_SICK = 3;

interface Waiting {
  readonly print: string;
  readonly launch: LaunchSettings;
  readonly booted: Booted;
  /** The Chromium that it was started from. */
  readonly edition: string | undefined;
  readonly replaceAt: Date;
}

/** A browser that is being started. A create that finds no warm browser may claim it. */
interface Coming {
  readonly print: string;
  readonly arrived: PromiseWithResolvers<Booted | undefined>;
  box?: Box;
  isPromised: boolean;
}

export interface WarmPoolParts extends Pick<Runtime, 'clock' | 'log'> {
  /** Browsers with the settings of an empty create; at most as many more have recent settings. */
  readonly size: number;
  /** Of an empty create. */
  readonly usual: LaunchSettings;
  readonly browserHost: BrowserHost;
  /** Sessions are being started: refilling waits for them, and tend() is called when they are done. */
  readonly busy: () => boolean;
  readonly counted: (outcome: 'hit' | 'miss') => void;
}

export class WarmPool {
  readonly #parts: WarmPoolParts;
  readonly #usualPrint: string;
  readonly #waiting: Waiting[] = [];
  readonly #recent = new Map<string, { launch: LaunchSettings; until: Date }>();
  readonly #closing = new AbortController();
  #coming: Coming | undefined;
  #tending: Promise<void> = Promise.resolve();
  #failures = 0;
  #notBefore: Date | undefined;

  constructor(parts: WarmPoolParts) {
    this.#parts = parts;
    this.#usualPrint = fingerprint(parts.usual);
  }

  get size(): number {
    return this.#waiting.length;
  }

  /** Whether browsers start. */
  get health(): { ok: boolean; detail: string } {
    const ok = this.#failures < FAILURES_SICK;
    return {
      ok,
      detail: ok ? `${this.#waiting.length} warm browsers` : `${this.#failures} browsers in a row did not start`,
    };
  }

  /** A browser with these settings, which the caller now owns; undefined if there is none. */
  async claim(launch: LaunchSettings, signal: AbortSignal): Promise<Booted | undefined> {
    if (this.#parts.size === 0) return undefined;
    const print = fingerprint(launch);
    this.#remember(print, launch);
    const taken = this.#takeWaiting(print) ?? (await this.#takeComing(print, signal));
    this.#parts.counted(taken ? 'hit' : 'miss');
    return taken;
  }

  /** Reconciles: ends browsers that are old or no longer wanted, and starts missing ones one after the other. */
  async tend(): Promise<{ started: number; ended: number }> {
    const ended = await this.#endUnwanted();
    let started = 0;
    for (let missing = this.#next(); missing; missing = this.#next()) {
      const tending = this.#start(missing);
      this.#tending = tending;
      await tending;
      started++;
    }
    return { started, ended };
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error('the warm pool is closing'));
    await this.#tending;
    await Promise.all(this.#waiting.splice(0).map(one => one.booted.scope.close()));
  }

  #takeWaiting(print: string): Booted | undefined {
    const index = this.#waiting.findIndex(one => one.print === print && this.#isCurrent(one));
    return index < 0 ? undefined : this.#waiting.splice(index, 1)[0]?.booted;
  }

  /**
   * A browser that is being started is ready sooner than a new one. Before its box runs it has low priority, which cannot be
   * raised, so it is not claimed then. Undefined also when its start fails.
   */
  async #takeComing(print: string, signal: AbortSignal): Promise<Booted | undefined> {
    const coming = this.#coming;
    if (!coming?.box || coming.isPromised || coming.print !== print) return undefined;
    coming.isPromised = true;
    coming.box.raisePriority();
    try {
      return await within(START_MS, 'a browser that is coming', () => coming.arrived.promise, signal);
    } catch (error) {
      coming.isPromised = false;
      // It may have arrived meanwhile.
      void coming.arrived.promise.then(booted => booted?.scope.close());
      throw error;
    }
  }

  /** What to start now: nothing while a session is being started, which needs the processor time. */
  #next(): LaunchSettings | undefined {
    if (this.#closing.signal.aborted || this.#coming || this.#parts.busy() || this.#backingOff()) return undefined;
    return this.#missing();
  }

  async #start(launch: LaunchSettings): Promise<void> {
    const { browserHost, clock, log } = this.#parts;
    const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(START_MS)]);
    const edition = browserHost.edition(launch);
    const coming: Coming = { print: fingerprint(launch), arrived: Promise.withResolvers(), isPromised: false };
    this.#coming = coming;
    const stands = async (box: Box): Promise<void> => {
      coming.box = box;
    };
    try {
      const request = { id: newId<SessionId>(clock.now()), launch, background: true, stands };
      const booted = await boot(browserHost, request, signal);
      await this.#prepare(booted);
      this.#failures = 0;
      if (coming.isPromised) coming.arrived.resolve(booted);
      else this.#keep({ print: coming.print, launch, booted, edition, replaceAt: plus(clock.now(), WAIT_MAX_MS) });
    } catch (error) {
      coming.arrived.resolve(undefined);
      if (this.#closing.signal.aborted) return;
      this.#failures++;
      this.#notBefore = plus(clock.now(), Math.min(BACKOFF_MOST_MS, BACKOFF_LEAST_MS * 2 ** (this.#failures - 1)));
      log.warn('warm.start_failed', { failures: this.#failures, reason: reason(error) });
    } finally {
      this.#coming = undefined;
    }
  }

  /** Applies the default settings, so that they need not be applied again at the claim. */
  async #prepare({ browser, scope }: Booted): Promise<void> {
    try {
      await browser.applySettings(claimSettings({}));
    } catch (error) {
      await scope.close();
      throw error;
    }
  }

  /** A browser that dies while it waits is dropped at once, so that no session gets it. */
  #keep(waiting: Waiting): void {
    this.#waiting.push(waiting);
    const { box, browser, scope } = waiting.booted;
    void Promise.race([box.gone, browser.failed]).then(async () => {
      const index = this.#waiting.indexOf(waiting);
      if (index < 0) return;
      this.#waiting.splice(index, 1);
      this.#parts.log.warn('warm.died', { box: box.session });
      await scope.close();
    });
  }

  #remember(print: string, launch: LaunchSettings): void {
    if (print === this.#usualPrint) return;
    this.#recent.delete(print);
    this.#recent.set(print, { launch, until: plus(this.#parts.clock.now(), RECENT_MS) });
    const [oldest] = this.#recent.keys();
    if (this.#recent.size > this.#parts.size && oldest !== undefined) this.#recent.delete(oldest);
  }

  #missing(): LaunchSettings | undefined {
    const has = (print: string): number => this.#waiting.filter(one => one.print === print).length;
    if (has(this.#usualPrint) < this.#parts.size) return this.#parts.usual;
    for (const [print, { launch }] of this.#recent) if (has(print) === 0) return launch;
    return undefined;
  }

  async #endUnwanted(): Promise<number> {
    const now = this.#parts.clock.now();
    for (const [print, { until }] of this.#recent) if (until <= now) this.#recent.delete(print);
    const wanted = (one: Waiting): boolean =>
      this.#isCurrent(one) && one.replaceAt > now && (one.print === this.#usualPrint || this.#recent.has(one.print));
    const unwanted = this.#waiting.filter(one => !wanted(one));
    for (const one of unwanted) this.#waiting.splice(this.#waiting.indexOf(one), 1);
    await Promise.all(unwanted.map(one => one.booted.scope.close()));
    return unwanted.length;
  }

  /** Whether it was started from the installed Chromium. While Chromium is being replaced, every browser counts. */
  #isCurrent({ edition, launch }: Waiting): boolean {
    const installed = this.#parts.browserHost.edition(launch);
    return installed === undefined || edition === installed;
  }

  #backingOff(): boolean {
    return this.#notBefore !== undefined && this.#notBefore > this.#parts.clock.now();
  }
}
