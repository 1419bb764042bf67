// The chain of programs that leads from our process into a box. Each replaces itself by the next, so that the pid we
// spawn stays the same up to `timeout`, with whose end (and bubblewrap's --die-with-parent) everything in the box ends.
// Pure: makes commands and runs none.
import { FOLDER_IN_JAIL, jailArguments } from './jail.ts';
import type { BoxPlace, Form, Program, ReadOnlyMount } from './slots.ts';

/** Where the box finds our egress listener; its network namespace holds nothing else. */
export const EGRESS_PORT_IN_JAIL = 3128;
/** Descriptors of the program: 3 towards it, 4 from it; 5 is the channel over which the listener is handed to us. */
export const CHANNEL_DESCRIPTOR = 5;

/** Where bubblewrap reads the filter of system calls from; it closes it. */
const FILTER_DESCRIPTOR = 6;

/** Mount points that only exist to be covered: the box's user could not walk through the real folders' parents. */
export const STAGE = '/run/berth';
export const STAGED_SESSION = `${STAGE}/session`;

export interface Bounds {
  readonly lifetimeMs: number;
  /** Largest single file; the sum is measured. */
  readonly fileBytes: number;
  readonly openFiles: number;
  /** Where no cgroup does it: processes of this user (namespace), and memory of each process. */
  readonly processes?: number;
  readonly dataBytes?: number;
}

export interface ChainWish {
  readonly form: Form;
  /** Form `root`: who the box's processes are on this machine. */
  readonly uid: number | undefined;
  readonly session: { path: string; box: string; uploads: string; notes: string };
  readonly cgroupJoinFiles: readonly string[];
  /** Opens the egress listener in the network namespace that it is started in. */
  readonly listener: readonly string[];
  /** Of `ip -batch`: they make the interfaces of the network namespace. */
  readonly links: readonly string[];
  /** The compiled filter of system calls. */
  readonly filter: string;
  readonly program: Program;
  /** Form `root`: mounts whose parents the box's user cannot walk through, each with its place on the stage. */
  readonly staged: readonly StagedMount[];
  readonly bounds: Bounds;
  /** The program starts only when a line comes in: its folder is still being filled. */
  readonly gated: boolean;
}

export interface StagedMount extends ReadOnlyMount {
  readonly stage: string;
}

export interface Command {
  readonly file: string;
  readonly args: readonly string[];
}

export function placeOf(form: Form, boxFolder: string, egressPort: number, ownSandbox: boolean): BoxPlace {
  return form === 'process'
    ? { folder: boxFolder, egressPort, jailed: false, ownSandbox }
    : { folder: FOLDER_IN_JAIL, egressPort, jailed: true, ownSandbox: true };
}

export function chain(wish: ChainWish): Command {
  const shell = ['sh', '-c', script(wish), 'sh'];
  if (wish.form === 'root') return command(['unshare', '--net', '--mount', '--propagation', 'private', '--', ...shell]);
  // Without --keep-caps the first exec drops what `ip` needs.
  if (wish.form === 'rootless')
    return command(['unshare', '--user', '--map-current-user', '--keep-caps', '--net', '--', ...shell]);
  return command(shell);
}

const command = ([file = '', ...args]: readonly string[]): Command => ({ file, args });

/** What opens the gate of a gated chain. */
export const FILLED = 'filled\n';

/** POSIX shell; everything that varies is quoted. */
function script(wish: ChainWish): string {
  const jailed = wish.form !== 'process';
  return [
    'set -e',
    'umask 077',
    // Files that reach their bound give an error to the program that writes, instead of ending it.
    "trap '' XFSZ",
    // A machine short of memory loses a browser rather than this server or its database. Raising it needs no right.
    'echo 100 > /proc/self/oom_score_adj',
    ...wish.cgroupJoinFiles.map(file => `echo 0 > ${quoted(file)}`),
    `mkfifo ${quoted(`${wish.session.notes}/in`)} ${quoted(`${wish.session.notes}/out`)}`,
    // The program holds both ends itself: it never sees an end of file, and outlives us.
    `exec 3<>${quoted(`${wish.session.notes}/in`)} 4<>${quoted(`${wish.session.notes}/out`)}`,
    ...(jailed ? network(wish) : []),
    ...(wish.form === 'root' ? stage(wish) : []),
    ...(jailed ? [] : ['unset NODE_CHANNEL_FD NODE_CHANNEL_SERIALIZATION_MODE']),
    // Where the line never comes, because we are gone, nothing starts.
    ...(wish.gated ? ['read -r filled', 'test "$filled" = filled'] : []),
    ...(jailed ? [`exec ${FILTER_DESCRIPTOR}<${quoted(wish.filter)}`] : []),
    `exec ${quotedAll(lastCommand(wish))} </dev/null ${CHANNEL_DESCRIPTOR}<&-`,
  ].join('\n');
}

/** The listener starts beside the browser and is there long before the first page loads. Nobody's child, so that no zombie stays. */
const network = (wish: ChainWish): readonly string[] => [
  `printf '%s\\n' ${quotedAll(wish.links)} | ip -batch -`,
  // Without an address of its own IPv6 would still have a route for multicast. Where /proc/sys is read-only it has.
  '{ echo 1 > /proc/sys/net/ipv6/conf/eth0/disable_ipv6; } 2>/dev/null || true',
  `(${quotedAll(wish.listener)} 3<&- 4<&- &)`,
];

/** In this private mount namespace only. */
const stage = (wish: ChainWish): readonly string[] => [
  `mount --bind ${quoted(wish.session.path)} ${STAGED_SESSION}`,
  ...wish.staged.map(mount => `mount --bind ${quotedAll([mount.from, mount.stage])}`),
];

function lastCommand(wish: ChainWish): readonly string[] {
  const { program } = wish;
  const inner =
    wish.form === 'process'
      ? [...settings(program), program.executable, ...program.args]
      : ['bwrap', ...jailArguments({ ...program, ...foldersOf(wish), filterDescriptor: FILTER_DESCRIPTOR })];
  return [...privileges(wish), ...limits(wish.bounds), ...hardEnd(wish.bounds), ...inner];
}

function settings({ env = {} }: Program): readonly string[] {
  const pairs = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  return pairs.length === 0 ? [] : ['env', ...pairs];
}

function privileges({ form, uid }: ChainWish): readonly string[] {
  if (form === 'process') return [];
  const drop = ['--inh-caps=-all', '--bounding-set=-all', '--no-new-privs'];
  if (form === 'root') return ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', ...drop, '--'];
  return ['setpriv', '--ambient-caps=-all', ...drop, '--'];
}

const limits = (bounds: Bounds): readonly string[] => [
  'prlimit',
  `--nofile=${bounds.openFiles}`,
  `--fsize=${bounds.fileBytes}`,
  '--core=0',
  ...(bounds.processes === undefined ? [] : [`--nproc=${bounds.processes}`]),
  ...(bounds.dataBytes === undefined ? [] : [`--data=${bounds.dataBytes}`]),
  '--',
];

/** The deadline that holds even if no server ever comes back. */
const hardEnd = (bounds: Bounds): readonly string[] => ['timeout', '-s', 'KILL', (bounds.lifetimeMs / 1000).toFixed(3)];

function foldersOf(wish: ChainWish): { boxFolder: string; uploadsFolder: string; mounts: readonly ReadOnlyMount[] } {
  if (wish.form !== 'root')
    return { boxFolder: wish.session.box, uploadsFolder: wish.session.uploads, mounts: wish.program.mounts };
  const stages = new Map(wish.staged.map(mount => [mount.from, mount.stage]));
  return {
    boxFolder: `${STAGED_SESSION}/box`,
    uploadsFolder: `${STAGED_SESSION}/uploads`,
    mounts: wish.program.mounts.map(({ from, to }) => ({ from: stages.get(from) ?? from, to })),
  };
}

/** A new listener in the network namespace of a box that is already running. */
export function reenter(form: Form, pid: number, listener: readonly string[]): Command {
  const users = form === 'rootless' ? ['-U', '--preserve-credentials'] : [];
  return command(['nsenter', '-t', String(pid), ...users, '-n', ...listener]);
}

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
const quotedAll = (words: readonly string[]): string => words.map(quoted).join(' ');
