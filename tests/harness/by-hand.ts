// A Chromium that is started without Berth: the same program and switches, but with a DevTools port, without our jail,
// egress proxy and limits, and as an ordinary user, so that Chromium's own sandbox is active. Tests compare sessions
// with this Chromium.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { SPARE_RENDERER_FEATURE, switches } from '../../server/engines/browser/switches.ts';
import { findChromium } from '../../server/engines/slots/chromium.ts';
import { withTimeout } from '../../server/kit/wait.ts';
import { CdpClient } from './cdp.ts';

export const CHROMIUM_PATH = findChromium() ?? '';
const READY_TIMEOUT_MS = 60_000;
const EXIT_TIMEOUT_MS = 60_000;
/** An unprivileged user id, because Chromium refuses to run its sandbox as root. */
const NOBODY_UID = 65_534;
/**
 * Switches that are left out. `animation-duration-scale` only saves CPU time and would not be set for a Chromium that
 * is started by hand. SPARE_RENDERER_FEATURE is removed for the same reason.
 */
const EXCLUDED_SWITCHES = /^--(remote-debugging-pipe|proxy-server|proxy-bypass-list|animation-duration-scale)/;

export interface PlainChromiumOptions {
  /** A profile that is copied before the start. */
  readonly profile?: string;
  /**
   * Called once the profile has been copied and Chromium has been started, so that a test can measure Chromium's own
   * start time.
   */
  readonly onSpawned?: () => void;
}

export class PlainChromium {
  readonly #child: ChildProcess;
  readonly #folder: string;
  readonly url: string;

  private constructor(child: ChildProcess, folder: string, url: string) {
    this.#child = child;
    this.#folder = folder;
    this.url = url;
  }

  /** Starts Chromium. Resolves when its DevTools port is open. */
  static async start({ profile, onSpawned }: PlainChromiumOptions = {}): Promise<PlainChromium> {
    const folder = mkdtempSync(join(tmpdir(), 'berth-by-hand-'));
    if (profile !== undefined) copyFor(NOBODY_UID, profile, join(folder, 'profile'));
    const switchList = switches({ folder, egressPort: 0, hasSandbox: true })
      .filter(each => !EXCLUDED_SWITCHES.test(each))
      .map(each => each.replace(`,${SPARE_RENDERER_FEATURE}`, ''));
    const child = spawn(CHROMIUM_PATH, ['--remote-debugging-port=0', ...switchList], {
      stdio: ['ignore', 'ignore', 'pipe'],
      detached: true,
      env: { PATH: '/usr/bin:/bin', HOME: folder },
      ...prepareOrdinaryUser(folder),
    });
    onSpawned?.();
    endWithThisProcess(child, folder);
    try {
      const url = await withTimeout(READY_TIMEOUT_MS, 'Chromium to print the address of its DevTools port', () =>
        waitForUrl(child),
      );
      return new PlainChromium(child, folder, url);
    } catch (error) {
      killGroup(child);
      removeProfile(folder);
      throw error;
    }
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Gives every page this size. The first page is smaller if an infobar of Chromium takes up part of it. */
  async resize(size: { readonly width: number; readonly height: number }): Promise<void> {
    const client = await CdpClient.connect(this.url);
    const { targetId } = await client.send('Target.createTarget', { url: 'about:blank' });
    const { sessionId } = await client.send('Target.attachToTarget', { targetId, flatten: true });
    const { screenInfos } = await client.send('Emulation.getScreenInfos', {}, String(sessionId));
    const [screen] = Array.isArray(screenInfos) ? screenInfos : [];
    await client.send('Emulation.updateScreen', { screenId: screen?.id, ...size }, String(sessionId));
    const { windowId } = await client.send('Browser.getWindowForTarget', { targetId });
    await client.send('Browser.setContentsSize', { windowId, ...size });
    await client.send('Target.closeTarget', { targetId });
    await client.close();
  }

  /**
   * Asks the browser to close, waits until it has exited, calls `readProfile` with the folder of the profile, and then
   * removes the profile.
   */
  async close(readProfile: (profile: string) => void = () => {}): Promise<void> {
    const exit = once(this.#child, 'exit');
    const client = await CdpClient.connect(this.url);
    client.ask('Browser.close').catch(() => {}); // the browser may exit before it responds
    await withTimeout(EXIT_TIMEOUT_MS, 'Chromium to end', () => exit).finally(() => killGroup(this.#child));
    readProfile(join(this.#folder, 'profile'));
    removeProfile(this.#folder);
  }
}

function copyFor(uid: number, from: string, to: string): void {
  cpSync(from, to, { recursive: true });
  if (process.getuid?.() !== 0) return;
  for (const name of ['', ...readdirSync(to, { recursive: true, encoding: 'utf8' })])
    chownSync(join(to, name), uid, uid);
}

function prepareOrdinaryUser(folder: string): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  chownSync(folder, NOBODY_UID, NOBODY_UID);
  return { uid: NOBODY_UID, gid: NOBODY_UID };
}

async function waitForUrl(child: ChildProcess): Promise<string> {
  if (!child.stderr) throw new Error('Chromium was started without stderr');
  for await (const line of createInterface(child.stderr)) {
    const url = /^DevTools listening on (ws:\S+)/.exec(line)?.[1];
    if (url === undefined) continue;
    child.stderr.resume();
    return url;
  }
  throw new Error('Chromium exited before its DevTools port was open');
}

/** Removes the profile. The last processes of the browser may still be writing for a moment. */
const removeProfile = (folder: string): void => rmSync(folder, { recursive: true, force: true, maxRetries: 5 });

function killGroup(child: ChildProcess): void {
  try {
    process.kill(-(child.pid ?? 0), 'SIGKILL');
  } catch {} // the processes have already ended
}

/** Ends the browser and removes its folder when the test process exits. */
function endWithThisProcess(child: ChildProcess, folder: string): void {
  const end = (): void => {
    killGroup(child);
    removeProfile(folder);
  };
  process.once('exit', end);
  child.once('exit', () => process.off('exit', end));
}
