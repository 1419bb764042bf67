// Finds where on this machine a cgroup per box can be made, on v1 and v2 alike, and makes them. Says which controllers
// are absent. One box's cgroup is in cgroup.ts.
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { Cgroup } from './cgroup.ts';

export const CONTROLLERS = ['memory', 'pids', 'cpu'] as const;
export type Controller = (typeof CONTROLLERS)[number];
/** v1 counts processor time in a hierarchy of its own on some machines; on v2 `cpu` does. Nothing is refused without it. */
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
  /** v1 only. */
  readonly controllers: readonly string[];
}

interface Place {
  readonly version: 1 | 2;
  readonly folder: string;
}

/** Length of the period in which a box may use `cpus` times as much processor time. */
const CPU_PERIOD_US = 100_000;
/** On v2 a group that has children with limits may hold no process itself: ours moves here. */
const OWN_LEAF = 'berth-main';

export interface CgroupSources {
  readonly mountinfo: string;
  readonly membership: string;
  readonly pid: number;
}

const sourcesOfThisProcess = (): CgroupSources => ({
  mountinfo: readFileSync('/proc/self/mountinfo', 'utf8'),
  membership: readFileSync('/proc/self/cgroup', 'utf8'),
  pid: process.pid,
});

export class Cgroups {
  readonly #base: string;
  readonly #sources: CgroupSources;
  #places: ReadonlyMap<Controller | Counter, Place>;

  constructor(install: string, sources = sourcesOfThisProcess()) {
    this.#base = `berth-${install}`;
    this.#sources = sources;
    this.#places = this.#findPlaces();
  }

  #findPlaces(): ReadonlyMap<Controller | Counter, Place> {
    const hierarchies = readHierarchies(this.#sources);
    const places = new Map<Controller | Counter, Place>();
    for (const controller of [...CONTROLLERS, ...COUNTERS]) {
      const place = findPlace(controller, hierarchies, this.#base, this.#sources.pid);
      if (place) places.set(controller, place);
    }
    return places;
  }

  get absent(): readonly Controller[] {
    return CONTROLLERS.filter(controller => !this.#places.has(controller));
  }

  get versions(): readonly (1 | 2)[] {
    return [...new Set([...this.#places.values()].map(place => place.version))];
  }

  /** The folders, one a hierarchy, that hold the cgroups of this data folder's boxes. */
  get folders(): readonly string[] {
    return [...new Set([...this.#places.values()].map(place => place.folder))];
  }

  make(name: string, limits: Limits): Cgroup {
    // A doctor beside us may have taken the folder away while it was empty.
    if (!this.folders.every(folder => existsSync(folder))) this.#places = this.#findPlaces();
    const cgroup = new Cgroup(this.folders.map(folder => join(folder, name)));
    try {
      for (const folder of cgroup.folders) mkdirSync(folder);
      for (const [controller, place] of this.#places) limit(controller, place, join(place.folder, name), limits);
    } catch (error) {
      for (const folder of cgroup.folders) removeFolder(folder);
      throw error;
    }
    return cgroup;
  }

  /** Takes away the folders of this data folder, where no box is left in them. */
  close(): void {
    for (const folder of this.folders) removeFolder(folder);
  }
}

function limit(controller: Controller | Counter, { version }: Place, folder: string, limits: Limits): void {
  const write = (file: string, value: string | number): void => writeFileSync(join(folder, file), String(value));
  const writeIfThere = (file: string, value: string | number): boolean => attempt(() => write(file, value));
  const quota = Math.round(limits.cpus * CPU_PERIOD_US);
  if (controller === 'pids') write('pids.max', limits.pids);
  if (controller === 'cpu' && version === 1) {
    write('cpu.cfs_period_us', CPU_PERIOD_US);
    write('cpu.cfs_quota_us', quota);
  }
  if (controller === 'cpu' && version === 2) write('cpu.max', `${quota} ${CPU_PERIOD_US}`);
  if (controller === 'memory' && version === 1) {
    write('memory.limit_in_bytes', limits.memoryBytes);
    writeIfThere('memory.memsw.limit_in_bytes', limits.memoryBytes);
  }
  if (controller === 'memory' && version === 2) {
    write('memory.max', limits.memoryBytes);
    writeIfThere('memory.swap.max', 0);
    // One page out of memory must not take the whole session with it.
    writeIfThere('memory.oom.group', 0);
  }
}

// ---- where -----------------------------------------------------------------------------------------------------------

function findPlace(
  controller: Controller | Counter,
  hierarchies: readonly Hierarchy[],
  base: string,
  pid: number,
): Place | undefined {
  for (const hierarchy of hierarchies) {
    // First below our own group, so that bounds set on the whole service hold for its boxes too.
    for (const parent of new Set([hierarchy.own, hierarchy.mountPoint])) {
      const folder = join(parent, base);
      const ready =
        hierarchy.version === 1
          ? hierarchy.controllers.includes(controller) && makeFolder(folder)
          : delegate(controller, parent, folder, pid, parent === hierarchy.mountPoint);
      if (ready) return { version: hierarchy.version, folder };
    }
  }
  return undefined;
}

/** v2: lets `folder`, a child of `parent`, give the controller to its own children. */
function delegate(
  controller: Controller | Counter,
  parent: string,
  folder: string,
  pid: number,
  isTop: boolean,
): boolean {
  if (!words(join(parent, 'cgroup.controllers')).includes(controller)) return false;
  const enabled = enable(controller, parent) || (!isTop && moveToLeaf(parent, pid) && enable(controller, parent));
  return enabled && makeFolder(folder) && enable(controller, folder);
}

function enable(controller: Controller | Counter, folder: string): boolean {
  const file = join(folder, 'cgroup.subtree_control');
  return words(file).includes(controller) || attempt(() => writeFileSync(file, `+${controller}`));
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
      // id parent device ROOT MOUNTPOINT options … - TYPE source SUPEROPTIONS
      const [before = '', after = ''] = line.split(' - ');
      const [, , , root = '/', mountPoint = ''] = before.split(' ');
      const [type, , options = ''] = after.split(' ');
      if (type !== 'cgroup' && type !== 'cgroup2') return [];
      const controllers = type === 'cgroup' ? options.split(',') : [];
      const group = groups.find(([, names = '']) =>
        type === 'cgroup2' ? names === '' : names.split(',').some(name => name !== '' && controllers.includes(name)),
      );
      const path = group?.slice(2).join(':') ?? '/';
      const own = withoutLeaf(join(mountPoint, path.startsWith(root) ? relative(root, path) : path));
      return [{ version: type === 'cgroup' ? (1 as const) : (2 as const), mountPoint, own, controllers }];
    })
    .sort((one, other) => one.version - other.version);
}

const withoutLeaf = (path: string): string =>
  path.endsWith(`/${OWN_LEAF}`) ? path.slice(0, -OWN_LEAF.length - 1) : path;

// ---- files that may not be there ---------------------------------------------------------------------------------------

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

function words(file: string): readonly string[] {
  try {
    return readFileSync(file, 'utf8').trim().split(/\s+/);
  } catch {
    return [];
  }
}
