// Starts one box: folder, cgroup, chain, egress listener. Undoes all of it when a step fails.
import type { Server } from 'node:net';
import { Fault, reason } from '../../kit/fault.ts';
import { Scope } from '../../kit/scope.ts';
import { BoxProcesses } from './box-processes.ts';
import { type ChainWish, chain, EGRESS_PORT_IN_JAIL, placeOf } from './chain.ts';
import { openLoopbackListener, portOf } from './egress-listener.ts';
import { filterPath } from './filter.ts';
import type { Ground } from './ground.ts';
import { folderOfProgram } from './jail.ts';
import { bootId } from './process-table.ts';
import { RunningBox } from './running-box.ts';
import type { SessionFolder } from './session-folder.ts';
import type { BoxPlace, BoxWish } from './slots.ts';
import { type SpawnedChain, spawnChain, untilItStands } from './spawn-chain.ts';
import { stageMounts } from './stage.ts';

/** Of what an ordinary group gets. */
const BACKGROUND_SHARE = 0.1;
/** More than Chromium asks for with a hundred pages. */
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
  const fill = wish.fill;
  // While the folder is filled, all is made that the program does not need it for.
  const filling = Promise.resolve(fill?.({ folder: folder.box, uid }, signal));
  undo.defer(() => filling.catch(() => {}));
  const mark = ground.markOf(wish.session);
  const command = chain(await chainWish(ground, wish, place, folder, cgroup.joinFiles, uid));
  signal.throwIfAborted();
  const child = spawnChain(command, mark, fill !== undefined);
  undo.defer(() => child.stderr.close());
  const processes = new BoxProcesses({ leader: child.leader, cgroup, jailed: place.jailed, mark });
  undo.defer(() => processes.end({ search: true }));
  const egress = await filledAndStanding(child, filling, signal, (letGo, either) =>
    untilItStands(child, processes, loopback, letGo, either),
  );
  const record = { form: ground.form, slot, ...child.leader, bootId: bootId() };
  const { clock, log, limits } = ground;
  return new RunningBox({
    ...{ session: wish.session, record, uid, place, folder, processes, cgroup, egress, child, onLeft, clock, log },
    diskBytes: limits.diskBytes,
  });
}

/** What keeps the folder from being filled is the reason, not that its program then never ran. */
async function filledAndStanding(
  child: SpawnedChain,
  filling: Promise<void>,
  signal: AbortSignal,
  stands: (letGo: Promise<void>, signal: AbortSignal) => Promise<Server>,
): Promise<Server> {
  const failed = new AbortController();
  const letGo = filling.then(child.letGo);
  letGo.catch(error => failed.abort(error));
  const standing = stands(letGo, AbortSignal.any([signal, failed.signal]));
  standing.catch(() => {});
  await letGo;
  return standing;
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
    ...{ listener: ground.listener, links: ground.links, filter: filterPath() },
    staged: ground.form === 'root' ? await stageMounts(program) : [],
    gated: wish.fill !== undefined,
    bounds: {
      lifetimeMs: wish.lifetimeMs,
      fileBytes: ground.limits.diskBytes,
      openFiles: Math.min(OPEN_FILES, ground.openFilesMax),
      ...(ground.cgroups.absent.includes('pids') && place.jailed ? { processes: ground.limits.pids } : {}),
      ...(ground.cgroups.absent.includes('memory') && place.jailed ? { dataBytes: ground.limits.memoryBytes } : {}),
    },
  };
}
