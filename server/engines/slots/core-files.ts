// Keeps the memory of this process, which contains secrets of applications, out of core files. Child processes inherit
// the settings.
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { reason } from '../../kit/fault.ts';
import type { Log } from '../../kit/log.ts';
import { findTool } from './tools.ts';

/**
 * The setting that selects the kinds of memory that a core file contains. It also applies when the kernel passes the
 * core file to a program. The size limit has no effect in that case.
 */
const COREDUMP_FILTER_FILE = '/proc/self/coredump_filter';
const PRLIMIT_TIMEOUT_MS = 5_000;

export function disableCoreDumps(log: Log): void {
  try {
    writeFileSync(COREDUMP_FILTER_FILE, '0');
  } catch (error) {
    log.warn('service.core_files_not_emptied', { reason: reason(error) });
  }
  const prlimit = findTool('prlimit');
  const args = [`--pid=${process.pid}`, '--core=0:0'];
  const status = prlimit
    ? spawnSync(prlimit, args, { stdio: 'ignore', env: {}, timeout: PRLIMIT_TIMEOUT_MS }).status
    : undefined;
  if (status !== 0) log.warn('service.core_files_not_forbidden', { reason: 'prlimit of util-linux failed' });
}
