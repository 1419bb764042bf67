// The limits of the walk, and hostile content: links, sparse files, names that are not UTF-8.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { measure } from './measure.ts';

const WIDE = { bytes: 1e9, entries: 1000, depth: 10 };
const NOBODY = 65534;
let folder = '';

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-measure-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

test('adds up the disk space of files, including files in subfolders', async () => {
  mkdirSync(join(folder, 'deep/er'), { recursive: true });
  writeFileSync(join(folder, 'deep/er/file'), Buffer.alloc(1_000_000, 1));
  const { bytes, entries, stoppedBy } = await measure(folder, WIDE);
  assert.equal(entries, 3);
  assert.ok(bytes >= 1_000_000 && bytes < 1_100_000, String(bytes));
  assert.equal(stoppedBy, undefined);
});

test('counts no space for a hole in a sparse file', async () => {
  writeFileSync(join(folder, 'sparse'), 'x');
  truncateSync(join(folder, 'sparse'), 10 ** 9);
  assert.ok((await measure(folder, WIDE)).bytes < 100_000);
});

test('does not follow links', async () => {
  symlinkSync('/usr/lib', join(folder, 'elsewhere'));
  symlinkSync('.', join(folder, 'round-and-round'));
  assert.equal((await measure(folder, WIDE)).entries, 2);
});

test('counts files whose names are not UTF-8', async () => {
  writeFileSync(Buffer.concat([Buffer.from(`${folder}/`), Buffer.from([0xff, 0xfe, 0x0a])]), Buffer.alloc(50_000, 1));
  const { bytes, entries } = await measure(folder, WIDE);
  assert.equal(entries, 1);
  assert.ok(bytes >= 50_000);
});

test('stops at each limit and reports which limit was exceeded', async () => {
  for (let n = 0; n < 20; n++) writeFileSync(join(folder, String(n)), Buffer.alloc(10_000, 1));
  mkdirSync(join(folder, 'a/b/c'), { recursive: true });
  assert.equal((await measure(folder, { ...WIDE, bytes: 50_000 })).stoppedBy, 'bytes');
  assert.equal((await measure(folder, { ...WIDE, entries: 10 })).stoppedBy, 'entries');
  assert.equal((await measure(folder, { ...WIDE, depth: 2 })).stoppedBy, 'depth');
});

test('reports folders nested deeper than PATH_MAX as too deep instead of empty', async () => {
  const name = 'd'.repeat(250);
  const nestScript = `cd "$1"; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do mkdir ${name}; cd -P ./${name}; done`;
  execFileSync('sh', ['-c', `${nestScript}; head -c 50000 /dev/zero > hidden`, 'sh', folder]);
  try {
    assert.equal((await measure(folder, { ...WIDE, depth: 100 })).stoppedBy, 'depth');
  } finally {
    execFileSync('rm', ['-r', join(folder, name)]);
  }
});

test('stops at a folder that an ordinary user cannot read or enter, instead of skipping the folder', async () => {
  const lockedFolder = join(folder, 'locked');
  mkdirSync(lockedFolder);
  writeFileSync(join(lockedFolder, 'hidden'), Buffer.alloc(50_000, 1));
  const isRoot = process.geteuid?.() === 0;
  if (isRoot) for (const path of [folder, lockedFolder]) chownSync(path, NOBODY, NOBODY);
  for (const mode of [0o000, 0o600]) {
    chmodSync(lockedFolder, mode);
    if (isRoot) process.seteuid?.(NOBODY);
    try {
      assert.equal((await measure(folder, WIDE)).stoppedBy, 'unreadable', mode.toString(8));
    } finally {
      if (isRoot) process.seteuid?.(0);
      chmodSync(lockedFolder, 0o700);
    }
  }
});

test('returns zero for a folder that does not exist', async () => {
  assert.deepEqual(await measure(join(folder, 'none'), WIDE), { bytes: 0, entries: 0 });
});
