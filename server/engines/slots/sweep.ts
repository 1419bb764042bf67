// Ends and removes the boxes that earlier processes of this data folder left behind. They are found by marked
// processes, by cgroups and by folders, because any of these can be missing. Boxes of other data folders are not
// affected.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { hasCode } from '../../kit/durable.ts';
import { reason } from '../../kit/fault.ts';
import { pollUntil } from '../../kit/wait.ts';
import type { BoxHost } from './box-host.ts';
import { MARK_VARIABLE } from './box-processes.ts';
import { Cgroup } from './cgroup.ts';
import { killProcess, markedProcesses, type Process, processesOfSession } from './process-table.ts';
import { listSessionsOnDisk } from './session-folder.ts';
import type { Slots } from './slots.ts';

const KILL_TIMEOUT_MS = 20_000;

export type Salvage = NonNullable<Parameters<Slots['sweep']>[1]>;

export async function sweep(
  host: BoxHost,
  keptSessions: ReadonlySet<string>,
  salvage: Salvage = async () => {},
): Promise<readonly string[]> {
  const foundSessions = [
    ...new Set([...markedSessions(host), ...cgroupSessions(host), ...(await listSessionsOnDisk(host.sessionsDir))]),
  ];
  const leftovers = foundSessions.filter(session => !keptSessions.has(session));
  for (const session of leftovers)
    await removeLeftover(host, session, salvage).catch(error =>
      host.log.error('sweep.failed', { session, reason: reason(error) }),
    );
  return leftovers;
}

async function removeLeftover(host: BoxHost, session: string, salvage: Salvage): Promise<void> {
  const folder = host.folderOf(session);
  const notedFolders = (await folder.readNotes())?.cgroupFolders ?? [];
  const ownFolders = host.cgroups.folders.map(parent => join(parent, session));
  const cgroup = new Cgroup([...new Set([...notedFolders, ...ownFolders])]);
  await pollUntil(
    KILL_TIMEOUT_MS,
    `the processes of session ${session} to end`,
    () => killAll(host, session, cgroup),
    10,
  );
  await cgroup.remove();
  if (folder.exists()) await salvage(session, await folder.remains());
  await folder.remove();
}

function killAll(host: BoxHost, session: string, cgroup: Cgroup): true | undefined {
  const remainingProcesses = [...boxProcesses(host, session), ...cgroup.processes()];
  if (remainingProcesses.length === 0) return true;
  cgroup.killAtOnce();
  for (const process of remainingProcesses) killProcess(process);
  return undefined;
}

/**
 * Returns the processes of a session's box. The leader and bubblewrap carry the mark. Without a jail, the other
 * processes of their process session (setsid) belong to the box too.
 */
function boxProcesses(host: BoxHost, session: string): readonly Process[] {
  const markedBoxProcesses = markedProcesses(MARK_VARIABLE).filter(({ mark }) => mark === host.markOf(session));
  const unmarkedProcesses =
    host.form === 'process' ? markedBoxProcesses.flatMap(({ pid }) => processesOfSession(pid)) : [];
  return [...markedBoxProcesses, ...unmarkedProcesses];
}

const markedSessions = (host: BoxHost): readonly string[] =>
  markedProcesses(MARK_VARIABLE)
    .map(({ mark }) => mark.split('/'))
    .flatMap(([installId, session]) => (installId === host.installId && session ? [session] : []));

const cgroupSessions = (host: BoxHost): readonly string[] => host.cgroups.folders.flatMap(foldersIn);

function foldersIn(parent: string): readonly string[] {
  try {
    const entries = readdirSync(parent, { withFileTypes: true });
    return entries.filter(entry => entry.isDirectory()).map(({ name }) => name);
  } catch (error) {
    // `berth doctor` may have removed the folder while it was empty.
    if (hasCode(error, 'ENOENT')) return [];
    throw error;
  }
}
