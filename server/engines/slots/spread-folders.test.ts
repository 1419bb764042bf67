import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { mkdirSync, mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { spreadFolders } from './spread-folders.ts';

/** A folder on disk, because the folder for temporary files may be in memory. */
const DISK_FOLDER = join(import.meta.dirname, '../../../.berth');
const EXT4 = 0xef53;
mkdirSync(DISK_FOLDER, { recursive: true });
const folder = mkdtempSync(join(DISK_FOLDER, 'spread-'));
after(() => rmSync(folder, { recursive: true }));

/** Calls `spreadFolders`, and returns the number of programs that it started. */
async function programsFor(folder: string): Promise<number> {
  let programCount = 0;
  const onStart = (): void => {
    programCount += 1;
  };
  subscribe('child_process', onStart);
  await spreadFolders(folder).finally(() => unsubscribe('child_process', onStart));
  return programCount;
}

test('sets the top-of-hierarchy flag of a folder only if the folder is on ext4', async () => {
  const isExt4 = statfsSync(folder).type === EXT4;
  assert.equal(await programsFor(folder), isExt4 ? 1 : 0);
  const flags = isExt4 ? execFileSync('lsattr', ['-d', folder], { encoding: 'utf8' }).split(' ')[0] : '';
  assert.equal(flags?.includes('T'), isExt4);
});

test('starts no program for a folder that is not on ext4', async () => {
  assert.notEqual(statfsSync('/proc').type, EXT4);
  assert.equal(await programsFor('/proc'), 0);
});
