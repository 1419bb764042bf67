// Finds the box of a former process of ours again, by pid and start time, and gives it a new egress listener.
import { reason } from '../../kit/fault.ts';
import type { SessionId } from '../../kit/ids.ts';
import { BoxProcesses } from './box-processes.ts';
import { Cgroup } from './cgroup.ts';
import { placeOf } from './chain.ts';
import { openLoopbackListener, reopenListener } from './egress-listener.ts';
import type { Ground } from './ground.ts';
import { bootId, isAlive } from './process-table.ts';
import { RunningBox } from './running-box.ts';
import type { BoxRecord } from './slots.ts';

/** Undefined when there is nothing to adopt; what is left of it is then for the sweep. */
export async function adoptBox(
  ground: Ground,
  session: SessionId,
  record: BoxRecord,
  onLeft: () => void,
  signal: AbortSignal,
): Promise<RunningBox | undefined> {
  const leader = { pid: record.pid, startTicks: record.startTicks };
  const folder = ground.folderOf(session);
  const notes = await folder.readNotes();
  if (record.form !== ground.form || record.bootId !== bootId() || !isAlive(leader) || !notes) return undefined;
  const cgroup = new Cgroup(notes.cgroupFolders);
  const place = placeOf(record.form, folder.box, notes.egressPort, ground.ownSandbox);
  const processes = new BoxProcesses({ leader, cgroup, jailed: place.jailed, mark: ground.markOf(session) });
  if (place.jailed && !processes.first) return undefined;
  const opening = place.jailed
    ? reopenListener(record.form, leader.pid, ground.listener, signal)
    : openLoopbackListener(notes.egressPort);
  const egress = await opening.catch(error => {
    signal.throwIfAborted();
    ground.log.warn('box.adopt_failed', { session, reason: reason(error) });
    return undefined;
  });
  if (!egress) return undefined;
  const { clock, log, limits } = ground;
  return new RunningBox({
    ...{
      session,
      record,
      uid: ground.uidOf(record.slot),
      place,
      folder,
      processes,
      cgroup,
      egress,
      onLeft,
      clock,
      log,
    },
    diskBytes: limits.diskBytes,
  });
}
