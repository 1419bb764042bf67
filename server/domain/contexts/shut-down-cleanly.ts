// Shuts down a browser so that its profile contains what its pages have stored.
import { reason } from '../../kit/fault.ts';
import type { Log } from '../../kit/log.ts';
import { withTimeout } from '../../kit/wait.ts';
import type { LiveSession } from '../sessions/live.ts';

/**
 * The process in which Chromium keeps the local storage of its pages. A page's write is sent to it without an answer,
 * and it delays writing to disk for 5 s or until the renderer of the page has ended. Chromium does not wait for this
 * process when it exits, and the process then ends at once. `chromium-headless-shell` has no such process. See decision
 * 0102.
 */
const STORAGE_PROCESS = '--utility-sub-type=storage.mojom.StorageService';
const RENDERER = '--type=renderer';
/** How long the storage process may take to receive what pages have written. A page may write without a pause. */
const RECEIVE_MAX_MS = 1_000;
/** The same, for what they have written while they were being closed. */
const RECEIVE_LAST_MAX_MS = 500;
/** How long pages may take to close. Their scripts run once more, and may store something. */
const CLOSE_PAGES_MAX_MS = 500;
const KILL_MAX_MS = 500;
/** The time limit for all steps before the browser is told to exit. */
const WRITE_MAX_MS = 4_000;
/**
 * Time within which Chromium must exit. After that time, Chromium is killed, and its profile is not saved. It usually
 * takes 100 ms.
 */
const EXIT_MAX_MS = 5_000;

/** Returns whether the browser exited by itself, which means that its profile is not damaged. */
export async function shutDownCleanly(session: LiveSession, log: Log): Promise<boolean> {
  const { browser, box, id } = session;
  await withTimeout(WRITE_MAX_MS, 'local storage to be written', () => writeLocalStorage(session)).catch(error =>
    log.warn('context.local_storage_unwritten', { sessionId: id, reason: reason(error) }),
  );
  await browser.shutDown();
  const exit = await withTimeout(EXIT_MAX_MS, 'the browser to close', () => box.whenGone).catch(reason);
  return typeof exit === 'object' && exit.why === 'exited';
}

/** Makes Chromium write the local storage of all pages to disk. Pages that do not close in time are killed. */
async function writeLocalStorage({ browser, box }: LiveSession): Promise<void> {
  await box.waitUntilAsleep(STORAGE_PROCESS, RECEIVE_MAX_MS).catch(() => {});
  await browser.closePages(CLOSE_PAGES_MAX_MS).catch(() => {});
  await box.waitUntilAsleep(STORAGE_PROCESS, RECEIVE_LAST_MAX_MS).catch(() => {});
  await box.kill(RENDERER, KILL_MAX_MS); // A renderer that also runs a service worker does not end with its pages.
  await box.waitUntilAsleep(STORAGE_PROCESS, WRITE_MAX_MS);
}
