// The command that runs a helper program (ffmpeg) on bytes which a browser chose. The jail holds the program and its
// libraries, read-only: no network, no data folder, no other process, no /proc. The helper has the descriptors that it is
// started with and nothing else. Without a jail it has its bounds only. No part of the chain leaves the process group:
// whoever kills that has killed the helper and the jail around it. Pure.
import { basename } from 'node:path';
import { filterPath } from './filter.ts';
import type { Form, HelperBounds, HelperCommand } from './slots.ts';

export interface HelperChainWish {
  readonly form: Form;
  /** Form `root`: a user id that no box has. */
  readonly uid: number | undefined;
  /** Absolute. */
  readonly program: string;
  readonly args: readonly string[];
  readonly bounds: HelperBounds;
}

/** Its libraries, a list of footage, and what bubblewrap opens. */
const OPEN_FILES = 64;
/** Results go to a pipe. bubblewrap itself must be able to write its user id map. */
const FILE_BYTES = 64 * 1024;
/** Threads of the helpers that run at the same time, with the jails around them. */
const PROCESSES = 64;
/** Below every browser and the server. */
const NICENESS = 10;

/** Where systems keep shared libraries; `/etc/alternatives` holds the links behind some names of Debian's. */
const LIBRARIES: Readonly<Partial<Record<NodeJS.Architecture, readonly string[]>>> = {
  x64: ['/usr/lib/x86_64-linux-gnu', '/usr/lib64'],
  arm64: ['/usr/lib/aarch64-linux-gnu', '/usr/lib/ld-linux-aarch64.so.1', '/usr/lib64'],
};
const LIBRARIES_BESIDE = ['/usr/local/lib', '/etc/alternatives', '/etc/ld.so.cache'];

export function helperChain(wish: HelperChainWish): HelperCommand {
  const isJailed = wish.form !== 'process';
  const inner = isJailed ? ['bwrap', ...jail(wish), '--', inJail(wish)] : [wish.program];
  const withFilter = isJailed ? ['sh', '-c', WITH_FILTER, filterPath()] : [];
  const niced = ['nice', '-n', String(NICENESS), ...inner, ...wish.args];
  const [file = '', ...args] = [...withFilter, ...privileges(wish), ...bounds(wish), ...niced];
  return { file, args };
}

function privileges({ form, uid }: HelperChainWish): readonly string[] {
  if (form === 'process') return [];
  const drop = ['--inh-caps=-all', '--bounding-set=-all', '--no-new-privs', '--'];
  if (form === 'root') return ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', ...drop];
  // In a user namespace of its own only its own processes count against its bound.
  return ['unshare', '--user', '--map-current-user', '--', 'setpriv', '--ambient-caps=-all', ...drop];
}

const bounds = ({ form, bounds: { memoryBytes, cpuSeconds } }: HelperChainWish): readonly string[] => [
  ...['prlimit', `--nofile=${OPEN_FILES}`, `--fsize=${FILE_BYTES}`, '--core=0'],
  ...[`--as=${memoryBytes}`, `--cpu=${cpuSeconds}`],
  ...(form === 'process' ? [] : [`--nproc=${PROCESSES}`]),
  '--',
];

/** bubblewrap reads the filter from there; whoever starts it leaves this descriptor free. */
const FILTER_DESCRIPTOR = 3;
const WITH_FILTER = `exec ${FILTER_DESCRIPTOR}<"$0" "$@"`;

const inJail = ({ program }: HelperChainWish): string => `/usr/bin/${basename(program)}`;

const jail = (wish: HelperChainWish): readonly string[] => [
  ...['--unshare-user', '--uid', '1000', '--gid', '1000', '--unshare-pid', '--unshare-ipc', '--unshare-net'],
  ...['--unshare-uts', '--unshare-cgroup-try', '--die-with-parent'],
  ...[...(LIBRARIES[process.arch] ?? ['/usr/lib', '/usr/lib64']), ...LIBRARIES_BESIDE].flatMap(path => [
    ...['--ro-bind-try', path, path],
  ]),
  ...['--symlink', 'usr/lib', '/lib', '--symlink', 'usr/lib64', '/lib64', '--ro-bind', wish.program, inJail(wish)],
  ...['--chdir', '/', '--remount-ro', '/', '--clearenv', '--seccomp', String(FILTER_DESCRIPTOR)],
];
