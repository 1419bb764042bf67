// The cgroup of a server process among the cgroups of its boxes, on v1. The process then competes with each box for
// processor time, and not with all boxes together. Without it, the kernel would put the process into a group with all
// others of its terminal (autogroup), whatever their niceness.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pollUntil } from '../../kit/wait.ts';
import { attempt } from './attempt.ts';

/** The name of the group on v2, and the beginning of its name on v1, where each process has its own. */
export const SERVER_GROUP = 'berth-main';

/**
 * The share of a server, of which an ordinary box has 1024. Without a larger one, a server with many sessions would get
 * as little as each of them.
 */
const SHARE = 16 * 1024;
/**
 * The share of the server and all its boxes together, of which each other terminal or service of the machine has 1024.
 * With 1024, the suite of tests takes 1.3 times as long, because a server had a share of its own before.
 */
const SHARE_OF_ALL = 3 * 1024;
const REMOVE_WITHIN_MS = 5000;
const CHECK_EVERY_MS = 3;

export const isServerGroup = (name: string): boolean => name.startsWith(SERVER_GROUP);

/** Moves the process into its group, and removes those that killed servers left. Without permission, does nothing. */
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
 * Removes the group of this process, and those of processes that have ended. What is still in them, such as PostgreSQL,
 * is moved to the group that the server came from. A group that cannot be removed is left.
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
