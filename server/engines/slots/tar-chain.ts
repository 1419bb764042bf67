// The command that runs `tar` on a folder which the box's user owns, as that user, in a jail that holds the program, its
// libraries and that folder: what it reads through a planted link is then nothing of this machine. Each program replaces
// itself by the next, and none leaves the process group: whoever kills that has killed tar and the jail around it. It is to
// be started in a session of its own, away from any terminal. Pure.
import { STAGED_SESSION } from './chain.ts';
import type { Form } from './slots.ts';

export interface TarChainWish {
  readonly form: Form;
  /** Form `root`: who owns the folder. */
  readonly uid: number | undefined;
  readonly folder: string;
  /** A tar of these entries of the folder comes out. */
  readonly names: readonly string[];
  readonly tar: string;
  readonly fileBytes: number;
}

const TAR_IN_JAIL = '/usr/bin/tar';
const FOLDER_IN_JAIL = '/folder';
/** Far more than tar needs; a name or a header cannot make it take more. */
const MEMORY_BYTES = 256 * 1024 ** 2;
const OPEN_FILES = 256;

/** A folder that is full of traps is read as it is: links stay links, pipes are not opened, what cannot be read is left out. */
const READ = [
  ...['--create', '--file=-', '--format=pax', '--pax-option=delete=atime,delete=ctime', '--numeric-owner'],
  ...['--hard-dereference', '--one-file-system', '--ignore-failed-read', '--warning=none'],
];

export interface TarCommand {
  readonly file: string;
  readonly args: readonly string[];
}

export function tarChain(wish: TarChainWish): TarCommand {
  const command = quotedAll(lastCommand(wish));
  const shell = ['sh', '-c', ['set -e', 'umask 077', ...stage(wish), `exec ${command}`].join('\n')];
  const [file = '', ...args] =
    wish.form === 'root' ? ['unshare', '--mount', '--propagation', 'private', '--', ...shell] : shell;
  return { file, args };
}

/** The user cannot walk through the data folder; so the folder comes to a place that everybody can reach. */
const stage = ({ form, folder }: TarChainWish): readonly string[] =>
  form === 'root' ? [`mount --bind ${quotedAll([folder, STAGED_SESSION])}`] : [];

function lastCommand(wish: TarChainWish): readonly string[] {
  const { form, folder, names, tar } = wish;
  const args = [...READ, '--', ...names];
  if (form === 'process') return [...bounds(wish), tar, '-C', folder, ...args];
  return [...privileges(wish), ...bounds(wish), 'bwrap', ...jail(wish), '--', TAR_IN_JAIL, ...args];
}

function privileges({ form, uid }: TarChainWish): readonly string[] {
  const drop = ['--inh-caps=-all', '--bounding-set=-all', '--no-new-privs', '--'];
  return form === 'root' ? ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', ...drop] : [];
}

const bounds = ({ fileBytes }: TarChainWish): readonly string[] => [
  ...['prlimit', `--nofile=${OPEN_FILES}`, `--fsize=${fileBytes}`, `--data=${MEMORY_BYTES}`, '--core=0', '--'],
];

const jail = ({ form, folder, tar }: TarChainWish): readonly string[] => [
  ...['--unshare-user', '--uid', '1000', '--gid', '1000', '--unshare-pid', '--unshare-ipc', '--unshare-net'],
  ...['--unshare-uts', '--die-with-parent'],
  ...['/usr/lib', '/usr/lib64', '/etc/ld.so.cache'].flatMap(path => ['--ro-bind-try', path, path]),
  ...['--symlink', 'usr/lib', '/lib', '--symlink', 'usr/lib64', '/lib64', '--ro-bind', tar, TAR_IN_JAIL],
  ...['--ro-bind', form === 'root' ? STAGED_SESSION : folder, FOLDER_IN_JAIL],
  ...['--chdir', FOLDER_IN_JAIL, '--remount-ro', '/', '--clearenv', '--setenv', 'LANG', 'C.UTF-8'],
];

const quotedAll = (words: readonly string[]): string =>
  words.map(word => `'${word.replaceAll("'", `'\\''`)}'`).join(' ');
