/** Runs an operation that may fail, and returns whether it succeeded. */
export function attempt(work: () => void): boolean {
  try {
    work();
    return true;
  } catch {
    return false;
  }
}
