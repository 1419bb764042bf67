// On cgroup v1, puts a server process into its own cgroup, beside the cgroups of its boxes. The process then competes
// with each box for processor time, and not with all boxes together. Without the cgroup, the kernel would schedule the
// process together with all other processes of its terminal (autogroup), whatever their niceness.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pollUntil } from '../../kit/wait.ts';
import { attempt } from './attempt.ts';

/** The name of the group on v2, and the beginning of its name on v1, where each process has its own. */
export const SERVER_GROUP = 'berth-main';

/**
 * The CPU shares of a server process. An ordinary box has 1024. With the same value, a server with many sessions would
 * get as little processor time as each box.
 */
const SHARE = 16 * 1024;
/**
 * The CPU shares of the server and all its boxes together. Each other terminal or service of the machine has 1024. With
 * 1024, the test suite takes 1.3 times as long as when the server had CPU shares of its own, outside this group.
 */
const SHARE_OF_ALL = 3 * 1024;
const REMOVE_WITHIN_MS = 5000;
const CHECK_EVERY_MS = 3;

export const isServerGroup = (name: string): boolean => name.startsWith(SERVER_GROUP);

/**
 * Removes the groups that killed servers left, and moves the process into its own group. Does nothing without
 * permission to create groups.
 */
export async function joinServerGroup(boxesFolder: string, pid: number): Promise<void> {
  await removeServerGroups(boxesFolder, pid);
  const folder = join(boxesFolder, `${SERVER_GROUP}-${pid}`);
  attempt(() => {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'cpu.shares'), String(SHARE));
    writeFileSync(join(boxesFolder, 'cpu.shares'), String(SHARE_OF_ALL));
    moveTo(folder, pid);
  });
}

/**
 * Removes the group of this process, and the groups of processes that have ended. Processes that are still in these
 * groups, such as PostgreSQL, are moved to the parent of `boxesFolder`. A group that cannot be removed is left in
 * place.
 */
export async function removeServerGroups(boxesFolder: string, pid: number): Promise<void> {
  const isRemoved = (): true | undefined => (endedGroups(boxesFolder, pid).every(removeGroup) ? true : undefined);
  await pollUntil(REMOVE_WITHIN_MS, 'the groups of the server to be empty', isRemoved, CHECK_EVERY_MS).catch(() => {});
}

function endedGroups(boxesFolder: string, pid: number): readonly string[] {
  if (!existsSync(boxesFolder)) return [];
  return readdirSync(boxesFolder).flatMap(name => {
    const owner = /^berth-main-(\d+)$/.exec(name)?.[1];
    const hasEnded = owner !== undefined && (owner === String(pid) || !existsSync(`/proc/${owner}`));
    return hasEnded ? [join(boxesFolder, name)] : [];
  });
}

function removeGroup(folder: string): boolean {
  const pids = readFileSync(join(folder, 'cgroup.procs'), 'utf8').split('\n').filter(Boolean).map(Number);
  for (const pid of pids) attempt(() => moveTo(join(folder, '../..'), pid));
  return attempt(() => rmdirSync(folder));
}

const moveTo = (folder: string, pid: number): void => writeFileSync(join(folder, 'cgroup.procs'), String(pid));
