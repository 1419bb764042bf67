// Shuts down a browser so that its profile contains everything that its pages have stored.
import { reason } from '../../kit/fault.ts';
import type { Log } from '../../kit/log.ts';
import { withTimeout } from '../../kit/wait.ts';
import type { LiveSession } from '../sessions/live.ts';

/**
 * The process in which Chromium keeps the local storage of its pages. A page's write is sent to it without an answer,
 * and it delays writing to disk for 5 s or until the renderer of the page has ended. Chromium does not wait for this
 * process when it exits, and the process then ends at once (measured with a stopped process). `chromium-headless-shell`
 * has no such process.
 */
const STORAGE_PROCESS = '--utility-sub-type=storage.mojom.StorageService';
const RENDERER = '--type=renderer';
/** How long the storage process may take to receive what the pages have written. A page may write without a pause. */
const RECEIVE_MAX_MS = 2_000;
/** How long pages may take to close. Their scripts run once more, and may store something. */
const CLOSE_PAGES_MAX_MS = 1_000;
const KILL_MAX_MS = 1_000;
/** How long the storage process may take to write to disk. */
const WRITE_MAX_MS = 3_000;
/**
 * Time within which Chromium must shut down. After that time, Chromium is killed, and its profile is not saved. A
 * shutdown usually takes 250 ms.
 */
const SHUTDOWN_MAX_MS = 5_000;

/** Returns whether the browser exited by itself, which means that its profile is complete. */
export async function shutDownCleanly(session: LiveSession, log: Log): Promise<boolean> {
  const { browser, box } = session;
  await writeLocalStorage(session).catch(error =>
    log.warn('context.local_storage_unwritten', { sessionId: session.id, reason: reason(error) }),
  );
  await browser.shutDown();
  const exit = await withTimeout(SHUTDOWN_MAX_MS, 'the browser to close', () => box.whenGone).catch(reason);
  return typeof exit === 'object' && exit.why === 'exited';
}

/** Makes Chromium write the local storage of all pages to disk. Goes on if pages or renderers are slow to end. */
async function writeLocalStorage({ browser, box }: LiveSession): Promise<void> {
  await box.waitUntilAsleep(STORAGE_PROCESS, RECEIVE_MAX_MS).catch(() => {});
  await browser.closePages(CLOSE_PAGES_MAX_MS).catch(() => {});
  // A renderer that also runs a service worker does not end with its pages.
  await box.kill(RENDERER, KILL_MAX_MS).catch(() => {});
  await box.waitUntilAsleep(STORAGE_PROCESS, WRITE_MAX_MS);
}
