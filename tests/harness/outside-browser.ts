// A browser of the machine that is no session: a person's, which shows the console, or a player's. Headless shell renders
// with the same engine as Chromium, but opens no window for each context, with its user interface in pages of its own.
import { type Browser, chromium } from 'playwright-core';
import { findBrowser, findChromium } from '../../server/engines/slots/chromium.ts';

export function launchOutside(): Promise<Browser> {
  const executablePath = findBrowser('headless-shell') ?? findChromium();
  // Texts get the widths that they have in Chromium.
  const args = ['--no-sandbox', '--font-render-hinting=medium'];
  return chromium.launch({ ...(executablePath ? { executablePath } : {}), args });
}
