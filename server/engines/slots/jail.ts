// The jail: what bubblewrap is told. A minimal read-only root, private /proc, /dev and /tmp, and the session's own folder.
// Pure; how the jail is entered is chain.ts. Facts behind each choice stand beside it.
import { dirname } from 'node:path';
import type { ReadOnlyMount } from './slots.ts';

export interface JailWish {
  readonly executable: string;
  readonly args: readonly string[];
  readonly mounts: readonly ReadOnlyMount[];
  readonly env?: Readonly<Record<string, string>>;
  /** Bound read-write to /session. */
  readonly boxFolder: string;
  /** Bound read-only to /tmp/.uploads. */
  readonly uploadsFolder: string;
  /** The filter of system calls stands open there. */
  readonly filterDescriptor: number;
}

export const FOLDER_IN_JAIL = '/session';
/** The literal path that official clients put before an upload's name. */
export const UPLOADS_IN_JAIL = '/tmp/.uploads';

const MIB = 1024 ** 2;
/** Chromium's own scratch files; downloads go to /session. */
const TMP_BYTES = 256 * MIB;
/** Canvases, video frames and large messages travel through shared memory. */
const SHM_BYTES = 1024 * MIB;
const RUN_BYTES = MIB;

/** Libraries and data that Chromium reads; `try`, because machines differ (arm64 has no lib64). None of /usr/bin: no shell. */
const SYSTEM_FOLDERS = [
  '/usr/lib',
  '/usr/lib64',
  '/usr/lib32',
  '/usr/share/fonts',
  '/usr/local/share/fonts',
  '/usr/share/fontconfig',
  '/usr/share/mime',
  '/usr/share/zoneinfo',
  '/usr/share/glib-2.0',
  '/usr/share/X11/xkb',
  '/etc/fonts',
  '/etc/ssl/certs',
  '/etc/ld.so.cache',
  '/etc/nsswitch.conf',
];

export function jailArguments(wish: JailWish): readonly string[] {
  return [
    ...namespaces,
    ...SYSTEM_FOLDERS.flatMap(path => ['--ro-bind-try', path, path]),
    ...['--symlink', 'usr/lib', '/lib', '--symlink', 'usr/lib64', '/lib64'],
    ...['--proc', '/proc', '--dev', '/dev'],
    ...privateFolder('/dev/shm', SHM_BYTES),
    ...privateFolder('/tmp', TMP_BYTES),
    ...privateFolder('/run', RUN_BYTES),
    ...['--ro-bind', wish.uploadsFolder, UPLOADS_IN_JAIL],
    ...['--bind', wish.boxFolder, FOLDER_IN_JAIL, '--chdir', FOLDER_IN_JAIL],
    ...wish.mounts.flatMap(mount => ['--ro-bind', mount.from, mount.to]),
    // The root and /dev are memory file systems of half the machine's memory, and writable until here.
    ...['--remount-ro', '/dev', '--remount-ro', '/'],
    ...['--clearenv', '--setenv', 'HOME', FOLDER_IN_JAIL, '--setenv', 'PATH', '/usr/bin'],
    ...['--setenv', 'LANG', 'C.UTF-8', '--setenv', 'TMPDIR', '/tmp'],
    ...Object.entries(wish.env ?? {}).flatMap(([name, value]) => ['--setenv', name, value]),
    ...['--seccomp', String(wish.filterDescriptor), '--', wish.executable, ...wish.args],
  ];
}

/** Chromium's sandbox makes a user namespace of its own inside, so `--disable-userns` cannot be used. */
const namespaces = [
  ...['--unshare-user', '--uid', '1000', '--gid', '1000', '--unshare-pid', '--unshare-ipc', '--unshare-cgroup-try'],
  ...['--unshare-uts', '--hostname', 'session', '--die-with-parent', '--new-session'],
];

const privateFolder = (path: string, bytes: number): readonly string[] => ['--size', String(bytes), '--tmpfs', path];

/** A browser that lives elsewhere than with the system's libraries needs its own folder. */
export function folderOfProgram(executable: string): readonly ReadOnlyMount[] {
  const folder = dirname(executable);
  return folder.startsWith('/usr/lib/') ? [] : [{ from: folder, to: folder }];
}
