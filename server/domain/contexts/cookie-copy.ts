// While a session runs that will be saved, its cookies are copied aside every few seconds, sealed: a browser that is killed
// then loses seconds of logins and no more.
import type { Profiles, Seal, Staging } from '../../engines/profiles/profiles.ts';
import type { Clock } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import type { Log } from '../../kit/log.ts';
import type { Browser } from '../sessions/machinery.ts';

const EVERY_MS = 5_000;

export interface CookieCopyWish {
  readonly browser: Pick<Browser, 'cookies'>;
  readonly profiles: Profiles;
  readonly staging: Staging;
  readonly seal: Seal;
  readonly clock: Clock;
  readonly log: Log;
}

export class CookieCopy {
  readonly #wish: CookieCopyWish;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;
  #last: string | undefined;

  private constructor(wish: CookieCopyWish) {
    this.#wish = wish;
    this.#running = this.#run();
  }

  static async begin(wish: CookieCopyWish): Promise<CookieCopy> {
    await wish.staging.make();
    return new CookieCopy(wish);
  }

  /** The last copy. Rejects when the browser does not answer. */
  async finish(): Promise<void> {
    await this.close();
    await this.#copy();
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#wish;
    while (!this.#stop.signal.aborted) {
      await this.#copy().catch(error => {
        // A browser that is being ended does not answer any more.
        if (!this.#stop.signal.aborted) log.warn('context.cookies_not_copied', { reason: reason(error) });
      });
      await clock.sleep(EVERY_MS, this.#stop.signal).catch(() => {});
    }
  }

  async #copy(): Promise<void> {
    const { browser, profiles, staging, seal } = this.#wish;
    const cookies = await browser.cookies();
    const text = JSON.stringify(cookies);
    if (text === this.#last) return;
    await staging.writeCookies(await profiles.sealCookies(cookies, seal));
    this.#last = text;
  }
}
