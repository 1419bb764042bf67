// Builds the command that starts a box, without running it. The command is a chain of programs. Each program execs the
// next, so `timeout` has the pid of the spawned process. When `timeout` ends, everything in the box ends (bubblewrap's
// --die-with-parent).
import { FOLDER_IN_JAIL, jailArguments } from './jail.ts';
import type { BoxLayout, Form, Program, ReadOnlyMount } from './slots.ts';

/** The port of the egress listener, the only listener in the box's network namespace. */
export const EGRESS_PORT_IN_JAIL = 3128;
/**
 * Descriptor 3 is the program's input, and descriptor 4 its output. Descriptor 5 is the IPC channel through which the
 * listener is passed to the server.
 */
const IPC_DESCRIPTOR = 5;

/** bubblewrap reads the seccomp filter from this descriptor, and closes it. */
const FILTER_DESCRIPTOR = 6;

/** The folder with the mount points for paths whose parents the box's user cannot enter. */
export const STAGE = '/run/berth';
export const STAGED_SESSION = `${STAGE}/session`;

export interface Bounds {
  readonly lifetimeMs: number;
  /** Maximum size of a single file. limit-watch.ts limits the total size. */
  readonly fileBytes: number;
  readonly openFiles: number;
  /**
   * Limits that apply if no cgroup sets them: the number of processes of the box's user (in a user namespace, only
   * those in that namespace), and the memory of each process.
   */
  readonly processes?: number;
  readonly dataBytes?: number;
}

export interface ChainOptions {
  readonly form: Form;
  /** Form `root`: the user id of the box's processes on this machine. */
  readonly uid: number | undefined;
  readonly session: { path: string; box: string; uploads: string; notes: string };
  readonly cgroupJoinFiles: readonly string[];
  /** The command that opens the egress listener. The command runs in the box's network namespace. */
  readonly listener: readonly string[];
  /** Commands for `ip -batch` that create the network interfaces. */
  readonly links: readonly string[];
  /** Path of the compiled seccomp filter. */
  readonly filter: string;
  readonly program: Program;
  /** Form `root`: mounts whose parents the box's user cannot enter, each with its mount point. */
  readonly stagedMounts: readonly StagedMount[];
  readonly bounds: Bounds;
  /** Whether the program must wait for a line on standard input, because its folder is still being filled. */
  readonly isGated: boolean;
}

export interface StagedMount extends ReadOnlyMount {
  readonly mountPoint: string;
}

export interface Command {
  readonly file: string;
  readonly args: readonly string[];
}

export function layoutOf(form: Form, boxFolder: string, egressPort: number, hasOwnSandbox: boolean): BoxLayout {
  return form === 'process'
    ? { folder: boxFolder, egressPort, hasJail: false, hasOwnSandbox }
    : { folder: FOLDER_IN_JAIL, egressPort, hasJail: true, hasOwnSandbox: true };
}

export function boxChain(options: ChainOptions): Command {
  const shell = ['sh', '-c', chainScript(options), 'sh'];
  if (options.form === 'root')
    return toCommand(['unshare', '--net', '--mount', '--propagation', 'private', '--', ...shell]);
  // Without --keep-caps the first exec drops the capabilities that `ip` needs.
  if (options.form === 'rootless')
    return toCommand(['unshare', '--user', '--map-current-user', '--keep-caps', '--net', '--', ...shell]);
  return toCommand(shell);
}

const toCommand = ([file = '', ...args]: readonly string[]): Command => ({ file, args });

/** The line that starts the program of a gated chain. */
export const GATE_LINE = 'filled\n';

/** Returns the script in POSIX shell. All values are quoted. */
function chainScript(options: ChainOptions): string {
  const isJailed = options.form !== 'process';
  return [
    'set -e',
    'umask 077',
    // When a file reaches the size limit, the write fails with EFBIG instead of ending the program.
    "trap '' XFSZ",
    // With this value, the kernel kills a browser before the server or its database when the machine runs out of
    // memory. Raising the value needs no privilege.
    'echo 100 > /proc/self/oom_score_adj',
    ...options.cgroupJoinFiles.map(file => `echo 0 > ${shellQuote(file)}`),
    `mkfifo ${shellQuote(`${options.session.notes}/in`)} ${shellQuote(`${options.session.notes}/out`)}`,
    // The program holds both ends of each FIFO. It therefore reads no end-of-file when the server exits, and keeps
    // running.
    `exec 3<>${shellQuote(`${options.session.notes}/in`)} 4<>${shellQuote(`${options.session.notes}/out`)}`,
    ...(isJailed ? networkCommands(options) : []),
    ...(options.form === 'root' ? stageCommands(options) : []),
    ...(isJailed ? [] : ['unset NODE_CHANNEL_FD NODE_CHANNEL_SERIALIZATION_MODE']),
    // If the server dies before it sends the line, the program is not started.
    ...(options.isGated ? ['read -r filled', 'test "$filled" = filled'] : []),
    ...(isJailed ? [`exec ${FILTER_DESCRIPTOR}<${shellQuote(options.filter)}`] : []),
    `exec ${quoteAll(lastCommand(options))} </dev/null ${IPC_DESCRIPTOR}<&-`,
  ].join('\n');
}

/**
 * Commands that set up the network. The listener starts concurrently with the browser and is ready before the first
 * page loads. Its process is orphaned, so that the init process reaps it.
 */
const networkCommands = (options: ChainOptions): readonly string[] => [
  `printf '%s\\n' ${quoteAll(options.links)} | ip -batch -`,
  // Disables IPv6, which would have a multicast route even without an address. If /proc/sys is read-only, the route
  // remains.
  '{ echo 1 > /proc/sys/net/ipv6/conf/eth0/disable_ipv6; } 2>/dev/null || true',
  `(${quoteAll(options.listener)} 3<&- 4<&- &)`,
];

/** These mounts exist only in the box's private mount namespace. */
const stageCommands = (options: ChainOptions): readonly string[] => [
  `mount --bind ${shellQuote(options.session.path)} ${STAGED_SESSION}`,
  ...options.stagedMounts.map(mount => `mount --bind ${quoteAll([mount.from, mount.mountPoint])}`),
];

function lastCommand(options: ChainOptions): readonly string[] {
  const { program } = options;
  const innerCommand =
    options.form === 'process'
      ? [...environmentCommand(program), program.executable, ...program.args]
      : ['bwrap', ...jailArguments({ ...program, ...foldersOf(options), filterDescriptor: FILTER_DESCRIPTOR })];
  return [
    ...privilegesCommand(options),
    ...limitsCommand(options.bounds),
    ...lifetimeCommand(options.bounds),
    ...innerCommand,
  ];
}

function environmentCommand({ env = {} }: Program): readonly string[] {
  const pairs = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  return pairs.length === 0 ? [] : ['env', ...pairs];
}

function privilegesCommand({ form, uid }: ChainOptions): readonly string[] {
  if (form === 'process') return [];
  const dropOptions = ['--inh-caps=-all', '--bounding-set=-all', '--no-new-privs'];
  if (form === 'root') return ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', ...dropOptions, '--'];
  return ['setpriv', '--ambient-caps=-all', ...dropOptions, '--'];
}

const limitsCommand = (bounds: Bounds): readonly string[] => [
  'prlimit',
  `--nofile=${bounds.openFiles}`,
  `--fsize=${bounds.fileBytes}`,
  '--core=0',
  ...(bounds.processes === undefined ? [] : [`--nproc=${bounds.processes}`]),
  ...(bounds.dataBytes === undefined ? [] : [`--data=${bounds.dataBytes}`]),
  '--',
];

/** Ends the box after its lifetime, even if no server is running by then. */
const lifetimeCommand = (bounds: Bounds): readonly string[] => [
  'timeout',
  '-s',
  'KILL',
  (bounds.lifetimeMs / 1000).toFixed(3),
];

function foldersOf(options: ChainOptions): {
  boxFolder: string;
  uploadsFolder: string;
  mounts: readonly ReadOnlyMount[];
} {
  if (options.form !== 'root')
    return { boxFolder: options.session.box, uploadsFolder: options.session.uploads, mounts: options.program.mounts };
  const mountPoints = new Map(options.stagedMounts.map(mount => [mount.from, mount.mountPoint]));
  return {
    boxFolder: `${STAGED_SESSION}/box`,
    uploadsFolder: `${STAGED_SESSION}/uploads`,
    mounts: options.program.mounts.map(({ from, to }) => ({ from: mountPoints.get(from) ?? from, to })),
  };
}

/** The command that opens a new listener in the network namespace of a running box. */
export function enterNamespacesCommand(form: Form, pid: number, listener: readonly string[]): Command {
  const userOptions = form === 'rootless' ? ['-U', '--preserve-credentials'] : [];
  return toCommand(['nsenter', '-t', String(pid), ...userOptions, '-n', ...listener]);
}

const shellQuote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
const quoteAll = (words: readonly string[]): string => words.map(shellQuote).join(' ');
