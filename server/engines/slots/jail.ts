// Builds the arguments of bubblewrap for a jail with a minimal read-only root, private /proc, /dev and /tmp, and the
// box's folder. chain.ts uses the arguments.
import { dirname } from 'node:path';
import type { ReadOnlyMount } from './slots.ts';

export interface JailOptions {
  readonly executable: string;
  readonly args: readonly string[];
  readonly mounts: readonly ReadOnlyMount[];
  readonly env?: Readonly<Record<string, string>>;
  /** The folder that is mounted read-write at /session. */
  readonly boxFolder: string;
  /** The folder that is mounted read-only at /tmp/.uploads. */
  readonly uploadsFolder: string;
  /** The descriptor from which bubblewrap reads the seccomp filter. */
  readonly filterDescriptor: number;
}

export const FOLDER_IN_JAIL = '/session';
/** The path that official clients put before the name of an upload. */
export const UPLOADS_IN_JAIL = '/tmp/.uploads';

/**
 * The default time zone. The program can set another one. The box has no /etc/localtime. Without a time zone name,
 * Chromium would search all files of /usr/share/zoneinfo for a match at each start, find none, and use UTC.
 */
const TIME_ZONE = 'UTC';

const MIB = 1024 ** 2;
/** Size of /tmp, which Chromium uses for temporary files. Downloads go to /session. */
const TMP_BYTES = 256 * MIB;
/** Size of /dev/shm. Canvases, video frames and large messages use shared memory. */
const SHM_BYTES = 1024 * MIB;
const RUN_BYTES = MIB;

/**
 * Libraries and data that Chromium reads. Some exist only on some machines (arm64 has no lib64). /usr/bin is left out,
 * so there is no shell.
 */
const SYSTEM_FOLDERS = [
  '/usr/lib',
  '/usr/lib64',
  '/usr/lib32',
  '/usr/share/fonts',
  '/usr/local/share/fonts',
  '/usr/share/fontconfig',
  '/var/cache/fontconfig', // otherwise each start reads every font
  '/usr/share/mime',
  '/usr/share/zoneinfo',
  '/usr/share/glib-2.0',
  '/usr/share/X11/xkb',
  '/etc/fonts',
  '/etc/ssl/certs',
  '/etc/ld.so.cache',
  '/etc/nsswitch.conf',
];

export function jailArguments(options: JailOptions): readonly string[] {
  return [
    ...NAMESPACE_OPTIONS,
    ...SYSTEM_FOLDERS.flatMap(path => ['--ro-bind-try', path, path]),
    ...['--symlink', 'usr/lib', '/lib', '--symlink', 'usr/lib64', '/lib64'],
    ...['--proc', '/proc', '--dev', '/dev'],
    ...privateFolderOptions('/dev/shm', SHM_BYTES),
    ...privateFolderOptions('/tmp', TMP_BYTES),
    ...privateFolderOptions('/run', RUN_BYTES),
    ...['--ro-bind', options.uploadsFolder, UPLOADS_IN_JAIL],
    ...['--bind', options.boxFolder, FOLDER_IN_JAIL, '--chdir', FOLDER_IN_JAIL],
    ...options.mounts.flatMap(mount => ['--ro-bind', mount.from, mount.to]),
    // The root and /dev are file systems in memory (tmpfs), which could each grow to half the machine's memory. They
    // must be writable until all mount points exist. They are then made read-only, so that the box cannot fill them.
    ...['--remount-ro', '/dev', '--remount-ro', '/'],
    ...['--clearenv', '--setenv', 'HOME', FOLDER_IN_JAIL, '--setenv', 'PATH', '/usr/bin'],
    ...['--setenv', 'LANG', 'C.UTF-8', '--setenv', 'TMPDIR', '/tmp', '--setenv', 'TZ', TIME_ZONE],
    ...Object.entries(options.env ?? {}).flatMap(([name, value]) => ['--setenv', name, value]),
    ...['--seccomp', String(options.filterDescriptor), '--', options.executable, ...options.args],
  ];
}

/** `--disable-userns` cannot be used: Chromium's sandbox creates a user namespace inside the jail. */
const NAMESPACE_OPTIONS = [
  ...['--unshare-user', '--uid', '1000', '--gid', '1000', '--unshare-pid', '--unshare-ipc', '--unshare-cgroup-try'],
  ...['--unshare-uts', '--hostname', 'session', '--die-with-parent', '--new-session'],
];

const privateFolderOptions = (path: string, bytes: number): readonly string[] => [
  '--size',
  String(bytes),
  '--tmpfs',
  path,
];

/** Returns the mount for a browser's folder, which is needed if the browser is outside /usr/lib. */
export function programMounts(executable: string): readonly ReadOnlyMount[] {
  const folder = dirname(executable);
  return folder.startsWith('/usr/lib/') ? [] : [{ from: folder, to: folder }];
}
