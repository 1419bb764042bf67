// How many processes of a box the browser has put into a sandbox of its own: in a process namespace below the box's, and under
// one more filter of system calls than the box's first process.
import { descendantsOf, sandboxOf } from './process-table.ts';

export function sandboxedProcesses(init: number | undefined): number {
  const outside = init === undefined ? undefined : sandboxOf(init);
  if (init === undefined || outside === undefined) return 0;
  return descendantsOf(init)
    .map(sandboxOf)
    .filter(inside => inside && inside.depth > outside.depth && inside.filters > outside.filters).length;
}
