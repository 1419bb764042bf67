// A browser of this machine that is not a session: that of a person who uses the console, or that of a player. Headless
// shell renders with the same engine as Chromium, but opens no window for each context, with a user interface in its
// own pages.
import { type Browser, chromium } from 'playwright-core';
import { findBrowser, findChromium } from '../../server/engines/slots/chromium.ts';

export function launchOutside(): Promise<Browser> {
  const executablePath = findBrowser('headless-shell') ?? findChromium();
  // Gives text the same widths as in Chromium.
  const args = ['--no-sandbox', '--font-render-hinting=medium'];
  return chromium.launch({ ...(executablePath ? { executablePath } : {}), args });
}
