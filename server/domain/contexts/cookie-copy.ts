// Copies the cookies of a running session every few seconds, encrypted, if the session saves to a context. If the
// browser is killed, only the logins of the last few seconds are lost.
import type { Profiles, Seal, Staging } from '../../engines/profiles/profiles.ts';
import { reason } from '../../kit/fault.ts';
import type { Runtime } from '../../kit/runtime.ts';
import type { Browser } from '../sessions/browser-host.ts';

const COPY_INTERVAL_MS = 5_000;

export interface CookieCopyOptions extends Pick<Runtime, 'clock' | 'log'> {
  readonly browser: Pick<Browser, 'cookies'>;
  readonly profiles: Profiles;
  readonly staging: Staging;
  readonly seal: Seal;
}

export class CookieCopy {
  readonly #options: CookieCopyOptions;
  readonly #stopController = new AbortController();
  readonly #copyLoop: Promise<void>;
  #lastCopiedText: string | undefined;

  private constructor(options: CookieCopyOptions) {
    this.#options = options;
    this.#copyLoop = this.#run();
  }

  static async begin(options: CookieCopyOptions): Promise<CookieCopy> {
    await options.staging.create();
    return new CookieCopy(options);
  }

  /** Makes the last copy. Rejects if the browser does not respond. */
  async finish(): Promise<void> {
    await this.close();
    await this.#copy();
  }

  async close(): Promise<void> {
    this.#stopController.abort();
    await this.#copyLoop;
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#options;
    while (!this.#stopController.signal.aborted) {
      await this.#copy().catch(error => {
        // A failure is expected while the browser is being shut down, and is not logged then.
        if (!this.#stopController.signal.aborted) log.warn('context.cookies_not_copied', { reason: reason(error) });
      });
      await clock.sleep(COPY_INTERVAL_MS, this.#stopController.signal).catch(() => {});
    }
  }

  async #copy(): Promise<void> {
    const { browser, profiles, staging, seal } = this.#options;
    const cookies = await browser.cookies();
    const text = JSON.stringify(cookies);
    if (text === this.#lastCopiedText) return;
    await staging.writeCookies(await profiles.sealCookies(cookies, seal));
    this.#lastCopiedText = text;
  }
}
