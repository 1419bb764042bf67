// Finds what an installation has left on this machine: processes, mounts, cgroups and folders. Reads the tables of the
// kernel, not of the server. An empty list means that nothing is left.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';

const CGROUP_ROOT = '/sys/fs/cgroup';
const CGROUP_DEPTH_MAX = 6;
const TEXT_CHARACTERS_MAX = 300;

/** Returns the leftovers of all sessions except those whose ids are in `keep`. */
export function findSessionLeftovers(dataDir: string, keep: ReadonlySet<string> = new Set()): string[] {
  const isSpared = (text: string): boolean => [...keep].some(id => text.includes(id));
  const mountOf = createMountFinder(`${dataDir}/sessions/`);
  const mark = `BERTH_BOX=${installIdOf(dataDir)}/`;
  const reasonOf = ({ pid, command }: Process): string | undefined =>
    markOf(pid, mark, command) ?? (command.includes(`${dataDir}/sessions/`) ? command : mountOf(pid));
  const leftovers = [
    ...listProcesses().flatMap(process => {
      const reason = reasonOf(process);
      return reason === undefined ? [] : [`process ${process.pid}: ${reason}`];
    }),
    ...cgroupsOf(dataDir).map(folder => `cgroup ${folder}`),
    ...['sessions', 'trash'].flatMap(folder => list(join(dataDir, folder)).map(name => `folder ${folder}/${name}`)),
  ];
  // The lines are truncated only after the filter, because the id of a session may be at the end of a line.
  return leftovers.filter(one => !isSpared(one)).map(one => one.slice(0, TEXT_CHARACTERS_MAX));
}

/** Returns the leftovers of a server and its database after the server has stopped. */
export function findServerLeftovers(dataDir: string): string[] {
  const commandMatches = listProcesses().filter(({ command }) => command.includes(`${dataDir}/`));
  const environmentMatches = listProcesses().filter(({ pid }) =>
    environmentOf(pid).includes(`BERTH_DATA_DIR=${dataDir}`),
  );
  return [...commandMatches, ...environmentMatches].map(
    ({ pid, command }) => `process ${pid}: ${command.slice(0, 120)}`,
  );
}

export function installIdOf(dataDir: string): string | undefined {
  return read(join(dataDir, 'install-id'))?.trim();
}

function markOf(pid: number, mark: string, command: string): string | undefined {
  const entry = environmentOf(pid).find(one => one.startsWith(mark));
  return entry === undefined ? undefined : `${entry} ${command.slice(0, 80)}`;
}

/**
 * Returns a function that finds a mount below this folder in the mount namespace of a process. Mounts are read once per
 * namespace, because the lists are long and hundreds of processes share a namespace.
 */
function createMountFinder(folder: string): (pid: number) => string | undefined {
  const mountOfNamespace = new Map<string, string | undefined>();
  return pid => {
    const namespace = readLink(`/proc/${pid}/ns/mnt`) ?? `of ${pid}`;
    if (!mountOfNamespace.has(namespace)) {
      const mounts = read(`/proc/${pid}/mountinfo`);
      // the process has ended, and other processes in the namespace report the mount
      if (mounts === undefined) return undefined;
      mountOfNamespace.set(
        namespace,
        mounts.split('\n').find(line => line.includes(folder)),
      );
    }
    const mount = mountOfNamespace.get(namespace);
    return mount === undefined ? undefined : `has the mount ${mount}`;
  };
}

interface Process {
  readonly pid: number;
  readonly command: string;
}

function listProcesses(): Process[] {
  return list('/proc')
    .filter(name => /^\d+$/.test(name) && name !== String(process.pid))
    .map(name => ({ pid: Number(name), command: (read(`/proc/${name}/cmdline`) ?? '').replaceAll('\0', ' ').trim() }));
}

const environmentOf = (pid: number): string[] => (read(`/proc/${pid}/environ`) ?? '').split('\0');

/** Finds `berth-<install>/<session>` anywhere in the cgroup tree. */
export function cgroupsOf(dataDir: string): string[] {
  const installId = installIdOf(dataDir);
  return installId === undefined
    ? []
    : findFolders(CGROUP_ROOT, `berth-${installId}`, CGROUP_DEPTH_MAX).flatMap(foldersIn);
}

function findFolders(folder: string, name: string, depth: number): string[] {
  if (depth === 0) return [];
  return foldersIn(folder).flatMap(child =>
    child.endsWith(`/${name}`) ? [child] : findFolders(child, name, depth - 1),
  );
}

/**
 * Lists the folders in a folder. A missing folder is ignored, because other test files create and remove such folders.
 */
function foldersIn(folder: string): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter(entry => entry.isDirectory())
      .map(entry => join(folder, entry.name));
  } catch {
    return [];
  }
}

function readLink(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
