// Wiring of DevTools: where its files stand, and the Chromium that is started for reading them, jailed like any other and
// without a way out.
import { join } from 'node:path';
import type { Config } from '../config.ts';
import { FrontEnd } from '../domain/live/front-end.ts';
import { boot } from '../domain/sessions/boot.ts';
import type { BrowserHost } from '../domain/sessions/browser-host.ts';
import type { Clock } from '../kit/clock.ts';
import type { Log } from '../kit/log.ts';

/** Sessions may open nothing of `devtools:`; this browser opens nothing else. */
const LAUNCH = { policies: { URLBlocklist: [] } };

export interface DevtoolsWish {
  readonly config: Config;
  readonly browserHost: BrowserHost;
  readonly clock: Clock;
  readonly log: Log;
}

export const openFrontEnd = ({ config, browserHost, clock, log }: DevtoolsWish): FrontEnd =>
  new FrontEnd({
    folder: join(config.dataDir, 'devtools'),
    read: async (id, signal) => {
      const { browser, scope } = await boot(browserHost, { id, launch: LAUNCH, background: false }, signal);
      try {
        return { product: browser.version.product, files: await browser.readFrontEnd() };
      } finally {
        await scope.close();
      }
    },
    clock,
    log,
  });
