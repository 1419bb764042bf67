// The CPU seconds of a session, by kind of process. Uses cgroups of the cpuacct controller, which also count processes
// that have ended. Needs root.
import { mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pollUntil } from '../server/kit/wait.ts';
import { installIdOf } from '../tests/harness/leftovers.ts';
import type { TestServer } from '../tests/harness/server.ts';
import { cpuSecondsOf, pidsWithPath, processTreesOf } from './processes.ts';

const ROOT = '/sys/fs/cgroup/cpuacct';
const CLOSE_TIMEOUT_MS = 10_000;

/** CPU seconds used so far, by kind of process. */
export interface CpuSeconds {
  /**
   * Chromium and the programs of its jail. They are counted from the moment at which they join the cgroup of their box.
   */
  readonly chromium: number;
  /** The Node process alone. */
  readonly server: number;
  readonly postgres: number;
  /** Other programs that the server starts: ffmpeg, and the programs of a jail before they join its group. */
  readonly helpers: number;
}

export const PROCESS_KINDS = ['chromium', 'server', 'postgres', 'helpers'] as const;

export const subtractCpuSeconds = (from: CpuSeconds, to: CpuSeconds): CpuSeconds => ({
  chromium: to.chromium - from.chromium,
  server: to.server - from.server,
  postgres: to.postgres - from.postgres,
  helpers: to.helpers - from.helpers,
});

export const sumOf = (cpuSeconds: CpuSeconds): number => PROCESS_KINDS.reduce((sum, kind) => sum + cpuSeconds[kind], 0);

/** A cgroup that contains the processes that are moved into it, and every process that they start afterwards. */
class CpuGroup {
  readonly #folder: string;

  constructor(name: string, pids: readonly number[]) {
    this.#folder = join(ROOT, `berth-bench-${process.pid}-${name}`);
    mkdirSync(this.#folder);
    this.add(pids);
  }

  get seconds(): number {
    return cpuSecondsIn(this.#folder);
  }

  add(pids: readonly number[]): void {
    for (const pid of pids) moveTo(this.#folder, pid);
  }

  /**
   * Moves all processes of the group back to the root group, and removes the group. Repeats this until the group is
   * empty, because a process may start another one in the meantime.
   */
  close(): Promise<true> {
    return pollUntil(CLOSE_TIMEOUT_MS, `the group ${this.#folder} to be empty`, () => {
      for (const pid of readFileSync(join(this.#folder, 'cgroup.procs'), 'utf8').split('\n').filter(Boolean))
        moveTo(ROOT, Number(pid));
      return tryRemove(this.#folder) || undefined;
    });
  }
}

/** Counts the CPU seconds of one running server and its browsers. */
export class ServerCpuMeter {
  readonly #pid: number;
  readonly #boxCgroupFolders: readonly string[];
  readonly #serverGroup: CpuGroup;
  readonly #postgresGroup: CpuGroup;

  constructor(server: TestServer, name: string) {
    const groupName = `berth-${installIdOf(server.dataDir)}`;
    this.#pid = server.pid;
    this.#boxCgroupFolders = foldersNamed(groupName);
    if (this.#boxCgroupFolders.length === 0)
      throw new Error(
        `there is no cgroup ${groupName} below ${ROOT}. Run the benchmark as root, with the cpuacct controller mounted.`,
      );
    this.#postgresGroup = new CpuGroup(`${name}-postgres`, processTreesOf(pidsWithPath(join(server.dataDir, 'pg'))));
    this.#serverGroup = new CpuGroup(`${name}-server`, [server.pid]);
  }

  read(): CpuSeconds {
    const server = cpuSecondsOf([this.#pid]);
    return {
      chromium: this.#boxCgroupFolders.reduce((sum, folder) => sum + cpuSecondsIn(folder), 0),
      server,
      postgres: this.#postgresGroup.seconds,
      helpers: this.#serverGroup.seconds - server,
    };
  }

  async close(): Promise<void> {
    await this.#serverGroup.close();
    await this.#postgresGroup.close();
  }
}

/**
 * Runs `work` with this process in a new group. `readSeconds` returns the CPU seconds of the processes that this
 * process has started, without the CPU seconds of this process itself.
 */
export async function measureChildren(name: string, work: (readSeconds: () => number) => Promise<void>): Promise<void> {
  const group = new CpuGroup(name, [process.pid]);
  const ownSeconds = (): number => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  };
  const ownSecondsBefore = ownSeconds();
  try {
    await work(() => group.seconds - (ownSeconds() - ownSecondsBefore));
  } finally {
    await group.close();
  }
}

/** Finds groups at any depth: the group of the boxes is below the group in which the server was started. */
function foldersNamed(name: string, folder = ROOT): readonly string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter(entry => entry.isDirectory())
    .flatMap(entry => {
      const path = join(folder, entry.name);
      return entry.name === name ? [path] : foldersNamed(name, path);
    });
}

const cpuSecondsIn = (folder: string): number => Number(readFileSync(join(folder, 'cpuacct.usage'), 'utf8')) / 1e9;

function tryRemove(folder: string): boolean {
  try {
    rmdirSync(folder);
    return true;
  } catch {
    return false; // A process is still in the group.
  }
}

function moveTo(folder: string, pid: number): void {
  try {
    writeFileSync(join(folder, 'cgroup.procs'), String(pid));
  } catch {} // the process has ended
}
