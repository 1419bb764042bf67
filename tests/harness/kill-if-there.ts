// Kills by number what may have ended already: the first of a box to die takes the others along.
/** Says whether it was there. */
export function killIfThere(pid: number | undefined): boolean {
  try {
    return pid !== undefined && process.kill(pid, 'SIGKILL');
  } catch {
    return false;
  }
}
