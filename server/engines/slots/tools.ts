// The system programs that boxes need, and where they are searched for. The PATH of the environment is not used: it may
// contain folders that others can write to.
import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';

export const TOOL_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Each program with its Debian package. */
export const TOOLS = {
  bwrap: 'bubblewrap',
  unshare: 'util-linux',
  nsenter: 'util-linux',
  setpriv: 'util-linux',
  prlimit: 'util-linux',
  mount: 'mount',
  ip: 'iproute2',
  timeout: 'coreutils',
  mkfifo: 'coreutils',
  nice: 'coreutils',
  rm: 'coreutils',
  perl: 'perl-base',
  sh: 'dash',
  tar: 'tar',
} as const;

export type Tool = keyof typeof TOOLS;

/** Needed for jailed boxes. */
export const JAIL_TOOLS: readonly Tool[] = [
  'bwrap',
  'unshare',
  'nsenter',
  'setpriv',
  'prlimit',
  'mount',
  'ip',
  'timeout',
  'mkfifo',
  'nice',
  'rm',
  'perl',
  'sh',
  'tar',
];
export const PROCESS_TOOLS: readonly Tool[] = ['prlimit', 'timeout', 'mkfifo', 'nice', 'rm', 'sh', 'tar'];

export function findTool(name: string): string | undefined {
  return TOOL_PATH.split(':')
    .map(folder => join(folder, name))
    .find(isExecutable);
}

export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

export const absentTools = (tools: readonly Tool[]): readonly Tool[] => tools.filter(tool => !findTool(tool));
