// What all boxes of this process stand on, looked up once: the form, ids, limits, cgroups and folders of this data folder.
import { readFileSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import type { Clock } from '../../kit/clock.ts';
import type { Log } from '../../kit/log.ts';
import type { Cgroups, Limits } from './cgroups.ts';
import { listenerCommand } from './egress-listener.ts';
import { helperChain } from './helper-chain.ts';
import { UIDS_PER_INSTALL } from './install.ts';
import { type LinkCommands, linkCommands } from './network-link.ts';
import { SessionFolder } from './session-folder.ts';
import type { Form, HelperBounds, HelperCommand } from './slots.ts';
import { findTool, isExecutable } from './tools.ts';
import { Trash } from './trash.ts';

/** The user id of helpers, which no box has; the last one of all is the probe's. */
const HELPER_SLOT = UIDS_PER_INSTALL - 2;

export interface GroundWish {
  readonly form: Form;
  readonly install: string;
  /** Form `root` only. */
  readonly firstUid: number | undefined;
  /** Whether Chromium's own sandbox works; always so in a jail. */
  readonly ownSandbox: boolean;
  readonly dataDir: string;
  readonly cgroups: Cgroups;
  readonly limits: Limits;
  readonly clock: Clock;
  readonly log: Log;
}

export class Ground {
  readonly form: Form;
  readonly install: string;
  readonly ownSandbox: boolean;
  readonly cgroups: Cgroups;
  readonly limits: Limits;
  readonly clock: Clock;
  readonly log: Log;
  readonly sessionsDir: string;
  readonly listener = listenerCommand();
  readonly links: LinkCommands;
  readonly openFilesMax = hardLimitOfOpenFiles();
  readonly #firstUid: number | undefined;
  readonly #trash: Trash;

  constructor(wish: GroundWish) {
    this.form = wish.form;
    this.install = wish.install;
    this.ownSandbox = wish.ownSandbox;
    this.cgroups = wish.cgroups;
    this.limits = wish.limits;
    this.clock = wish.clock;
    this.log = wish.log;
    this.links = linkCommands(wish.form);
    this.sessionsDir = join(wish.dataDir, 'sessions');
    this.#firstUid = wish.firstUid;
    this.#trash = new Trash(wish.dataDir, wish.log);
  }

  uidOf(slot: number): number | undefined {
    return this.#firstUid === undefined ? undefined : this.#firstUid + slot;
  }

  /** Throws where it is not the user id of a box of ours. */
  demandOwnUid(uid: number): number {
    const first = this.#firstUid;
    if (first === undefined || uid < first || uid >= first + UIDS_PER_INSTALL)
      throw new Error(`user id ${uid} is not one of our boxes'`);
    return uid;
  }

  /** Undefined when the program is not installed. */
  helper(program: string, args: readonly string[], bounds: HelperBounds): HelperCommand | undefined {
    const path = isAbsolute(program) ? program : findTool(program);
    if (path === undefined || !isExecutable(path)) return undefined;
    return helperChain({ form: this.form, uid: this.uidOf(HELPER_SLOT), program: path, args, bounds });
  }

  folderOf(session: string): SessionFolder {
    return new SessionFolder(this.sessionsDir, session, this.#trash);
  }

  /** No box stands on it any more. */
  async close(): Promise<void> {
    this.cgroups.close();
    await this.#trash.close();
  }

  markOf(session: string): string {
    return `${this.install}/${session}`;
  }
}

/** "Max open files  SOFT  HARD  files" */
export function hardLimitOfOpenFiles(): number {
  const hard = /^Max open files\s+\S+\s+(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
  return hard === undefined || hard === 'unlimited' ? Number.POSITIVE_INFINITY : Number(hard);
}
