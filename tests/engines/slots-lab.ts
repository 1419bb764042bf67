// Shared by the tests of slots: a temporary data folder, guests in boxes, and checks for leftovers.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MARK_VARIABLE } from '../../server/engines/slots/box-processes.ts';
import { CdpPipe } from '../../server/engines/slots/cdp-pipe.ts';
import type { Limits } from '../../server/engines/slots/cgroups.ts';
import { findBrowser } from '../../server/engines/slots/chromium.ts';
import { openSlots } from '../../server/engines/slots/open-slots.ts';
import { markedProcesses } from '../../server/engines/slots/process-table.ts';
import type { Box, BoxLayout, BoxRequest, Form, Program, Slots } from '../../server/engines/slots/slots.ts';
import { systemClock } from '../../server/kit/clock.ts';
import { readIfPresent } from '../../server/kit/created-file.ts';
import { newId, type SessionId } from '../../server/kit/ids.ts';
import { silentLog } from '../../server/kit/log.ts';

const MIB = 1024 ** 2;
const GUEST_FOLDER = import.meta.dirname;
const LIFETIME_MS = 120_000;
export const START_TIMEOUT_MS = 60_000;

export const LIMITS: Limits = { memoryBytes: 1024 * MIB, diskBytes: 512 * MIB, pids: 2000, cpus: 2 };

export const makeDataDir = (): Promise<string> => mkdtemp(join(tmpdir(), 'berth-slots-'));
export const removeDataDir = (dataDir: string): Promise<void> => rm(dataDir, { recursive: true, force: true });

export function openTestSlots(form: Form, dataDir: string, limits: Partial<Limits> = {}, size = 3): Promise<Slots> {
  const isolation = form === 'process' ? 'process' : 'slot';
  return openSlots({
    ...{ dataDir, size, isolation, limits: { ...LIMITS, ...limits }, isListeningOnLoopback: true },
    ...{ log: silentLog, clock: systemClock },
  });
}

export const newSession = (): SessionId => newId<SessionId>(systemClock.now());

/** The guest program, with its path in the box. */
export function guest(layout: BoxLayout): Program {
  const folder = layout.hasJail ? '/guest' : GUEST_FOLDER;
  const mounts = layout.hasJail ? [{ from: GUEST_FOLDER, to: '/guest' }] : [];
  return { executable: process.execPath, args: [`${folder}/slots-guest.cjs`], mounts };
}

export function chromium(layout: BoxLayout): Program {
  const executable = findBrowser(process.env.BERTH_TEST_ENGINE === 'headless-shell' ? 'headless-shell' : 'chromium');
  if (!executable)
    throw new Error('the browser that BERTH_TEST_ENGINE selects (default: chromium) was not found; install it');
  const args = [
    '--headless=new',
    '--no-first-run',
    '--disable-gpu',
    '--disable-breakpad',
    '--disable-background-networking',
    '--disable-component-update',
    '--gaia-url=http://127.0.0.1:1',
    '--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup,WebUIOmniboxFullPopup,NetworkTimeServiceQuerying',
    `--proxy-server=http://127.0.0.1:${layout.egressPort}`,
    '--proxy-bypass-list=<-loopback>',
    `--user-data-dir=${layout.folder}/p`,
    '--remote-debugging-pipe',
    ...(layout.hasOwnSandbox ? [] : ['--no-sandbox']),
    'about:blank',
  ];
  return { executable, args, mounts: [] };
}

export const startOptions = (
  session: SessionId,
  program: BoxRequest['program'] = guest,
  lifetimeMs = LIFETIME_MS,
): BoxRequest => ({
  ...{ session, program, lifetimeMs },
});

export const startGuest = (slots: Slots, session = newSession()): Promise<Box> =>
  slots.start(startOptions(session), AbortSignal.timeout(START_TIMEOUT_MS));

/** Runs the code in the guest, as the body of an async function. */
export async function runInGuest(box: Pick<Box, 'fifoIn' | 'fifoOut'>, code: string): Promise<unknown> {
  const pipe = new CdpPipe(box.fifoIn, box.fifoOut);
  try {
    return (await pipe.call('run', { code })).value;
  } finally {
    pipe.close();
  }
}

/** Sends code without waiting for an answer, for code that ends the guest. */
export function sendWithoutReply(box: Box, code: string): void {
  const pipe = new CdpPipe(box.fifoIn, box.fifoOut);
  pipe.call('run', { code }).catch(() => {});
  void box.whenGone.then(() => pipe.close());
}

const installIdOf = (dataDir: string): string =>
  readIfPresent(join(dataDir, 'install-id')) ?? assert.fail('the data folder has no install id');

/** Returns the processes, folder, cgroups and mounts of this session that still exist on the machine. */
export function leftoversOf(dataDir: string, session: string): readonly string[] {
  const installId = installIdOf(dataDir);
  const processes = markedProcesses(MARK_VARIABLE).filter(({ mark }) => mark === `${installId}/${session}`);
  const folder = join(dataDir, 'sessions', session);
  return [
    ...processes.map(({ pid }) => `process ${pid}`),
    ...(existsSync(folder) ? [folder] : []),
    ...cgroupsNamed(session),
    ...(readFileSync('/proc/self/mountinfo', 'utf8').includes(session) ? ['a mount'] : []),
  ];
}

export const cgroupsOf = (dataDir: string): readonly string[] => cgroupsNamed(`berth-${installIdOf(dataDir)}`);

const CGROUP_DEPTH_MAX = 6;

function cgroupsNamed(name: string): readonly string[] {
  const paths: string[] = [];
  const look = (folder: string, depth: number): void => {
    for (const entry of foldersIn(folder)) {
      if (entry === name) paths.push(join(folder, entry));
      else if (depth < CGROUP_DEPTH_MAX) look(join(folder, entry), depth + 1);
    }
  };
  look('/sys/fs/cgroup', 0);
  return paths;
}

function foldersIn(folder: string): readonly string[] {
  try {
    const entries = readdirSync(folder, { withFileTypes: true });
    return entries.filter(entry => entry.isDirectory()).map(({ name }) => name);
  } catch {
    return [];
  }
}
