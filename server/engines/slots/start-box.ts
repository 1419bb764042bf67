// Starts one box: folder, cgroup, chain, egress listener. Undoes all of it when a step fails.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Server } from 'node:net';
import { constants } from 'node:os';
import type { Readable } from 'node:stream';
import { Fault, reason } from '../../kit/fault.ts';
import { Scope } from '../../kit/scope.ts';
import { until, WaitExpired, within } from '../../kit/wait.ts';
import { BoxProcesses, MARK_VARIABLE } from './box-processes.ts';
import { type ChainWish, chain, EGRESS_PORT_IN_JAIL, placeOf } from './chain.ts';
import { openLoopbackListener, portOf, takeListener } from './egress-listener.ts';
import type { Ground } from './ground.ts';
import { folderOfProgram } from './jail.ts';
import { bootId, findChild } from './process-table.ts';
import { type ExitCode, RunningBox } from './running-box.ts';
import type { SessionFolder } from './session-folder.ts';
import type { BoxPlace, BoxWish } from './slots.ts';
import { stageMounts } from './stage.ts';
import { StderrTail } from './stderr-tail.ts';
import { TOOL_PATH } from './tools.ts';

/** From the spawn until the last program of the chain runs; a loaded machine takes a while. */
const BOX_STANDS_WITHIN_MS = 10_000;
const LOOK_EVERY_MS = 5;
/** Of what an ordinary group gets. */
const BACKGROUND_SHARE = 0.1;
/** When a part of the chain is gone, how long until it shows that all of it is. */
const DIES_WITHIN_MS = 1000;
const OPEN_FILES = 16_384;

export async function startBox(
  ground: Ground,
  slot: number,
  wish: BoxWish,
  onLeft: () => void,
  signal: AbortSignal,
): Promise<RunningBox> {
  return tryToStartBox(ground, slot, wish, onLeft, signal).catch(error => {
    signal.throwIfAborted();
    throw new Fault('box_start_failed', `The browser's box could not be started: ${reason(error)}.`, {
      advice: 'Run `berth doctor` to see what is missing on this machine.',
    });
  });
}

/** As `startBox`, but what goes wrong is told as it is. */
export async function tryToStartBox(
  ground: Ground,
  slot: number,
  wish: BoxWish,
  onLeft: () => void,
  signal: AbortSignal,
): Promise<RunningBox> {
  const undo = new Scope();
  try {
    return await start(ground, slot, wish, onLeft, signal, undo);
  } catch (error) {
    await undo.close().catch(failure => ground.log.error('box.undo_failed', { reason: reason(failure) }));
    throw error;
  }
}

async function start(
  ground: Ground,
  slot: number,
  wish: BoxWish,
  onLeft: () => void,
  signal: AbortSignal,
  undo: Scope,
): Promise<RunningBox> {
  const uid = ground.uidOf(slot);
  const folder = ground.folderOf(wish.session);
  await folder.make(uid);
  undo.defer(() => folder.remove());
  const cgroup = ground.cgroups.make(wish.session, ground.limits);
  undo.defer(() => cgroup.remove());
  if (wish.background) cgroup.setShare(BACKGROUND_SHARE);
  const loopback = ground.form === 'process' ? await openLoopbackListener(0) : undefined;
  undo.defer(() => void loopback?.close());
  const place = placeOf(ground.form, folder.box, loopback ? portOf(loopback) : EGRESS_PORT_IN_JAIL, ground.ownSandbox);
  await folder.writeNotes({ egressPort: place.egressPort, cgroupFolders: cgroup.folders });
  signal.throwIfAborted();

  const mark = ground.markOf(wish.session);
  const child = run(await chainWish(ground, wish, place, folder, cgroup.joinFiles, uid), mark);
  const leader = leaderOf(child.process);
  const processes = new BoxProcesses({ leader, cgroup, jailed: place.jailed, mark });
  undo.defer(() => processes.end({ search: true }));
  const egress = await untilItStands(child, processes, loopback, signal);
  const record = { form: ground.form, slot, ...leader, bootId: bootId() };
  const { clock, log, limits } = ground;
  return new RunningBox({
    ...{ session: wish.session, record, place, folder, processes, cgroup, egress, child, onLeft, clock, log },
    diskBytes: limits.diskBytes,
  });
}

async function chainWish(
  ground: Ground,
  wish: BoxWish,
  place: BoxPlace,
  folder: SessionFolder,
  cgroupJoinFiles: readonly string[],
  uid: number | undefined,
): Promise<ChainWish> {
  const asked = wish.program(place);
  const program = { ...asked, mounts: [...folderOfProgram(asked.executable), ...asked.mounts] };
  const { path, box, uploads, notes } = folder;
  return {
    ...{ form: ground.form, uid, session: { path, box, uploads, notes }, cgroupJoinFiles, program },
    ...{ node: process.execPath, listener: ground.listenerFile },
    staged: ground.form === 'root' ? await stageMounts(program) : [],
    bounds: {
      lifetimeMs: wish.lifetimeMs,
      fileBytes: ground.limits.diskBytes,
      openFiles: Math.min(OPEN_FILES, ground.openFilesMax),
      ...(ground.cgroups.absent.includes('pids') && place.jailed ? { processes: ground.limits.pids } : {}),
      ...(ground.cgroups.absent.includes('memory') && place.jailed ? { dataBytes: ground.limits.memoryBytes } : {}),
    },
  };
}

interface Child {
  readonly process: ChildProcess;
  readonly exited: Promise<ExitCode>;
  readonly stderr: StderrTail;
}

/** In a session of its own, so that what ends our terminal or our group does not end the box. */
function run(wish: ChainWish, mark: string): Child {
  const { file, args } = chain(wish);
  const process = spawn(file, args, {
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe', 'ignore', 'ignore', 'ipc'],
    env: { PATH: TOOL_PATH, LANG: 'C.UTF-8', [MARK_VARIABLE]: mark },
    cwd: '/',
  });
  const exited = once(process, 'exit').then(([code, signal]) => exitCode(code, signal));
  exited.catch(() => {});
  return { process, exited, stderr: new StderrTail(stderrOf(process)) };
}

function stderrOf(child: ChildProcess): Readable {
  if (!child.stderr) throw new Error('the chain has no error output');
  return child.stderr;
}

function leaderOf(child: ChildProcess): { pid: number; startTicks: string } {
  const found = child.pid === undefined ? undefined : findChild(child.pid);
  if (!found) throw new Error('the chain could not be spawned');
  return found;
}

/** When its listener is ours and its pid 1 is there. If it died, that is the reason, whatever else failed through it. */
async function untilItStands(
  child: Child,
  processes: BoxProcesses,
  loopback: Server | undefined,
  signal: AbortSignal,
): Promise<Server> {
  const died = diedEarly(child);
  const enough = new AbortController();
  const either = AbortSignal.any([signal, enough.signal]);
  try {
    return await Promise.race([standing(child.process, processes, loopback, either), died]);
  } catch (error) {
    if (!signal.aborted) await within(DIES_WITHIN_MS, 'the chain to die', () => died).catch(preferDeath);
    throw error;
  } finally {
    enough.abort();
  }
}

function preferDeath(error: unknown): void {
  if (!(error instanceof WaitExpired)) throw error;
}

async function standing(
  child: ChildProcess,
  processes: BoxProcesses,
  loopback: Server | undefined,
  signal: AbortSignal,
): Promise<Server> {
  if (loopback) child.disconnect();
  const stands = (): true | undefined => (processes.stands() ? true : undefined);
  const box = until(BOX_STANDS_WITHIN_MS, 'a box to stand', stands, LOOK_EVERY_MS, signal);
  const [egress] = await Promise.all([loopback ?? takeListener(child, signal), box]);
  return egress;
}

async function diedEarly({ exited, stderr }: Child): Promise<never> {
  const code = await exited;
  await stderr.ended();
  throw new Error(`it ended at once with code ${code}, and said: ${stderr.text() || 'nothing'}`);
}

const SIGNALLED = 128;

function exitCode(code: unknown, signal: unknown): ExitCode {
  if (typeof code === 'number') return code;
  const number = Object.entries(constants.signals).find(([name]) => name === signal)?.[1];
  return SIGNALLED + (number ?? 0);
}
