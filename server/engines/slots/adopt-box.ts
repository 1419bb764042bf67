// Finds the box that an earlier server process started, by pid and start time, and opens a new egress listener for it.
import { reason } from '../../kit/fault.ts';
import type { SessionId } from '../../kit/ids.ts';
import type { BoxHost } from './box-host.ts';
import { BoxProcesses } from './box-processes.ts';
import { Cgroup } from './cgroup.ts';
import { layoutOf } from './chain.ts';
import { openLoopbackListener, reopenListener } from './egress-listener.ts';
import { bootId, isAlive } from './process-table.ts';
import { RunningBox } from './running-box.ts';
import type { BoxRecord } from './slots.ts';

/** Adopts a box. Returns undefined if the box cannot be adopted. `Slots.sweep` then removes the remains of the box. */
export async function adoptBox(
  host: BoxHost,
  session: SessionId,
  record: BoxRecord,
  releaseSlot: () => void,
  signal: AbortSignal,
): Promise<RunningBox | undefined> {
  const leader = { pid: record.pid, startTicks: record.startTicks };
  const folder = host.folderOf(session);
  const notes = await folder.readNotes();
  if (record.form !== host.form || record.bootId !== bootId() || !isAlive(leader) || !notes) return undefined;
  const cgroup = new Cgroup(notes.cgroupFolders);
  const layout = layoutOf(record.form, folder.box, notes.egressPort, host.hasOwnSandbox);
  const processes = new BoxProcesses({ leader, cgroup, hasJail: layout.hasJail, mark: host.markOf(session) });
  if (layout.hasJail && !processes.init) return undefined;
  const listenerPromise = layout.hasJail
    ? reopenListener(record.form, leader.pid, host.listener, signal)
    : openLoopbackListener(notes.egressPort);
  const egress = await listenerPromise.catch(error => {
    signal.throwIfAborted();
    host.log.warn('box.adopt_failed', { session, reason: reason(error) });
    return undefined;
  });
  if (!egress) return undefined;
  const { clock, log, limits, loads } = host;
  return new RunningBox({
    ...{
      session,
      record,
      uid: host.uidOf(record.slot),
      layout,
      folder,
      processes,
      cgroup,
      egress,
      releaseSlot,
      clock,
      log,
      loads,
      isClaimed: true,
    },
    diskBytes: limits.diskBytes,
  });
}
