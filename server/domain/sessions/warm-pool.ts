// Started browsers that wait for a session, so that a create need not wait for Chromium. Some equal what an empty create
// asks for; some have the settings that were asked for lately. A browser is handed out once and never taken back.
import { type Clock, plus } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import { newId, type SessionId } from '../../kit/ids.ts';
import type { Log } from '../../kit/log.ts';
import { type Booted, boot } from './boot.ts';
import type { Machinery } from './machinery.ts';
import { DEFAULT_LAUNCH, fingerprint, type LaunchSettings } from './settings.ts';

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
  readonly replaceAt: Date;
}

export interface WarmPoolParts {
  /** How many equal an empty create; at most as many again have recent settings. */
  readonly size: number;
  readonly machinery: Machinery;
  readonly clock: Clock;
  readonly log: Log;
  /** Sessions are being started right now: refilling waits for them. */
  readonly busy: () => boolean;
  readonly counted: (outcome: 'hit' | 'miss') => void;
  /** One was taken: somebody should tend soon. */
  readonly claimed: () => void;
}

export class WarmPool {
  readonly #parts: WarmPoolParts;
  readonly #waiting: Waiting[] = [];
  readonly #recent = new Map<string, { launch: LaunchSettings; until: Date }>();
  readonly #closing = new AbortController();
  #starting: Promise<void> | undefined;
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
  claim(launch: LaunchSettings): Booted | undefined {
    if (this.#parts.size === 0) return undefined;
    const print = fingerprint(launch);
    this.#remember(print, launch);
    const index = this.#waiting.findIndex(one => one.print === print);
    const [taken] = index < 0 ? [] : this.#waiting.splice(index, 1);
    this.#parts.counted(taken ? 'hit' : 'miss');
    this.#parts.claimed();
    return taken?.booted;
  }

  /** One step towards what should be: replaces what is old, ends what nobody wants, starts one that is missing. */
  async tend(): Promise<{ started: number; ended: number }> {
    if (this.#closing.signal.aborted) return { started: 0, ended: 0 };
    const ended = await this.#endUnwanted();
    const missing = this.#missing();
    if (!missing || this.#starting || this.#parts.busy() || this.#backingOff()) return { started: 0, ended };
    this.#starting = this.#start(missing).finally(() => {
      this.#starting = undefined;
    });
    await this.#starting;
    return { started: 1, ended };
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error('the warm pool is closing'));
    await this.#starting;
    await Promise.all(this.#waiting.splice(0).map(one => one.booted.scope.close()));
  }

  async #start(launch: LaunchSettings): Promise<void> {
    const { machinery, clock, log } = this.#parts;
    const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(START_MS)]);
    try {
      const wish = { id: newId<SessionId>(clock.now()), launch, background: true };
      const booted = await boot(machinery, wish, signal);
      this.#failures = 0;
      this.#keep({ print: fingerprint(launch), booted, replaceAt: plus(clock.now(), WAIT_MAX_MS) });
    } catch (error) {
      if (this.#closing.signal.aborted) return;
      this.#failures++;
      this.#notBefore = plus(clock.now(), Math.min(BACKOFF_MOST_MS, BACKOFF_LEAST_MS * 2 ** (this.#failures - 1)));
      log.warn('warm.start_failed', { failures: this.#failures, reason: reason(error) });
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
      one.replaceAt > now && (one.print === fingerprint(DEFAULT_LAUNCH) || this.#recent.has(one.print));
    const unwanted = this.#waiting.filter(one => !wanted(one));
    for (const one of unwanted) this.#waiting.splice(this.#waiting.indexOf(one), 1);
    await Promise.all(unwanted.map(one => one.booted.scope.close()));
    return unwanted.length;
  }

  #backingOff(): boolean {
    return this.#notBefore !== undefined && this.#notBefore > this.#parts.clock.now();
  }
}
