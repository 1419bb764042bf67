// Spreads the folders of sessions over the disk, if its filesystem is ext4.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { statfs } from 'node:fs/promises';
import { within } from '../../kit/wait.ts';
import { TOOL_PATH } from './tools.ts';

/** `statfs` has the same number for ext2, ext3 and ext4. */
const EXT4 = 0xef53;
const SPREAD_WITHIN_MS = 10_000;

/**
 * A new file gets an inode near that of its folder. For some minutes ext4 does not reuse a deleted inode
 * (fs/ext4/ialloc.c), and each new file has to skip all of them. With sessions that follow one another, each with
 * hundreds of files, that took a tenth of the processor time of a browser's start. Folders marked as the "top of a
 * hierarchy" begin in different parts of the disk.
 */
export async function spreadFolders(folder: string): Promise<void> {
  if ((await statfs(folder)).type !== EXT4) return;
  await within(SPREAD_WITHIN_MS, 'chattr of the sessions folder', async signal => {
    const child = spawn('chattr', ['+T', '--', folder], { stdio: 'ignore', env: { PATH: TOOL_PATH }, signal });
    await once(child, 'exit', { signal });
  });
}
