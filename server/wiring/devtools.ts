// The wiring of DevTools: the folder with its files, and the Chromium that is started to read them. Like every browser,
// this Chromium runs in a jail. It has no network access.
import { join } from 'node:path';
import { FrontEnd } from '../domain/live/front-end.ts';
import { boot } from '../domain/sessions/boot.ts';
import type { BrowserHost } from '../domain/sessions/browser-host.ts';
import type { Runtime } from '../kit/runtime.ts';
import type { Foundation } from './foundation.ts';

/**
 * Headless shell has no `devtools:` addresses, so full Chromium is used. Sessions block these addresses. This browser
 * allows them, and opens no other addresses.
 */
const LAUNCH_SETTINGS = { engine: 'chromium', policies: { URLBlocklist: [] } } as const;

export const openFrontEnd = (
  { clock, log }: Runtime,
  { config }: Pick<Foundation, 'config'>,
  browserHost: BrowserHost,
): FrontEnd =>
  new FrontEnd({
    folder: join(config.dataDir, 'devtools'),
    read: async (id, signal) => {
      const { browser, scope } = await boot(browserHost, { id, launch: LAUNCH_SETTINGS, background: false }, signal);
      try {
        return { product: browser.version.product, files: await browser.readFrontEnd() };
      } finally {
        await scope.close();
      }
    },
    clock,
    log,
  });
