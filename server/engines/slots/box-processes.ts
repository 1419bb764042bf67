// Finds and kills the processes of one box. By the time pid 1 of the box has ended, the kernel has ended and reaped all
// other processes of its pid namespace.
import { pollUntil } from '../../kit/wait.ts';
import type { Cgroup } from './cgroup.ts';
import {
  childrenOf,
  commandOf,
  descendantsWith,
  findProcess,
  innermostPid,
  isAlive,
  killProcess,
  markedProcesses,
  type Process,
  processesOfSession,
  threadIdsOf,
  threadsOf,
} from './process-table.ts';
import type { Switch } from './slots.ts';

/**
 * Command names of the program's parent process: bubblewrap in a jail, `timeout` without a jail. A new child has its
 * parent's command name until it executes the program.
 */
const PARENT_COMMANDS: ReadonlySet<string> = new Set(['bwrap', 'timeout']);
/**
 * The command that `commandOf` returns for a child that has ended since the children were listed, for example because
 * its program does not exist.
 */
const GONE_COMMAND = '';
/**
 * After pid 1 of the box has died, the other programs of the chain exit on their own within this time, and each is
 * reaped by its parent.
 */
const CHAIN_EXIT_TIMEOUT_MS = 500;
const KILL_TIMEOUT_MS = 20_000;
const CHECK_INTERVAL_MS = 5;
/** The interval of the checks whether processes are asleep. */
const ASLEEP_INTERVAL_MS = 5;
/** Processes with more threads count as never asleep, because checking them would take too long. */
const THREADS_MAX = 200;

export interface BoxProcessesOptions {
  /** The spawned process. It executes the programs of the chain one after another. The last of them is `timeout`. */
  readonly leader: Process;
  readonly cgroup: Cgroup;
  /**
   * Whether the box has a jail. Without a jail there is no pid namespace, but the descendants of the leader are in the
   * same process session.
   */
  readonly hasJail: boolean;
  /** The value of `MARK_VARIABLE` in the environment of the chain's programs. */
  readonly mark: string;
}

/** Identifies the box in the environment of the chain's programs. Inside the jail the environment is cleared. */
export const MARK_VARIABLE = 'BERTH_BOX';

export class BoxProcesses {
  readonly leader: Process;
  readonly #cgroup: Cgroup;
  readonly #hasJail: boolean;
  readonly #mark: string;
  #init: Process | undefined;

  constructor({ leader, cgroup, hasJail, mark }: BoxProcessesOptions) {
    this.leader = leader;
    this.#cgroup = cgroup;
    this.#hasJail = hasJail;
    this.#mark = mark;
  }

  /** Pid 1 of the box's pid namespace; undefined until bubblewrap has created it. */
  get init(): Process | undefined {
    this.#init ??= this.#hasJail ? findInit(this.leader) : undefined;
    return this.#init;
  }

  /** Whether the last process of the chain has executed the program. */
  isRunning(): boolean {
    const parent = this.#hasJail ? this.init : this.leader;
    if (!parent || !isAlive(parent) || !PARENT_COMMANDS.has(commandOf(parent.pid))) return false;
    return childrenOf(parent.pid).some(child => {
      const command = commandOf(child);
      return command !== GONE_COMMAND && !PARENT_COMMANDS.has(command);
    });
  }

  isLeaderAlive(): boolean {
    return isAlive(this.leader);
  }

  /** See `Box.waitUntilAsleep`. */
  async waitUntilAsleep(switchText: Switch, ms: number): Promise<void> {
    const processes = this.#with(switchText);
    if (processes.length === 0) return;
    let previousThreads: string | undefined;
    const checkAsleep = (): true | undefined => {
      const pids = processes.filter(isAlive).map(({ pid }) => pid);
      if (pids.flatMap(threadIdsOf).length > THREADS_MAX) return undefined;
      const threads = pids.flatMap(threadsOf);
      // The threads are read one after another. One of them may have woken another that had been read already, so a
      // second reading must be the same.
      const areAsleep = threads.every(thread => thread.startsWith('S')) && threads.join() === previousThreads;
      previousThreads = threads.join();
      return areAsleep ? true : undefined;
    };
    await pollUntil(ms, `the processes with ${switchText} to be asleep`, checkAsleep, ASLEEP_INTERVAL_MS);
  }

  /** See `Box.kill`. */
  async kill(switchText: Switch, ms: number): Promise<void> {
    const victims = this.#with(switchText);
    for (const victim of victims) killProcess(victim);
    const checkEnded = (): true | undefined => (victims.some(isAlive) ? undefined : true);
    await pollUntil(ms, `the processes with ${switchText} to end`, checkEnded, CHECK_INTERVAL_MS);
  }

  #with(switchText: Switch): readonly Process[] {
    return isAlive(this.leader) ? descendantsWith(this.leader.pid, switchText) : [];
  }

  #remainingProcesses(search: boolean): readonly Process[] {
    const knownProcesses = [this.leader, this.init].filter(process => process !== undefined).filter(isAlive);
    const sessionProcesses = this.#hasJail
      ? []
      : processesOfSession(this.leader.pid).filter(process => this.#startedAfterLeader(process));
    return [
      ...knownProcesses,
      ...this.#cgroup.processes(),
      ...sessionProcesses,
      ...(search || !this.init ? this.#processesWithMark() : []),
    ];
  }

  #processesWithMark(): readonly Process[] {
    return markedProcesses(MARK_VARIABLE).filter(({ mark }) => mark === this.#mark);
  }

  /**
   * Kills repeatedly until no process remains, because processes may fork in the meantime. If `search` is set,
   * processes are also found by the mark of the box, because while a box starts, not all of them are descendants of the
   * leader.
   */
  async end({ search } = { search: false }): Promise<void> {
    await this.#killInit();
    await pollUntil(
      KILL_TIMEOUT_MS,
      `the processes of the box with pid ${this.leader.pid} to end`,
      () => this.#killAll(search),
      CHECK_INTERVAL_MS,
    );
  }

  async #killInit(): Promise<void> {
    // `init` is found through the children of the leader, so it must be known before the leader dies.
    if (!this.init) return;
    killProcess(this.init);
    const checkLeaderEnded = () => (this.isLeaderAlive() ? undefined : true);
    await pollUntil(
      CHAIN_EXIT_TIMEOUT_MS,
      'the process chain of a box to exit',
      checkLeaderEnded,
      CHECK_INTERVAL_MS,
    ).catch(() => {});
  }

  #killAll(search: boolean): true | undefined {
    const remainingProcesses = this.#remainingProcesses(search);
    if (remainingProcesses.length === 0) return true;
    this.#cgroup.killAtOnce();
    for (const process of remainingProcesses) killProcess(process);
    return undefined;
  }

  /**
   * Whether a process is not older than the leader. Process session ids are reused, so an older process is not part of
   * the box.
   */
  #startedAfterLeader(process: Process): boolean {
    return BigInt(process.startTicks) >= BigInt(this.leader.startTicks);
  }
}

/** Finds pid 1 of the box: a child of bubblewrap, which is a child of the leader (`timeout`). */
function findInit(leader: Process): Process | undefined {
  if (!isAlive(leader)) return undefined;
  const initPid = childrenOf(leader.pid)
    .flatMap(child => childrenOf(child))
    .find(pid => innermostPid(pid) === 1);
  return initPid === undefined ? undefined : findProcess(initPid);
}
