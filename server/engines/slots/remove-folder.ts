// Removes a folder whatever hostile programs have put there.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { within } from '../../kit/wait.ts';
import { TOOL_PATH } from './tools.ts';

/** Removing many files from a slow disk takes its time. */
const REMOVE_WITHIN_MS = 120_000;

/** `rm` walks by open folders: no depth, name or link misleads it. Nothing that writes there may be alive any more. */
export async function removeFolder(path: string): Promise<void> {
  if (!existsSync(path) || (await succeeds('rm', ['-rf', '--one-file-system', '--', path]))) return;
  // An ordinary user cannot enter folders from which the box took the permissions.
  await succeeds('chmod', ['-R', 'u+rwX', '--', path]);
  if (!(await succeeds('rm', ['-rf', '--one-file-system', '--', path]))) throw new Error(`cannot remove ${path}`);
}

function succeeds(command: string, args: readonly string[]): Promise<boolean> {
  return within(REMOVE_WITHIN_MS, `${command} of a session folder`, async signal => {
    const child = spawn(command, args, { stdio: 'ignore', env: { PATH: TOOL_PATH }, signal });
    const [code]: unknown[] = await once(child, 'exit', { signal });
    return code === 0;
  });
}
