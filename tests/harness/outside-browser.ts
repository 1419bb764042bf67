// A browser on this machine that is not in a session, for a person who uses the console or for a player. Headless shell
// renders with the same engine as Chromium, but does not open a window for each context. The user interface of a window
// would add pages of its own.
import { type Browser, chromium } from 'playwright-core';
import { findBrowser, findChromium } from '../../server/engines/slots/chromium.ts';

export function launchOutsideBrowser(): Promise<Browser> {
  const executablePath = findBrowser('headless-shell') ?? findChromium();
  // `--font-render-hinting=medium` gives text the same widths as in Chromium.
  const args = ['--no-sandbox', '--font-render-hinting=medium'];
  return chromium.launch({ ...(executablePath ? { executablePath } : {}), args });
}
