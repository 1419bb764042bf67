// Ends and removes what former processes of this data folder left behind. Three ways to find it, because each can be
// missing: marked processes, cgroups, folders. What belongs to another data folder is never touched.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { reason } from '../../kit/fault.ts';
import { until } from '../../kit/wait.ts';
import { MARK_VARIABLE } from './box-processes.ts';
import { Cgroup } from './cgroup.ts';
import type { Ground } from './ground.ts';
import { killProcess, markedProcesses, type Process, processesOfSession } from './process-table.ts';
import { sessionsOnDisk } from './session-folder.ts';
import type { Slots } from './slots.ts';

const KILLED_WITHIN_MS = 20_000;

export type Salvage = NonNullable<Parameters<Slots['sweep']>[1]>;

export async function sweep(
  ground: Ground,
  keep: ReadonlySet<string>,
  salvage: Salvage = async () => {},
): Promise<readonly string[]> {
  const found = [
    ...new Set([...markedSessions(ground), ...cgroupSessions(ground), ...(await sessionsOnDisk(ground.sessionsDir))]),
  ];
  const leftovers = found.filter(session => !keep.has(session));
  for (const session of leftovers)
    await removeLeftover(ground, session, salvage).catch(error =>
      ground.log.error('sweep.failed', { session, reason: reason(error) }),
    );
  return leftovers;
}

async function removeLeftover(ground: Ground, session: string, salvage: Salvage): Promise<void> {
  const folder = ground.folderOf(session);
  const noted = (await folder.readNotes())?.cgroupFolders ?? [];
  const ours = ground.cgroups.folders.map(parent => join(parent, session));
  const cgroup = new Cgroup([...new Set([...noted, ...ours])]);
  await until(
    KILLED_WITHIN_MS,
    `what is left of session ${session} to end`,
    () => killAll(ground, session, cgroup),
    10,
  );
  await cgroup.remove();
  if (folder.exists()) await salvage(session, await folder.remains());
  await folder.remove();
}

function killAll(ground: Ground, session: string, cgroup: Cgroup): true | undefined {
  const left = [...processesMarked(ground, session), ...cgroup.processes()];
  if (left.length === 0) return true;
  cgroup.killAtOnce();
  for (const process of left) killProcess(process);
  return undefined;
}

/** The leader and bubblewrap carry the mark. Without a jail, whatever shares their session of processes is theirs too. */
function processesMarked(ground: Ground, session: string): readonly Process[] {
  const marked = markedProcesses(MARK_VARIABLE).filter(({ mark }) => mark === ground.markOf(session));
  const company = ground.form === 'process' ? marked.flatMap(({ pid }) => processesOfSession(pid)) : [];
  return [...marked, ...company];
}

const markedSessions = (ground: Ground): readonly string[] =>
  markedProcesses(MARK_VARIABLE)
    .map(({ mark }) => mark.split('/'))
    .flatMap(([install, session]) => (install === ground.install && session ? [session] : []));

const cgroupSessions = (ground: Ground): readonly string[] =>
  ground.cgroups.folders.flatMap(folder =>
    readdirSync(folder, { withFileTypes: true })
      .filter(entry => entry.isDirectory())
      .map(entry => entry.name),
  );
