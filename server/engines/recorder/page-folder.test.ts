import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { PageFolder } from './page-folder.ts';

const root = await mkdtemp(join(tmpdir(), 'berth-page-'));
after(() => rm(root, { recursive: true }));

test('a folder that does not exist has no description and no segments', async () => {
  const folder = new PageFolder(join(root, 'absent'));
  assert.equal(await folder.readDescription(), undefined);
  assert.deepEqual(await folder.segments(), []);
});

test('throws if a folder or a description exists but cannot be read', async () => {
  await writeFile(join(root, 'file'), '');
  await assert.rejects(new PageFolder(join(root, 'file')).segments(), { code: 'ENOTDIR' });
  const folder = new PageFolder(join(root, 'page'));
  await mkdir(join(folder.path, 'page.json'), { recursive: true });
  await assert.rejects(folder.readDescription(), { code: 'EISDIR' });
  await assert.rejects(folder.removeIfUndescribed(), { code: 'EISDIR' });
});
