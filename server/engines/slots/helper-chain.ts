// Builds the command that runs a helper program (ffmpeg) on untrusted bytes, without running it. The jail holds only
// the program and its libraries, read-only: no network, no data folder, no other process, no /proc. The helper can use
// only the descriptors with which it is started. Without a jail, only resource limits apply. All programs of the chain
// stay in one process group, so killing the group kills the helper and its jail.
import { basename } from 'node:path';
import { filterPath } from './filter.ts';
import type { Form, HelperBounds, HelperCommand } from './slots.ts';

export interface HelperChainOptions {
  readonly form: Form;
  /** Form `root`: a user id that no box uses. */
  readonly uid: number | undefined;
  /** The absolute path of the program. */
  readonly program: string;
  readonly args: readonly string[];
  readonly bounds: HelperBounds;
}

/**
 * Maximum number of open files: enough for the libraries of the helper, the segments that it encodes, and the files
 * that bubblewrap opens.
 */
const OPEN_FILES_MAX = 64;
/** Maximum size of a file: enough for the user id map that bubblewrap writes. Results go to a pipe. */
const FILE_BYTES_MAX = 64 * 1024;
/** Maximum number of processes: enough for the threads of all concurrent helpers and the processes of their jails. */
const PROCESSES_MAX = 64;
/** Gives helpers a lower priority than browsers and the server. */
const NICENESS = 10;

/**
 * Folders of shared libraries that the jail needs. `/etc/alternatives` is needed too, because on Debian some libraries
 * are links through it.
 */
const LIBRARIES: Readonly<Partial<Record<NodeJS.Architecture, readonly string[]>>> = {
  x64: ['/usr/lib/x86_64-linux-gnu', '/usr/lib64'],
  arm64: ['/usr/lib/aarch64-linux-gnu', '/usr/lib/ld-linux-aarch64.so.1', '/usr/lib64'],
};
const COMMON_LIBRARIES = ['/usr/local/lib', '/etc/alternatives', '/etc/ld.so.cache'];

export function helperChain(options: HelperChainOptions): HelperCommand {
  const isJailed = options.form !== 'process';
  const innerCommand = isJailed ? ['bwrap', ...jailArguments(options), '--', pathInJail(options)] : [options.program];
  const filterWrapper = isJailed ? ['sh', '-c', FILTER_SCRIPT, filterPath()] : [];
  const niceCommand = ['nice', '-n', String(NICENESS), ...innerCommand, ...options.args];
  const [file = '', ...args] = [
    ...filterWrapper,
    ...privilegesCommand(options),
    ...limitsCommand(options),
    ...niceCommand,
  ];
  return { file, args };
}

function privilegesCommand({ form, uid }: HelperChainOptions): readonly string[] {
  if (form === 'process') return [];
  const dropOptions = ['--inh-caps=-all', '--bounding-set=-all', '--no-new-privs', '--'];
  if (form === 'root') return ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', ...dropOptions];
  // In a user namespace of its own, only the helper's own processes count against --nproc.
  return ['unshare', '--user', '--map-current-user', '--', 'setpriv', '--ambient-caps=-all', ...dropOptions];
}

const limitsCommand = ({ form, bounds: { memoryBytes, cpuSeconds } }: HelperChainOptions): readonly string[] => [
  ...['prlimit', `--nofile=${OPEN_FILES_MAX}`, `--fsize=${FILE_BYTES_MAX}`, '--core=0'],
  ...[`--as=${memoryBytes}`, `--cpu=${cpuSeconds}`],
  ...(form === 'process' ? [] : [`--nproc=${PROCESSES_MAX}`]),
  '--',
];

/** bubblewrap reads the seccomp filter from this descriptor; the caller must not use it. */
const FILTER_DESCRIPTOR = 3;
const FILTER_SCRIPT = `exec ${FILTER_DESCRIPTOR}<"$0" "$@"`;

const pathInJail = ({ program }: HelperChainOptions): string => `/usr/bin/${basename(program)}`;

const jailArguments = (options: HelperChainOptions): readonly string[] => [
  ...['--unshare-user', '--uid', '1000', '--gid', '1000', '--unshare-pid', '--unshare-ipc', '--unshare-net'],
  ...['--unshare-uts', '--unshare-cgroup-try', '--die-with-parent'],
  ...[...(LIBRARIES[process.arch] ?? ['/usr/lib', '/usr/lib64']), ...COMMON_LIBRARIES].flatMap(path => [
    ...['--ro-bind-try', path, path],
  ]),
  ...[
    '--symlink',
    'usr/lib',
    '/lib',
    '--symlink',
    'usr/lib64',
    '/lib64',
    '--ro-bind',
    options.program,
    pathInJail(options),
  ],
  ...['--chdir', '/', '--remount-ro', '/', '--clearenv', '--seccomp', String(FILTER_DESCRIPTOR)],
];
