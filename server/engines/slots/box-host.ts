// Holds the settings that all boxes of this process share: form of isolation, user ids, limits, cgroups and the folders
// inside the data folder.
import { readFileSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import type { Clock } from '../../kit/clock.ts';
import type { Log } from '../../kit/log.ts';
import type { Runtime } from '../../kit/runtime.ts';
import { BoxLoads } from './box-loads.ts';
import type { Cgroups, Limits } from './cgroups.ts';
import { listenerCommand } from './egress-listener.ts';
import { helperChain } from './helper-chain.ts';
import { UIDS_PER_INSTALL } from './install.ts';
import { type LinkCommands, linkCommands } from './network-link.ts';
import { SessionFolder } from './session-folder.ts';
import type { Form, HelperBounds, HelperCommand } from './slots.ts';
import { findTool, isExecutable } from './tools.ts';
import { Trash } from './trash.ts';

/** The second-to-last slot. Helper programs use its user id, and no box uses it. The probe uses the last slot. */
const HELPER_SLOT = UIDS_PER_INSTALL - 2;
/** The number of slots that have a user id of their own. */
export const SLOTS_WITH_UID_MAX = HELPER_SLOT;

export interface BoxHostOptions extends Pick<Runtime, 'clock' | 'log'> {
  readonly form: Form;
  readonly installId: string;
  /** The first user id of this data folder's boxes. Set only in the form `root`. */
  readonly firstUid: number | undefined;
  /** Whether Chromium's own sandbox works; always true in a jail. */
  readonly hasOwnSandbox: boolean;
  readonly dataDir: string;
  readonly cgroups: Cgroups;
  readonly limits: Limits;
}

export class BoxHost {
  readonly form: Form;
  readonly installId: string;
  readonly hasOwnSandbox: boolean;
  readonly cgroups: Cgroups;
  readonly limits: Limits;
  readonly clock: Clock;
  readonly log: Log;
  readonly sessionsDir: string;
  readonly loads = new BoxLoads();
  readonly listener = listenerCommand();
  readonly links: LinkCommands;
  readonly openFilesMax = openFilesHardLimit();
  readonly #firstUid: number | undefined;
  readonly #trash: Trash;

  constructor(options: BoxHostOptions) {
    this.form = options.form;
    this.installId = options.installId;
    this.hasOwnSandbox = options.hasOwnSandbox;
    this.cgroups = options.cgroups;
    this.limits = options.limits;
    this.clock = options.clock;
    this.log = options.log;
    this.links = linkCommands(options.form);
    this.sessionsDir = join(options.dataDir, 'sessions');
    this.#firstUid = options.firstUid;
    this.#trash = new Trash(options.dataDir, options.log);
  }

  uidOf(slot: number): number | undefined {
    return this.#firstUid === undefined ? undefined : this.#firstUid + slot;
  }

  /** Throws unless `uid` is the user id of a box of this data folder. */
  requireOwnUid(uid: number): number {
    const firstUid = this.#firstUid;
    if (firstUid === undefined || uid < firstUid || uid >= firstUid + UIDS_PER_INSTALL)
      throw new Error(`user id ${uid} does not belong to a box of this data folder`);
    return uid;
  }

  /** Returns the command that runs a helper program. Returns undefined if the program is not installed. */
  helper(program: string, args: readonly string[], bounds: HelperBounds): HelperCommand | undefined {
    const path = isAbsolute(program) ? program : findTool(program);
    if (path === undefined || !isExecutable(path)) return undefined;
    return helperChain({ form: this.form, uid: this.uidOf(HELPER_SLOT), program: path, args, bounds });
  }

  folderOf(session: string): SessionFolder {
    return new SessionFolder(this.sessionsDir, session, this.#trash);
  }

  /** Call after every box is closed. */
  async close(): Promise<void> {
    this.cgroups.close();
    await this.#trash.close();
  }

  markOf(session: string): string {
    return `${this.installId}/${session}`;
  }
}

/**
 * Returns this process's hard limit on open files. The line in /proc has the form "Max open files  SOFT  HARD files".
 */
export function openFilesHardLimit(): number {
  const hardLimit = /^Max open files\s+\S+\s+(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
  return hardLimit === undefined || hardLimit === 'unlimited' ? Number.POSITIVE_INFINITY : Number(hardLimit);
}
