// Kills a process that may have ended already, for example because another process of its box has died.
/** Returns whether it existed. */
export function killIfThere(pid: number | undefined): boolean {
  try {
    return pid !== undefined && process.kill(pid, 'SIGKILL');
  } catch {
    return false;
  }
}
