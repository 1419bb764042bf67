// Makes ext4 place the folders of sessions in different parts of the disk. Does nothing on other file systems.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { statfs } from 'node:fs/promises';
import { withTimeout } from '../../kit/wait.ts';
import { TOOL_PATH } from './tools.ts';

/** The file system type that `statfs` returns for ext2, ext3 and ext4. */
const EXT4 = 0xef53;
const SPREAD_TIMEOUT_MS = 10_000;

/**
 * ext4 gives a new file an inode near that of its folder. For a few minutes it does not reuse the inode of a deleted
 * file (fs/ext4/ialloc.c), and it skips all such inodes for each new file. When sessions followed one another, each
 * with hundreds of files, this took a tenth of the processor time of a browser's start. The attribute T ("top of a
 * hierarchy") makes ext4 place the folders inside `folder` in different parts of the disk.
 */
export async function spreadFolders(folder: string): Promise<void> {
  if ((await statfs(folder)).type !== EXT4) return;
  await withTimeout(SPREAD_TIMEOUT_MS, 'chattr of the sessions folder', async signal => {
    const child = spawn('chattr', ['+T', '--', folder], { stdio: 'ignore', env: { PATH: TOOL_PATH }, signal });
    await once(child, 'exit', { signal });
  });
}
