// A Chromium as somebody starts it by hand: the same program with the same switches, but with a DevTools port, without
// our jail, egress proxy and limits, as an ordinary user and so with Chromium's own sandbox. What sessions are compared with.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { switches } from '../../server/engines/browser/switches.ts';
import { findChromium } from '../../server/engines/slots/chromium.ts';
import { within } from '../../server/kit/wait.ts';
import { CdpClient } from './cdp.ts';

export const CHROMIUM = findChromium() ?? '';
const READY_MS = 60_000;
const EXIT_MS = 60_000;
/** Root is refused the sandbox. */
const NOBODY = 65_534;
const NOT_BY_HAND = /^--(remote-debugging-pipe|proxy-server|proxy-bypass-list)/;

export interface ByHandWish {
  /** A profile to begin with a copy of. */
  readonly profile?: string;
  /** The copy is made and the program runs: from here on it is Chromium's own time. */
  readonly spawned?: () => void;
}

export class ByHand {
  readonly #child: ChildProcess;
  readonly #folder: string;
  readonly url: string;

  private constructor(child: ChildProcess, folder: string, url: string) {
    this.#child = child;
    this.#folder = folder;
    this.url = url;
  }

  /** Returns when its DevTools port listens. */
  static async start({ profile, spawned }: ByHandWish = {}): Promise<ByHand> {
    const folder = mkdtempSync(join(tmpdir(), 'berth-by-hand-'));
    if (profile !== undefined) copyFor(NOBODY, profile, join(folder, 'profile'));
    const own = switches({ folder, egressPort: 0, sandbox: true }).filter(each => !NOT_BY_HAND.test(each));
    const child = spawn(CHROMIUM, ['--remote-debugging-port=0', ...own], {
      stdio: ['ignore', 'ignore', 'pipe'],
      detached: true,
      env: { PATH: '/usr/bin:/bin', HOME: folder },
      ...ordinaryUser(folder),
    });
    spawned?.();
    endWithThisProcess(child, folder);
    try {
      const url = await within(READY_MS, 'Chromium to name its DevTools port', () => portOf(child));
      return new ByHand(child, folder, url);
    } catch (error) {
      killGroup(child);
      removeProfile(folder);
      throw error;
    }
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Every page gets this many pixels, but the first where a bar of Chromium's own takes some of them. */
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

  /** As a careful script does it: asks it to close, waits until it is gone, removes its profile; `keep` is shown it first. */
  async close(keep: (profile: string) => void = () => {}): Promise<void> {
    const exited = once(this.#child, 'exit');
    const asking = await CdpClient.connect(this.url);
    asking.ask('Browser.close').catch(() => {}); // it may be gone before it has answered
    await within(EXIT_MS, 'Chromium to end', () => exited).finally(() => killGroup(this.#child));
    keep(join(this.#folder, 'profile'));
    removeProfile(this.#folder);
  }
}

function copyFor(uid: number, from: string, to: string): void {
  cpSync(from, to, { recursive: true });
  if (process.getuid?.() !== 0) return;
  for (const name of ['', ...readdirSync(to, { recursive: true, encoding: 'utf8' })])
    chownSync(join(to, name), uid, uid);
}

function ordinaryUser(folder: string): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  chownSync(folder, NOBODY, NOBODY);
  return { uid: NOBODY, gid: NOBODY };
}

async function portOf(child: ChildProcess): Promise<string> {
  if (!child.stderr) throw new Error('Chromium was started without an error stream');
  for await (const line of createInterface(child.stderr)) {
    const url = /^DevTools listening on (ws:\S+)/.exec(line)?.[1];
    if (url === undefined) continue;
    child.stderr.resume();
    return url;
  }
  throw new Error('Chromium ended before it listened');
}

/** Its last processes may still write for a moment. */
const removeProfile = (folder: string): void => rmSync(folder, { recursive: true, force: true, maxRetries: 5 });

function killGroup(child: ChildProcess): void {
  try {
    process.kill(-(child.pid ?? 0), 'SIGKILL');
  } catch {} // it is gone already
}

/** A run that is cut off leaves no browser and no profile. */
function endWithThisProcess(child: ChildProcess, folder: string): void {
  const end = (): void => {
    killGroup(child);
    removeProfile(folder);
  };
  process.once('exit', end);
  child.once('exit', () => process.off('exit', end));
}
