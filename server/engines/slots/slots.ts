// A slot is a place to run one browser: network namespace with our egress listener in it, user id, cgroup, jail,
// session folder. This file is what the rest of the server knows of it; start.ts makes one.
import type { Server } from 'node:net';
import type { Readable } from 'node:stream';
import type { SessionId } from '../../kit/ids.ts';
import type { Closeable } from '../../kit/scope.ts';

/** `slot`: jailed. `process`: no jail at all, only by explicit choice or on a loopback listener. */
export type Isolation = 'slot' | 'process';
/** How a jailed box is made: `root` has a user id and cgroup of its own, `rootless` is an ordinary user's namespaces. */
export type Form = 'root' | 'rootless' | 'process';

/** A path of this machine that the box sees read-only. */
export interface ReadOnlyMount {
  readonly from: string;
  readonly to: string;
}

export interface Program {
  /** Absolute path of the real binary; seen at the same path in the box. */
  readonly executable: string;
  /** Arguments; paths are those of the box (`/session/...`), see `BoxPlace.folder`. */
  readonly args: readonly string[];
  readonly mounts: readonly ReadOnlyMount[];
  /** Besides HOME, PATH, LANG and TMPDIR. Readable by the program's pages' operator: never a secret. */
  readonly env?: Readonly<Record<string, string>>;
}

/** What the arguments of a program may depend on. */
export interface BoxPlace {
  /** The session folder as the program sees it: `/session` in a jail, the real folder without one. */
  readonly folder: string;
  /** The program reaches the egress listener at 127.0.0.1 on this port. */
  readonly egressPort: number;
  /** False in the form `process`. */
  readonly jailed: boolean;
  /** False: Chromium's own sandbox cannot work here (no jail, and root or no user namespaces), so `--no-sandbox` is needed. */
  readonly ownSandbox: boolean;
}

export interface BoxWish {
  readonly session: SessionId;
  /** Called once the place is known and before anything runs in it. */
  readonly program: (place: BoxPlace) => Program;
  /** The outside hard limit (`timeout -s KILL`): the browser dies then, whoever is left. */
  readonly lifetimeMs: number;
  /** Nobody waits for it: it gets little processor time while others want it, until `hasten`. */
  readonly background?: boolean;
  /** Puts files into the box's folder before anything runs in it; they must belong to `uid`, if there is one. */
  readonly fill?: (place: Pick<Remains, 'folder' | 'uid'>, signal: AbortSignal) => Promise<void>;
}

/** What is left of a box when none of its processes is. */
export interface Remains {
  /** The session folder; hostile: never follow a link in it. */
  readonly folder: string;
  /** Ours, and only read by the box. */
  readonly uploads: string;
  /** Who the box's processes were on this machine, if not we. */
  readonly uid: number | undefined;
}

/** Everything a successor process needs to find a box again. JSON; kept in the session's row. */
export interface BoxRecord {
  readonly form: Form;
  readonly slot: number;
  /** The process that all others of the box die with. */
  readonly pid: number;
  /** Field 22 of /proc/PID/stat, with the boot id: a pid alone may be somebody else by now. */
  readonly startTicks: string;
  readonly bootId: string;
}

export interface Box extends Closeable {
  readonly session: SessionId;
  readonly record: BoxRecord;
  /** Named FIFOs that the program holds as descriptors 3 (towards it) and 4 (from it). */
  readonly fifoIn: string;
  readonly fifoOut: string;
  /** A folder of ours beside the box's own, which the box cannot see: small state for a successor. */
  readonly notes: string;
  /** The session folder as we see it (hostile: never follow a link in it), and as the box sees it. */
  readonly folder: string;
  readonly folderInBox: string;
  /** Ours; its files the box reads at /tmp/.uploads, or without a jail right here. */
  readonly uploads: string;
  /** The same folder as the box sees it. */
  readonly uploadsInBox: string;
  /** Who the box's processes are on this machine, if not we. */
  readonly uid: number | undefined;
  /** Connections of the box to 127.0.0.1:3128 (`process`: a loopback port) arrive here; already listening. */
  readonly egress: Server;
  readonly egressPort: number;
  /** Resolves once every process of the box is gone, with why if it is known. */
  readonly gone: Promise<BoxEnd>;
  /** Somebody waits for it now: it gets its full share of processor time. */
  hasten(): void;
  /** The last lines that the program wrote to its error output. */
  stderrTail(): string;
  /** Kills every process and waits until they are gone. The folder stays until `close`. */
  end(): Promise<Remains>;
  /** Ends it, removes folder and cgroup, frees the slot. Idempotent. */
  close(): Promise<void>;
  /** Lets go of a running box without touching it (a successor adopts it). */
  abandon(): Promise<void>;
}

/** The body is as long as it says, and is to be read before the next file. */
export interface NewFile {
  /** Relative, without steps up. */
  readonly name: string;
  readonly size: number;
  readonly body: AsyncIterable<Buffer>;
}

/** What a helper program may take; each of its processes may take as much memory. */
export interface HelperBounds {
  readonly memoryBytes: number;
  readonly cpuSeconds: number;
}

/** A command to spawn, in a process group of its own. */
export interface HelperCommand {
  readonly file: string;
  readonly args: readonly string[];
}

export interface BoxEnd {
  readonly why: 'exited' | 'killed' | 'out_of_memory' | 'disk_limit' | 'closed';
  readonly detail: string;
}

export interface DiskRoom {
  readonly freeBytes: number;
  /** With less than this, no box should be started. */
  readonly leastBytes: number;
}

export interface Slots extends Closeable {
  readonly isolation: Isolation;
  readonly form: Form;
  /** How many boxes may run at once. */
  readonly size: number;
  /** How many hold a place now, from before their first process until nothing of them is left. */
  readonly taken: number;
  /** What this form cannot do here, each as one sentence for the operator. */
  readonly missing: readonly string[];
  /** How full the disk is that all session folders share. */
  diskRoom(): Promise<DiskRoom>;
  /** Takes a free slot and starts the program in it. */
  start(wish: BoxWish, signal: AbortSignal): Promise<Box>;
  /** Finds a box of a former process: same process, slot marked used, a new egress listener in its namespace. Undefined when it is gone. */
  adopt(session: SessionId, record: BoxRecord, signal: AbortSignal): Promise<Box | undefined>;
  /**
   * Hands a tar of these entries of a folder to `take`, read as the folder's owner in a jail with nothing else in it. The
   * folder is hostile, and so is what stands in the tar.
   */
  readTar<T>(
    folder: string,
    names: readonly string[],
    take: (tar: Readable) => Promise<T>,
    signal: AbortSignal,
  ): Promise<T>;
  /**
   * Fills the folder of a box in which nothing ran yet; all of it belongs to the folder's owner. Names must lead nowhere
   * else. Files that are there already make it fail.
   */
  writeFiles(folder: string, files: AsyncIterable<NewFile>, signal: AbortSignal): Promise<void>;
  /**
   * The command that runs a program on bytes which a browser chose: jailed where boxes are, bounded everywhere. It reaches
   * only the descriptors that it is started with. Undefined when the program is not installed.
   */
  helper(program: string, args: readonly string[], bounds: HelperBounds): HelperCommand | undefined;
  /** Removes a folder that may hold anything. */
  remove(folder: string): Promise<void>;
  /**
   * Ends and removes every process, cgroup and folder of this data folder that belongs to none of these sessions. Returns
   * their ids. `salvage` is called for each when nothing of it lives, before its folder goes.
   */
  sweep(
    keep: ReadonlySet<SessionId>,
    salvage?: (session: string, remains: Remains) => Promise<void>,
  ): Promise<readonly string[]>;
}
