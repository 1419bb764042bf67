// Counts the processes of a box that are inside the browser's own sandbox: in a pid namespace below the box's, and
// under more seccomp filters than the box's first process.
import { descendantsOf, sandboxOf } from './process-table.ts';

export function countSandboxedProcesses(init: number | undefined): number {
  const initSandbox = init === undefined ? undefined : sandboxOf(init);
  if (init === undefined || initSandbox === undefined) return 0;
  return descendantsOf(init)
    .map(sandboxOf)
    .filter(
      processSandbox =>
        processSandbox && processSandbox.depth > initSandbox.depth && processSandbox.filters > initSandbox.filters,
    ).length;
}
