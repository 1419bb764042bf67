// The interfaces of slots and boxes, for use by other modules. A box is the running jail of one browser, with its
// processes, user id, cgroup, session folder, and a network namespace with an egress listener. start-box.ts starts one.
import type { Server } from 'node:net';
import type { Readable } from 'node:stream';
import type { SessionId } from '../../kit/ids.ts';
import type { Closeable } from '../../kit/scope.ts';

/**
 * `slot`: with a jail. `process`: without a jail, because this is configured, or because `auto` is configured, a jail
 * is not possible and the server listens on loopback only.
 */
export type Isolation = 'slot' | 'process';
/** `root`: each box has its own user id and cgroup. `rootless`: namespaces of an ordinary user. `process`: no jail. */
export type Form = 'root' | 'rootless' | 'process';

/** A path of this machine that is mounted read-only in the box. */
export interface ReadOnlyMount {
  readonly from: string;
  readonly to: string;
}

export interface Program {
  /** Absolute path of the binary, which is the same inside the box. */
  readonly executable: string;
  /** Arguments contain paths as they are inside the box (`/session/...`). See `BoxLayout.folder`. */
  readonly args: readonly string[];
  readonly mounts: readonly ReadOnlyMount[];
  /**
   * Environment variables in addition to HOME, PATH, LANG, TMPDIR and TZ. The client of the browser can read them, so
   * they must not contain secrets.
   */
  readonly env?: Readonly<Record<string, string>>;
}

/** The values on which the program's arguments may depend. */
export interface BoxLayout {
  /** The box's folder, as seen by the program: `/session` in a jail, the real path without one. */
  readonly folder: string;
  /** The program reaches the egress listener at 127.0.0.1 on this port. */
  readonly egressPort: number;
  /** Whether the program runs in a jail. False in the form `process`. */
  readonly hasJail: boolean;
  /**
   * False if Chromium's own sandbox cannot work (no jail, and the server runs as root or user namespaces are not
   * available). `--no-sandbox` is then needed.
   */
  readonly hasOwnSandbox: boolean;
}

export interface BoxRequest {
  readonly session: SessionId;
  /** Called when the layout is known, before anything runs. */
  readonly program: (layout: BoxLayout) => Program;
  /** Enforced by `timeout -s KILL` around the browser, so the limit applies even if no server is running. */
  readonly lifetimeMs: number;
  /**
   * Whether the box starts with a small share of processor time, which it keeps until `claim`. Set for warm browsers.
   */
  readonly background?: boolean;
  /** Writes files into the box's folder before the program runs. They must belong to `uid`, if there is one. */
  readonly fill?: (target: Pick<Remains, 'folder' | 'uid'>, signal: AbortSignal) => Promise<void>;
}

/** The remains of a box when all its processes have ended. */
export interface Remains {
  /** The box's folder. Untrusted: do not follow links in it. */
  readonly folder: string;
  /** The folder of uploads. The server writes to it; in the box it is read-only. */
  readonly uploads: string;
  /** The user id of the box's processes on this machine, if it differs from the server's. */
  readonly uid: number | undefined;
}

/** The data that a restarted server needs to adopt the box. Stored as JSON in the session's row. */
export interface BoxRecord {
  readonly form: Form;
  readonly slot: number;
  /** The process whose exit ends all other processes of the box. */
  readonly pid: number;
  /** Field 22 of /proc/PID/stat. Together with the boot id, it identifies the process, because pids are reused. */
  readonly startTicks: string;
  readonly bootId: string;
}

/** The resources that a box has used. A field is absent if the kernel does not count it for the box. */
export interface BoxResources {
  readonly cpuMs?: number;
  readonly peakMemoryBytes?: number;
}

/** A command line switch with a value, such as `--type=renderer`. */
export type Switch = `--${string}=${string}`;

export interface Box extends Closeable {
  readonly session: SessionId;
  readonly record: BoxRecord;
  /** FIFOs that the program holds as descriptors 3 (its input) and 4 (its output). */
  readonly fifoIn: string;
  readonly fifoOut: string;
  /** A folder for the server's own notes, for use after a restart. Not visible in the box. */
  readonly notes: string;
  /** The box's folder on this machine (untrusted: do not follow links in it), and its path inside the box. */
  readonly folder: string;
  readonly folderInBox: string;
  /** A folder that the server writes to. The box reads it at /tmp/.uploads, or, without a jail, at this path. */
  readonly uploads: string;
  /** Path of `uploads` inside the box. */
  readonly uploadsInBox: string;
  /** The user id of the box's processes on this machine, if it differs from the server's. */
  readonly uid: number | undefined;
  /** Receives the box's connections to 127.0.0.1:3128, or to `egressPort` without a jail. Already listening. */
  readonly egress: Server;
  readonly egressPort: number;
  /** Resolves when every process of the box has ended, with the reason if it is known. */
  readonly whenGone: Promise<BoxEnd>;
  /**
   * Returns what the box has used since it was started, even if an earlier server started it. Can be called until
   * `close`.
   */
  resources(): BoxResources;
  /** Call when a session claims the box. Gives a `background` box its full share of processor time. */
  claim(): void;
  /** The last lines that the program wrote to standard error. */
  stderrTail(): string;
  /**
   * Waits until all threads of the processes with this command line switch sleep and have not run since the previous check,
   * which means that they have nothing left to do. Returns at once if there is no such process. Throws `WaitExpired` after
   * `ms` milliseconds.
   */
  waitUntilAsleep(switchText: Switch, ms: number): Promise<void>;
  /** Kills the processes with this command line switch. Throws `WaitExpired` if they have not ended within `ms`. */
  kill(switchText: Switch, ms: number): Promise<void>;
  /** Kills every process and waits until they have ended. The folder stays until `close`. */
  end(): Promise<Remains>;
  /** Ends the box, removes its folder and cgroup, and frees the slot. Idempotent. */
  close(): Promise<void>;
  /** Releases what this process holds for the box. The box keeps running, so that the next server can adopt it. */
  abandon(): Promise<void>;
}

/** `body` has exactly `size` bytes, and must be read before the next file is requested. */
export interface NewFile {
  /** Relative path, without `..`. */
  readonly name: string;
  readonly size: number;
  readonly body: AsyncIterable<Buffer>;
}

/** Resource limits of a helper program. The memory limit applies to each of its processes. */
export interface HelperBounds {
  readonly memoryBytes: number;
  readonly cpuSeconds: number;
}

/** A command to spawn in its own process group. */
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
  /** No box should be started when fewer bytes than this are free. */
  readonly minFreeBytes: number;
  /** How many more files can be created. Infinite if the file system has no limit. */
  readonly freeFiles: number;
  /** No box should be started when fewer files than this can be created. */
  readonly minFreeFiles: number;
}

/** A browser that a box can run. */
export type Engine = 'chromium' | 'headless-shell';

export interface Slots extends Closeable {
  /** The installed engines that passed the probe, each with its executable. */
  readonly engines: ReadonlyMap<Engine, string>;
  readonly isolation: Isolation;
  readonly form: Form;
  /** How many boxes may run at once. */
  readonly size: number;
  /**
   * The number of slots in use. A slot is in use from before the first process of its box is started until the box is
   * removed.
   */
  readonly usedCount: number;
  /** The protections that are missing on this machine, each as one sentence for the operator. */
  readonly missingFeatures: readonly string[];
  /** Free space of the disk that holds the session folders. */
  readDiskRoom(): Promise<DiskRoom>;
  /** Takes a free slot and starts the program in it. */
  start(options: BoxRequest, signal: AbortSignal): Promise<Box>;
  /**
   * Adopts a box that an earlier server started: takes its slot and opens a new egress listener. Returns undefined if
   * the box is gone.
   */
  adopt(session: SessionId, record: BoxRecord, signal: AbortSignal): Promise<Box | undefined>;
  /**
   * Passes a tar archive of these entries of a folder to `take`. tar runs as the folder's owner, in a jail that
   * contains no other data. The folder and the content of the archive are untrusted.
   */
  readTar<T>(
    folder: string,
    names: readonly string[],
    take: (tar: Readable) => Promise<T>,
    signal: AbortSignal,
  ): Promise<T>;
  /**
   * Writes files into the folder of a box that has not started. The files belong to the folder's owner. The caller has
   * checked that names stay inside the folder. Throws if a file exists.
   */
  writeFiles(folder: string, files: AsyncIterable<NewFile>, signal: AbortSignal): Promise<void>;
  /**
   * Returns the command that runs a program on untrusted bytes: in a jail if boxes are jailed, always with resource
   * limits. The program can use only the descriptors that it is started with. Returns undefined if the program is not
   * installed.
   */
  helper(program: string, args: readonly string[], bounds: HelperBounds): HelperCommand | undefined;
  /** Removes a folder with untrusted content. */
  remove(folder: string): Promise<void>;
  /**
   * Ends and removes the processes, cgroups and folders of all sessions of this data folder except `keep`. Returns the
   * ids of the removed sessions. `salvage` is called for each session when its processes have ended, before its folder
   * is removed.
   */
  sweep(
    keep: ReadonlySet<SessionId>,
    salvage?: (session: string, remains: Remains) => Promise<void>,
  ): Promise<readonly string[]>;
}
