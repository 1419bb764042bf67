// `berth sweep`: removes the files and the database rows of sessions whose retention periods have ended, or only prints
// these files and rows.
import { openLocal } from '../../server/local.ts';
import type { Terminal } from '../terminal.ts';

export async function sweep(terminal: Terminal, options: { dryRun?: true; json?: true }): Promise<void> {
  const local = await openLocal(terminal.env);
  try {
    const plan = await local.sweepPlan();
    const sweepResult = options.dryRun ? undefined : await local.sweep();
    if (options.json) return terminal.print(`${JSON.stringify(sweepResult ?? plan)}\n`);
    if (sweepResult)
      return terminal.print(
        `Removed the files of ${sweepResult.files} sessions and the database rows of ${sweepResult.sessions} sessions. ${sweepResult.failed} removals failed.\n`,
      );
    for (const { id, downloads, uploads, bytes } of plan.files)
      terminal.print(`files    ${id}  ${downloads} downloads, ${uploads} uploads, ${bytes} bytes\n`);
    for (const { id, endedAt } of plan.sessions) terminal.print(`session  ${id}  ended ${endedAt.toISOString()}\n`);
    if (plan.files.length + plan.sessions.length === 0) terminal.print('Nothing is due for removal.\n');
  } finally {
    await local.close();
  }
}
