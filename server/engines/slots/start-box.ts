// Starts one box: its folder, its cgroup, its programs (see chain.ts) and its egress listener. If a step fails, the
// completed steps are undone.
import type { Server } from 'node:net';
import { Fault, reason } from '../../kit/fault.ts';
import { Scope } from '../../kit/scope.ts';
import type { BoxHost } from './box-host.ts';
import { BoxProcesses } from './box-processes.ts';
import { boxChain, type ChainOptions, EGRESS_PORT_IN_JAIL, layoutOf } from './chain.ts';
import { openLoopbackListener, portOf } from './egress-listener.ts';
import { filterPath } from './filter.ts';
import { programMounts } from './jail.ts';
import { bootId } from './process-table.ts';
import { RunningBox } from './running-box.ts';
import type { SessionFolder } from './session-folder.ts';
import type { BoxLayout, BoxRequest } from './slots.ts';
import { type SpawnedChain, spawnChain, waitUntilRunning } from './spawn-chain.ts';
import { stageMounts } from './stage.ts';

/** The share of processor time of a background box, as a fraction of an ordinary group's share. */
const BACKGROUND_SHARE = 0.1;
/** Maximum number of open files. Chromium uses fewer, even with a hundred pages. */
const OPEN_FILES_MAX = 16_384;

export async function startBox(
  host: BoxHost,
  slot: number,
  request: BoxRequest,
  releaseSlot: () => void,
  signal: AbortSignal,
): Promise<RunningBox> {
  return tryStartBox(host, slot, request, releaseSlot, signal).catch(error => {
    signal.throwIfAborted();
    throw new Fault('box_start_failed', `The box for the browser could not be started: ${reason(error)}.`, {
      advice: 'Run `berth doctor` to see what is missing on this machine.',
    });
  });
}

/** Like `startBox`, but throws the original error. */
export async function tryStartBox(
  host: BoxHost,
  slot: number,
  request: BoxRequest,
  releaseSlot: () => void,
  signal: AbortSignal,
): Promise<RunningBox> {
  const undoScope = new Scope();
  try {
    return await start(host, slot, request, releaseSlot, signal, undoScope);
  } catch (error) {
    await undoScope.close().catch(failure => host.log.error('box.undo_failed', { reason: reason(failure) }));
    throw error;
  }
}

async function start(
  host: BoxHost,
  slot: number,
  request: BoxRequest,
  releaseSlot: () => void,
  signal: AbortSignal,
  undoScope: Scope,
): Promise<RunningBox> {
  const uid = host.uidOf(slot);
  const folder = host.folderOf(request.session);
  await folder.make(uid);
  undoScope.defer(() => folder.remove());
  const cgroup = host.cgroups.make(request.session, host.limits);
  undoScope.defer(() => cgroup.remove());
  if (request.background) cgroup.setShare(BACKGROUND_SHARE);
  // A starting browser takes all the processor time that it can get, and the first check of BusyWatch would be too
  // late. The box is therefore scheduled as idle at once.
  if (host.loads.hasCalm) cgroup.scheduleAsIdle(true);
  const loopbackListener = host.form === 'process' ? await openLoopbackListener(0) : undefined;
  undoScope.defer(() => void loopbackListener?.close());
  const layout = layoutOf(
    host.form,
    folder.box,
    loopbackListener ? portOf(loopbackListener) : EGRESS_PORT_IN_JAIL,
    host.hasOwnSandbox,
  );
  await folder.writeNotes({ egressPort: layout.egressPort, cgroupFolders: cgroup.folders });
  const fill = request.fill;
  // The folder is filled while the chain starts. Only the program itself waits for the files.
  const fillPromise = Promise.resolve(fill?.({ folder: folder.box, uid }, signal));
  // The rejection is handled at once, because filling may fail before anything waits for it.
  const whenFillingSettled = fillPromise.catch(() => {});
  undoScope.defer(() => whenFillingSettled);
  const mark = host.markOf(request.session);
  const command = boxChain(await chainOptions(host, request, layout, folder, cgroup.joinFiles, uid));
  signal.throwIfAborted();
  const spawnedChain = spawnChain(command, mark, fill !== undefined);
  undoScope.defer(() => spawnedChain.stderr.close());
  const processes = new BoxProcesses({ leader: spawnedChain.leader, cgroup, hasJail: layout.hasJail, mark });
  undoScope.defer(() => processes.end({ search: true }));
  const egress = await fillAndWaitUntilRunning(spawnedChain, fillPromise, signal, (gateOpenPromise, eitherSignal) =>
    waitUntilRunning(spawnedChain, processes, loopbackListener, gateOpenPromise, eitherSignal),
  );
  const record = { form: host.form, slot, ...spawnedChain.leader, bootId: bootId() };
  const { clock, log, limits, loads } = host;
  return new RunningBox({
    ...{
      session: request.session,
      record,
      uid,
      layout,
      folder,
      processes,
      cgroup,
      egress,
      child: spawnedChain,
      releaseSlot,
      clock,
      log,
      loads,
      isClaimed: false,
    },
    diskBytes: limits.diskBytes,
  });
}

/**
 * Waits until the program is running. If filling the folder fails, throws that error instead of the start error that
 * results from it.
 */
async function fillAndWaitUntilRunning(
  child: SpawnedChain,
  fillPromise: Promise<void>,
  signal: AbortSignal,
  waitForListener: (gateOpenPromise: Promise<void>, signal: AbortSignal) => Promise<Server>,
): Promise<Server> {
  const failureController = new AbortController();
  const gateOpenPromise = fillPromise.then(child.openGate);
  gateOpenPromise.catch(error => failureController.abort(error));
  const listenerPromise = waitForListener(gateOpenPromise, AbortSignal.any([signal, failureController.signal]));
  listenerPromise.catch(() => {});
  await gateOpenPromise;
  return listenerPromise;
}

async function chainOptions(
  host: BoxHost,
  request: BoxRequest,
  layout: BoxLayout,
  folder: SessionFolder,
  cgroupJoinFiles: readonly string[],
  uid: number | undefined,
): Promise<ChainOptions> {
  const requestedProgram = request.program(layout);
  const program = {
    ...requestedProgram,
    mounts: [...programMounts(requestedProgram.executable), ...requestedProgram.mounts],
  };
  const { path, box, uploads, notes } = folder;
  return {
    ...{ form: host.form, uid, session: { path, box, uploads, notes }, cgroupJoinFiles, program },
    ...{ listener: host.listener, links: host.links, filter: filterPath() },
    stagedMounts: host.form === 'root' ? await stageMounts(program) : [],
    isGated: request.fill !== undefined,
    bounds: {
      lifetimeMs: request.lifetimeMs,
      fileBytes: host.limits.diskBytes,
      openFiles: Math.min(OPEN_FILES_MAX, host.openFilesMax),
      ...(host.cgroups.absentControllers.includes('pids') && layout.hasJail ? { processes: host.limits.pids } : {}),
      ...(host.cgroups.absentControllers.includes('memory') && layout.hasJail
        ? { dataBytes: host.limits.memoryBytes }
        : {}),
    },
  };
}
