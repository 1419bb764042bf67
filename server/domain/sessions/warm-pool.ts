// Started browsers that wait for a session, so that a create need not wait for Chromium. Some equal what an empty create
// asks for; some have the settings that were asked for lately. A browser is handed out once and never taken back.
import type { Box } from '../../engines/slots/slots.ts';
import { type Clock, plus } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import { newId, type SessionId } from '../../kit/ids.ts';
import type { Log } from '../../kit/log.ts';
import { within } from '../../kit/wait.ts';
import { type Booted, boot } from './boot.ts';
import type { BrowserHost } from './browser-host.ts';
import { claimSettings, DEFAULT_LAUNCH, fingerprint, type LaunchSettings } from './settings.ts';

/** A browser that waited this long is replaced: its memory has grown stale, and nothing is lost. */
const WAIT_MAX_MS = 30 * 60_000;
/** Settings nobody asked for this long are forgotten. */
const RECENT_MS = 10 * 60_000;
const START_MS = 30_000;
const BACKOFF_LEAST_MS = 1_000;
const BACKOFF_MOST_MS = 60_000;
/** Browsers that fail one after the other before /readyz says so. */
const FAILURES_SICK = 3;

interface Waiting {
  readonly print: string;
  readonly booted: Booted;
  /** Of the Chromium that it was started from. */
  readonly edition: string | undefined;
  readonly replaceAt: Date;
}

/** A browser that is just being started. A create that would find nothing waiting takes it over. */
interface Coming {
  readonly print: string;
  readonly arrived: PromiseWithResolvers<Booted | undefined>;
  box?: Box;
  isPromised: boolean;
}

export interface WarmPoolParts {
  /** How many equal an empty create; at most as many again have recent settings. */
  readonly size: number;
  readonly browserHost: BrowserHost;
  readonly clock: Clock;
  readonly log: Log;
  /** Sessions are being started right now: refilling waits for them, and somebody tends when they are done. */
  readonly busy: () => boolean;
  readonly counted: (outcome: 'hit' | 'miss') => void;
}

export class WarmPool {
  readonly #parts: WarmPoolParts;
  readonly #waiting: Waiting[] = [];
  readonly #recent = new Map<string, { launch: LaunchSettings; until: Date }>();
  readonly #closing = new AbortController();
  #coming: Coming | undefined;
  #tending: Promise<void> = Promise.resolve();
  #failures = 0;
  #notBefore: Date | undefined;

  constructor(parts: WarmPoolParts) {
    this.#parts = parts;
  }

  get size(): number {
    return this.#waiting.length;
  }

  /** Whether browsers start at all; what is wrong otherwise. */
  get health(): { ok: boolean; detail: string } {
    const ok = this.#failures < FAILURES_SICK;
    return {
      ok,
      detail: ok ? `${this.#waiting.length} warm browsers` : `${this.#failures} browsers in a row did not start`,
    };
  }

  /** A browser that was started with these settings, or undefined. It is the caller's from now on. */
  async claim(launch: LaunchSettings, signal: AbortSignal): Promise<Booted | undefined> {
    if (this.#parts.size === 0) return undefined;
    const print = fingerprint(launch);
    this.#remember(print, launch);
    const taken = this.#takeWaiting(print) ?? (await this.#takeComing(print, signal));
    this.#parts.counted(taken ? 'hit' : 'miss');
    return taken;
  }

  /** Towards what should be: ends what is old or unwanted, starts what is missing, one after the other. */
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
   * What is half started is there sooner than what is not begun; but before its box stands it cannot be hastened, and gets
   * only what others leave. Undefined also when it does not come.
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
      // It may have arrived in this very moment.
      void coming.arrived.promise.then(booted => booted?.scope.close());
      throw error;
    }
  }

  /** What is to be started now. Nothing while somebody waits for a browser: it would take processor time from it. */
  #next(): LaunchSettings | undefined {
    if (this.#closing.signal.aborted || this.#coming || this.#parts.busy() || this.#backingOff()) return undefined;
    return this.#missing();
  }

  async #start(launch: LaunchSettings): Promise<void> {
    const { browserHost, clock, log } = this.#parts;
    const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(START_MS)]);
    const edition = browserHost.edition();
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
      else this.#keep({ print: coming.print, booted, edition, replaceAt: plus(clock.now(), WAIT_MAX_MS) });
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

  /** What most sessions ask for is not asked of it again when it is claimed. */
  async #prepare({ browser, scope }: Booted): Promise<void> {
    try {
      await browser.applySettings(claimSettings({}));
    } catch (error) {
      await scope.close();
      throw error;
    }
  }

  /** One that dies while it waits is dropped at once, so that nobody is given a dead browser. */
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
    if (print === fingerprint(DEFAULT_LAUNCH)) return;
    this.#recent.delete(print);
    this.#recent.set(print, { launch, until: plus(this.#parts.clock.now(), RECENT_MS) });
    const [oldest] = this.#recent.keys();
    if (this.#recent.size > this.#parts.size && oldest !== undefined) this.#recent.delete(oldest);
  }

  #missing(): LaunchSettings | undefined {
    const has = (print: string): number => this.#waiting.filter(one => one.print === print).length;
    if (has(fingerprint(DEFAULT_LAUNCH)) < this.#parts.size) return DEFAULT_LAUNCH;
    for (const [print, { launch }] of this.#recent) if (has(print) === 0) return launch;
    return undefined;
  }

  async #endUnwanted(): Promise<number> {
    const now = this.#parts.clock.now();
    for (const [print, { until }] of this.#recent) if (until <= now) this.#recent.delete(print);
    const wanted = (one: Waiting): boolean =>
      this.#isCurrent(one) &&
      one.replaceAt > now &&
      (one.print === fingerprint(DEFAULT_LAUNCH) || this.#recent.has(one.print));
    const unwanted = this.#waiting.filter(one => !wanted(one));
    for (const one of unwanted) this.#waiting.splice(this.#waiting.indexOf(one), 1);
    await Promise.all(unwanted.map(one => one.booted.scope.close()));
    return unwanted.length;
  }

  /** Of the Chromium that is installed now. While that is being replaced, what there is serves. */
  #isCurrent({ edition }: Waiting): boolean {
    const installed = this.#parts.browserHost.edition();
    return installed === undefined || edition === installed;
  }

  #backingOff(): boolean {
    return this.#notBefore !== undefined && this.#notBefore > this.#parts.clock.now();
  }
}
