// The processes of one box: who they are, whether any is left, and their end. A box is over when its pid 1 is: the
// kernel ends and reaps everything else in the pid namespace first.
import { until } from '../../kit/wait.ts';
import type { Cgroup } from './cgroup.ts';
import {
  childrenOf,
  commandOf,
  findProcess,
  innermostPid,
  isAlive,
  killProcess,
  markedProcesses,
  type Process,
  processesOfSession,
} from './process-table.ts';

/** Whose child is the program: in a jail bubblewrap, without one `timeout`. A child starts under its parent's name. */
const LAST_OF_CHAIN: ReadonlySet<string> = new Set(['bwrap', 'timeout']);
/** The programs around the box go by themselves when its pid 1 is dead, each reaped by its own parent. */
const LEAVES_WITHIN_MS = 500;
const KILLED_WITHIN_MS = 20_000;
const LOOK_EVERY_MS = 5;

export interface BoxProcessesWish {
  /** `timeout`, and before it the programs of the chain. */
  readonly leader: Process;
  readonly cgroup: Cgroup;
  /** Without a jail there is no pid namespace; all that descends from the leader shares its session. */
  readonly jailed: boolean;
  /** What stands in the environment of the chain's programs. */
  readonly mark: string;
}

/** Names the box in the environment of the programs that lead into it; the jail clears it inside. */
export const MARK_VARIABLE = 'BERTH_BOX';

export class BoxProcesses {
  readonly leader: Process;
  readonly #cgroup: Cgroup;
  readonly #jailed: boolean;
  readonly #mark: string;
  #first: Process | undefined;

  constructor({ leader, cgroup, jailed, mark }: BoxProcessesWish) {
    this.leader = leader;
    this.#cgroup = cgroup;
    this.#jailed = jailed;
    this.#mark = mark;
  }

  /** Pid 1 of the box's own pid namespace; undefined while bubblewrap has not made it. */
  get first(): Process | undefined {
    this.#first ??= this.#jailed ? findFirst(this.leader) : undefined;
    return this.#first;
  }

  /** Whether the chain has come to its end, and the program that it is for has taken over its last process. */
  stands(): boolean {
    const parent = this.#jailed ? this.first : this.leader;
    if (!parent || !isAlive(parent) || !LAST_OF_CHAIN.has(commandOf(parent.pid))) return false;
    return childrenOf(parent.pid).some(child => !LAST_OF_CHAIN.has(commandOf(child)));
  }

  leaderIsAlive(): boolean {
    return isAlive(this.leader);
  }

  #left(search: boolean): readonly Process[] {
    const known = [this.leader, this.first].filter(process => process !== undefined).filter(isAlive);
    const ofSession = this.#jailed ? [] : processesOfSession(this.leader.pid).filter(one => this.#mayBeOurs(one));
    return [...known, ...this.#cgroup.processes(), ...ofSession, ...(search || !this.first ? this.#marked() : [])];
  }

  #marked(): readonly Process[] {
    return markedProcesses(MARK_VARIABLE).filter(({ mark }) => mark === this.#mark);
  }

  /**
   * Kills until nothing is left, looking again each time: what is killed may have been forking. `search` looks through
   * all processes for the box's mark: while the chain is under way, not all that it started hangs together.
   */
  async end({ search } = { search: false }): Promise<void> {
    await this.#endFromWithin();
    await until(
      KILLED_WITHIN_MS,
      `the processes of box ${this.leader.pid} to end`,
      () => this.#killAll(search),
      LOOK_EVERY_MS,
    );
  }

  async #endFromWithin(): Promise<void> {
    // While the leader lives, its children still say who the box's pid 1 is.
    if (!this.first) return;
    killProcess(this.first);
    const left = () => (this.leaderIsAlive() ? undefined : true);
    await until(LEAVES_WITHIN_MS, 'the chain of a box to leave', left, LOOK_EVERY_MS).catch(() => {});
  }

  #killAll(search: boolean): true | undefined {
    const left = this.#left(search);
    if (left.length === 0) return true;
    this.#cgroup.killAtOnce();
    for (const process of left) killProcess(process);
    return undefined;
  }

  /** The number of a session of processes may be given out again; who is older than our leader is not of it. */
  #mayBeOurs(process: Process): boolean {
    return BigInt(process.startTicks) >= BigInt(this.leader.startTicks);
  }
}

/** leader (`timeout`) -> bubblewrap outside -> bubblewrap inside, which is pid 1 there. */
function findFirst(leader: Process): Process | undefined {
  if (!isAlive(leader)) return undefined;
  const inside = childrenOf(leader.pid)
    .flatMap(child => childrenOf(child))
    .find(pid => innermostPid(pid) === 1);
  return inside === undefined ? undefined : findProcess(inside);
}
