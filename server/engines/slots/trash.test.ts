import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { silentLog } from '../../kit/log.ts';
import { Trash } from './trash.ts';

const dataDir = mkdtempSync(join(tmpdir(), 'berth-trash-'));
after(() => rmSync(dataDir, { recursive: true }));

test('removes a folder that is moved to the trash while the trash is being listed', async () => {
  const [first, second] = [join(dataDir, 'first'), join(dataDir, 'second')];
  for (const folder of [first, second]) mkdirSync(folder);
  const trash: Trash = new Trash(dataDir, silentLog, async path => {
    const names = await readdir(path);
    if (names.length === 0 && existsSync(second)) await trash.take(second);
    return names;
  });
  await trash.take(first);
  await trash.close();
  assert.equal(existsSync(second), false);
  assert.deepEqual(readdirSync(join(dataDir, 'trash')), []);
});
