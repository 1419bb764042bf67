// Starts a browser: its box, its egress proxy and the connection to Chromium. A session gets a browser that is started
// for it, or one from the warm pool.
import type { Box } from '../../engines/slots/slots.ts';
import type { BoxJson } from '../../engines/store/rows/sessions.ts';
import type { SessionId } from '../../kit/ids.ts';
import { Scope } from '../../kit/scope.ts';
import type { Preparation } from './attendance.ts';
import type { Browser, BrowserHost, SessionEgress } from './browser-host.ts';
import type { LaunchSettings } from './settings.ts';

/** On an idle machine, the first page exists after 200 ms. A warm browser may get little processor time. */
const CONNECT_TIMEOUT_MS = 25_000;

export interface BootedBrowser {
  readonly box: Box;
  readonly egress: SessionEgress;
  readonly browser: Browser;
  /** Closes the box, the proxy and the connection. */
  readonly scope: Scope;
}

export interface BootRequest {
  /** The name of the box: the session's id, or an id that no session has. */
  readonly id: SessionId;
  readonly launch: LaunchSettings;
  readonly background: boolean;
  /** The time limit until the first page exists, once the box is running. Defaults to `CONNECT_TIMEOUT_MS`. */
  readonly connectTimeoutMs?: number;
  readonly preparation?: Preparation;
  /** Called when the box is running, before anything is sent to the browser, so that the box can be recorded. */
  readonly onBoxRunning?: (box: Box) => Promise<void>;
}

/** Returns the data about a box for the row of its session, so that a later process can find the box. */
export const boxJsonOf = (box: Box): BoxJson => ({ ...box.record, id: box.session });

export async function boot(
  browserHost: BrowserHost,
  request: BootRequest,
  signal: AbortSignal,
): Promise<BootedBrowser> {
  const box = await browserHost.startBox(request, signal);
  return equip(browserHost, box, async () => {
    await request.onBoxRunning?.(box);
    return browserHost.connectBrowser(box, request.connectTimeoutMs ?? CONNECT_TIMEOUT_MS, signal);
  });
}

/** Like `equip`, for a box of a previous process. */
export function equipAdopted(browserHost: BrowserHost, box: Box, signal: AbortSignal): Promise<BootedBrowser> {
  return equip(browserHost, box, () => browserHost.adoptBrowser(box, signal));
}

async function equip(browserHost: BrowserHost, box: Box, connect: () => Promise<Browser>): Promise<BootedBrowser> {
  const scope = new Scope();
  scope.own(box);
  try {
    const egress = scope.own(browserHost.openEgress(box));
    const browser = scope.own(await Promise.race([connect(), rejectWhenGone(box)]));
    return { box, egress, browser, scope };
  } catch (error) {
    await scope.close();
    throw error;
  }
}

async function rejectWhenGone(box: Box): Promise<never> {
  const end = await box.whenGone;
  throw new Error(`the browser stopped while it was starting (${end.detail}): ${box.stderrTail()}`);
}
