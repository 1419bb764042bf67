// The folders in which backups keep hard links to files that may be deleted during the backup. Backups and restores are
// tested in tests/acceptance/backup.test.ts.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { backup } from './backup.ts';
import { lockDataFolder } from './engines/store/data-folder.ts';

/**
 * Takes a backup of an installation with an external database, and returns the names in its data folder that begin with
 * a dot.
 */
async function namesAfterBackup(t: TestContext, prepare: (dataDir: string) => Promise<void> | void): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-backup-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const dataDir = join(folder, 'data');
  mkdirSync(dataDir);
  await prepare(dataDir);
  const env = { BERTH_DATA_DIR: dataDir, DATABASE_URL: 'postgres://berth:berth@127.0.0.1:1/berth' };
  await backup(env, join(folder, 'backup.zip'));
  return readdirSync(dataDir).filter(name => name.startsWith('.'));
}

const RUNNING_BACKUP_NAME = `.backup-${randomUUID()}`;

test('removes the folder of a backup that was killed, and keeps other folders with a similar name', async t => {
  const names = await namesAfterBackup(t, dataDir => {
    const leftoverFolder = join(dataDir, `.backup-${randomUUID()}`);
    mkdirSync(leftoverFolder);
    writeFileSync(join(leftoverFolder, 'file'), 'linked');
    mkdirSync(join(dataDir, '.backup-notes'));
  });
  assert.deepEqual(names, ['.backup-notes']);
});

test('keeps the folder of a backup that is still running', async t => {
  const names = await namesAfterBackup(t, async dataDir => {
    const lock = await lockDataFolder(join(dataDir, RUNNING_BACKUP_NAME), { waitMs: 0, role: 'command' });
    t.after(() => lock.close());
  });
  assert.deepEqual(names, [RUNNING_BACKUP_NAME]);
});
