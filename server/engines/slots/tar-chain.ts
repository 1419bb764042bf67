// Builds the command that runs `tar` on a folder of a box, without running it. tar runs as the box's user, in a jail
// that holds only tar, its libraries and that folder, so that a planted link cannot lead to other files of this
// machine. Each program execs the next, and all stay in one process group, so killing the group kills tar and its jail.
// The caller starts the command in its own process session.
import { STAGED_SESSION } from './chain.ts';
import type { Form } from './slots.ts';

export interface TarChainOptions {
  readonly form: Form;
  /** Form `root`: the owner of the folder. */
  readonly uid: number | undefined;
  readonly folder: string;
  /** The entries of the folder to archive. */
  readonly names: readonly string[];
  readonly tar: string;
  readonly fileBytes: number;
}

const TAR_IN_JAIL = '/usr/bin/tar';
const FOLDER_IN_JAIL = '/folder';
/** Far more than tar needs for any name or header. */
const MEMORY_BYTES_MAX = 256 * 1024 ** 2;
const OPEN_FILES_MAX = 256;

/** For untrusted folders: links are stored as links, FIFOs are not opened, unreadable files are left out. */
const CREATE_OPTIONS = [
  ...['--create', '--file=-', '--format=pax', '--pax-option=delete=atime,delete=ctime', '--numeric-owner'],
  ...['--hard-dereference', '--one-file-system', '--ignore-failed-read', '--warning=none'],
];

export interface TarCommand {
  readonly file: string;
  readonly args: readonly string[];
}

export function tarChain(options: TarChainOptions): TarCommand {
  const command = quoteAll(lastCommand(options));
  const shell = ['sh', '-c', ['set -e', 'umask 077', ...stageCommands(options), `exec ${command}`].join('\n')];
  const [file = '', ...args] =
    options.form === 'root' ? ['unshare', '--mount', '--propagation', 'private', '--', ...shell] : shell;
  return { file, args };
}

/** The box's user cannot enter the data folder, so the folder is bind-mounted at a path that the user can enter. */
const stageCommands = ({ form, folder }: TarChainOptions): readonly string[] =>
  form === 'root' ? [`mount --bind ${quoteAll([folder, STAGED_SESSION])}`] : [];

function lastCommand(options: TarChainOptions): readonly string[] {
  const { form, folder, names, tar } = options;
  const args = [...CREATE_OPTIONS, '--', ...names];
  if (form === 'process') return [...limitsCommand(options), tar, '-C', folder, ...args];
  return [
    ...privilegesCommand(options),
    ...limitsCommand(options),
    'bwrap',
    ...jailArguments(options),
    '--',
    TAR_IN_JAIL,
    ...args,
  ];
}

function privilegesCommand({ form, uid }: TarChainOptions): readonly string[] {
  const dropOptions = ['--inh-caps=-all', '--bounding-set=-all', '--no-new-privs', '--'];
  return form === 'root' ? ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', ...dropOptions] : [];
}

const limitsCommand = ({ fileBytes }: TarChainOptions): readonly string[] => [
  ...['prlimit', `--nofile=${OPEN_FILES_MAX}`, `--fsize=${fileBytes}`, `--data=${MEMORY_BYTES_MAX}`, '--core=0', '--'],
];

const jailArguments = ({ form, folder, tar }: TarChainOptions): readonly string[] => [
  ...['--unshare-user', '--uid', '1000', '--gid', '1000', '--unshare-pid', '--unshare-ipc', '--unshare-net'],
  ...['--unshare-uts', '--die-with-parent'],
  ...['/usr/lib', '/usr/lib64', '/etc/ld.so.cache'].flatMap(path => ['--ro-bind-try', path, path]),
  ...['--symlink', 'usr/lib', '/lib', '--symlink', 'usr/lib64', '/lib64', '--ro-bind', tar, TAR_IN_JAIL],
  ...['--ro-bind', form === 'root' ? STAGED_SESSION : folder, FOLDER_IN_JAIL],
  ...['--chdir', FOLDER_IN_JAIL, '--remount-ro', '/', '--clearenv', '--setenv', 'LANG', 'C.UTF-8'],
];

const quoteAll = (words: readonly string[]): string =>
  words.map(word => `'${word.replaceAll("'", `'\\''`)}'`).join(' ');
