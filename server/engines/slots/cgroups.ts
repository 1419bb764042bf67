// Finds where on this machine a cgroup for each box can be created, on v1 and v2, and creates these cgroups. Lists the
// controllers that are missing. cgroup.ts handles the cgroup of one box.
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { Cgroup } from './cgroup.ts';

export const CONTROLLERS = ['memory', 'pids', 'cpu'] as const;
export type Controller = (typeof CONTROLLERS)[number];
/**
 * Optional controllers. On some machines with v1, a separate hierarchy counts processor time. On v2, `cpu` counts it.
 */
const COUNTERS = ['cpuacct'] as const;
type Counter = (typeof COUNTERS)[number];

export interface Limits {
  readonly memoryBytes: number;
  readonly diskBytes: number;
  readonly pids: number;
  readonly cpus: number;
}

interface Hierarchy {
  readonly version: 1 | 2;
  readonly mountPoint: string;
  /** The cgroup that this process is in. */
  readonly own: string;
  /** The controllers of a hierarchy on v1. Empty on v2. */
  readonly controllers: readonly string[];
}

interface Location {
  readonly version: 1 | 2;
  readonly folder: string;
}

/** The period of CFS bandwidth control. In each period, a box may use `cpus` times this much processor time. */
const CPU_PERIOD_US = 100_000;
/**
 * The child group to which this process moves, because on v2 a group whose children have limits must not contain
 * processes.
 */
const OWN_LEAF = 'berth-main';

export interface CgroupSources {
  readonly mountinfo: string;
  readonly membership: string;
  readonly pid: number;
}

const readCgroupSources = (): CgroupSources => ({
  mountinfo: readFileSync('/proc/self/mountinfo', 'utf8'),
  membership: readFileSync('/proc/self/cgroup', 'utf8'),
  pid: process.pid,
});

export class Cgroups {
  readonly #baseName: string;
  readonly #sources: CgroupSources;
  #locations: ReadonlyMap<Controller | Counter, Location>;

  constructor(installId: string, sources = readCgroupSources()) {
    this.#baseName = `berth-${installId}`;
    this.#sources = sources;
    this.#locations = this.#findLocations();
  }

  #findLocations(): ReadonlyMap<Controller | Counter, Location> {
    const hierarchies = readHierarchies(this.#sources);
    const locations = new Map<Controller | Counter, Location>();
    for (const controller of [...CONTROLLERS, ...COUNTERS]) {
      const location = findLocation(controller, hierarchies, this.#baseName, this.#sources.pid);
      if (location) locations.set(controller, location);
    }
    return locations;
  }

  get absentControllers(): readonly Controller[] {
    return CONTROLLERS.filter(controller => !this.#locations.has(controller));
  }

  get versions(): readonly (1 | 2)[] {
    return [...new Set([...this.#locations.values()].map(location => location.version))];
  }

  /** The parent folders of the boxes' cgroups, one for each hierarchy. */
  get folders(): readonly string[] {
    return [...new Set([...this.#locations.values()].map(location => location.folder))];
  }

  make(name: string, limits: Limits): Cgroup {
    // `berth doctor` may have removed the folder while it was empty.
    if (!this.folders.every(folder => existsSync(folder))) this.#locations = this.#findLocations();
    const cgroup = new Cgroup(this.folders.map(folder => join(folder, name)));
    try {
      for (const folder of cgroup.folders) mkdirSync(folder);
      for (const [controller, location] of this.#locations)
        writeLimits(controller, location, join(location.folder, name), limits);
    } catch (error) {
      for (const folder of cgroup.folders) removeFolder(folder);
      throw error;
    }
    return cgroup;
  }

  /** Removes the parent folders that no longer contain the cgroup of a box. */
  close(): void {
    for (const folder of this.folders) removeFolder(folder);
  }
}

function writeLimits(controller: Controller | Counter, { version }: Location, folder: string, limits: Limits): void {
  const write = (file: string, value: string | number): void => writeFileSync(join(folder, file), String(value));
  const writeIfExists = (file: string, value: string | number): boolean => attempt(() => write(file, value));
  const quota = Math.round(limits.cpus * CPU_PERIOD_US);
  if (controller === 'pids') write('pids.max', limits.pids);
  if (controller === 'cpu' && version === 1) {
    write('cpu.cfs_period_us', CPU_PERIOD_US);
    write('cpu.cfs_quota_us', quota);
  }
  if (controller === 'cpu' && version === 2) write('cpu.max', `${quota} ${CPU_PERIOD_US}`);
  if (controller === 'memory' && version === 1) {
    write('memory.limit_in_bytes', limits.memoryBytes);
    writeIfExists('memory.memsw.limit_in_bytes', limits.memoryBytes);
  }
  if (controller === 'memory' && version === 2) {
    write('memory.max', limits.memoryBytes);
    writeIfExists('memory.swap.max', 0);
    // Disabled, because the other processes of the browser must survive when one renderer runs out of memory.
    writeIfExists('memory.oom.group', 0);
  }
}

// ---- locations -----------------------------------------------------------------------------------------------------

function findLocation(
  controller: Controller | Counter,
  hierarchies: readonly Hierarchy[],
  base: string,
  pid: number,
): Location | undefined {
  for (const hierarchy of hierarchies) {
    // The cgroup of the server is tried first, because its limits then also apply to the boxes.
    for (const parent of new Set([hierarchy.own, hierarchy.mountPoint])) {
      const folder = join(parent, base);
      const isReady =
        hierarchy.version === 1
          ? hierarchy.controllers.includes(controller) && makeFolder(folder)
          : delegate(controller, parent, folder, pid, parent === hierarchy.mountPoint);
      if (isReady) return { version: hierarchy.version, folder };
    }
  }
  return undefined;
}

/** On v2, enables the controller for the children of `folder`, which is itself a child of `parent`. */
function delegate(
  controller: Controller | Counter,
  parent: string,
  folder: string,
  pid: number,
  isMountPoint: boolean,
): boolean {
  if (!readWords(join(parent, 'cgroup.controllers')).includes(controller)) return false;
  const isEnabled =
    enable(controller, parent) || (!isMountPoint && moveToLeaf(parent, pid) && enable(controller, parent));
  return isEnabled && makeFolder(folder) && enable(controller, folder);
}

function enable(controller: Controller | Counter, folder: string): boolean {
  const file = join(folder, 'cgroup.subtree_control');
  return readWords(file).includes(controller) || attempt(() => writeFileSync(file, `+${controller}`));
}

const moveToLeaf = (parent: string, pid: number): boolean =>
  makeFolder(join(parent, OWN_LEAF)) &&
  attempt(() => writeFileSync(join(parent, OWN_LEAF, 'cgroup.procs'), String(pid)));

function readHierarchies({ mountinfo, membership }: CgroupSources): readonly Hierarchy[] {
  const groups = membership
    .trim()
    .split('\n')
    .map(line => line.split(':'));
  return mountinfo
    .split('\n')
    .flatMap(line => {
      // Format of a line: id parent device ROOT MOUNTPOINT options … - TYPE source SUPEROPTIONS
      const [mountPart = '', sourcePart = ''] = line.split(' - ');
      const [, , , root = '/', mountPoint = ''] = mountPart.split(' ');
      const [type, , options = ''] = sourcePart.split(' ');
      if (type !== 'cgroup' && type !== 'cgroup2') return [];
      const controllers = type === 'cgroup' ? options.split(',') : [];
      const group = groups.find(([, names = '']) =>
        type === 'cgroup2' ? names === '' : names.split(',').some(name => name !== '' && controllers.includes(name)),
      );
      const path = group?.slice(2).join(':') ?? '/';
      const ownFolder = withoutLeaf(join(mountPoint, path.startsWith(root) ? relative(root, path) : path));
      return [{ version: type === 'cgroup' ? (1 as const) : (2 as const), mountPoint, own: ownFolder, controllers }];
    })
    .sort((one, other) => one.version - other.version);
}

const withoutLeaf = (path: string): string =>
  path.endsWith(`/${OWN_LEAF}`) ? path.slice(0, -OWN_LEAF.length - 1) : path;

// ---- file operations that may fail ----------------------------------------------------------------------------------

function attempt(work: () => void): boolean {
  try {
    work();
    return true;
  } catch {
    return false;
  }
}

const makeFolder = (folder: string): boolean => attempt(() => mkdirSync(folder, { recursive: true }));

const removeFolder = (folder: string): boolean => attempt(() => rmdirSync(folder));

function readWords(file: string): readonly string[] {
  try {
    return readFileSync(file, 'utf8').trim().split(/\s+/);
  } catch {
    return [];
  }
}
