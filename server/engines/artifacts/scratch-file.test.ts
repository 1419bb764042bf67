import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { ScratchFile } from './scratch-file.ts';

const folder = await mkdtemp(join(tmpdir(), 'berth-scratch-'));
after(() => rm(folder, { recursive: true }));

test('the parts of a scratch file can be read in any order, and the folder does not list the file', async () => {
  const file = await ScratchFile.create(folder);
  const appendedTexts = ['first', '', 'a third, longer part'];
  const extents = [];
  for (const text of appendedTexts) extents.push(await file.append(Buffer.from(text)));
  const read = await Promise.all(extents.reverse().map(extent => file.read(extent)));
  assert.deepEqual(read.reverse().map(String), appendedTexts);
  assert.deepEqual(await readdir(folder), []);
  await assert.rejects(file.read({ at: 20, length: 100 }), /ends before byte 120/);
  await file.close();
});
