// Kills a process that may already have ended, for example because another process of its box has died.
/** Returns whether the process existed. */
export function killIfRunning(pid: number | undefined): boolean {
  try {
    return pid !== undefined && process.kill(pid, 'SIGKILL');
  } catch {
    return false;
  }
}
