// Removes a folder that untrusted programs have written to.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { withTimeout } from '../../kit/wait.ts';
import { TOOL_PATH } from './tools.ts';

/** Long enough for many files on a slow disk. */
const REMOVE_TIMEOUT_MS = 120_000;

/**
 * Removes the folder. `rm` opens each folder relative to its parent, so long paths, unusual names and replaced links do
 * no harm. Call after every process that writes to the folder has ended.
 */
export async function removeFolder(path: string): Promise<void> {
  if (!existsSync(path) || (await runSucceeds('rm', ['-rf', '--one-file-system', '--', path]))) return;
  // If the box removed the permissions of its folders, an ordinary user cannot enter the folders.
  await runSucceeds('chmod', ['-R', 'u+rwX', '--', path]);
  if (!(await runSucceeds('rm', ['-rf', '--one-file-system', '--', path])))
    throw new Error(`the folder ${path} could not be removed`);
}

function runSucceeds(command: string, args: readonly string[]): Promise<boolean> {
  return withTimeout(REMOVE_TIMEOUT_MS, `${command} of a session folder`, async signal => {
    const child = spawn(command, args, { stdio: 'ignore', env: { PATH: TOOL_PATH }, signal });
    const [code]: unknown[] = await once(child, 'exit', { signal });
    return code === 0;
  });
}
