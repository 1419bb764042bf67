import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { ManualClock } from '../../../tests/harness/hand-clock.ts';
import { SharedFolders } from './shared-folders.ts';

const HOUR_MS = 3_600_000;

describe('SharedFolders', () => {
  const parent = mkdtempSync(join(tmpdir(), 'berth-shared-'));
  after(() => rmSync(parent, { recursive: true }));
  const clock = new ManualClock();
  const open = (): SharedFolders =>
    new SharedFolders({
      ...{ parent, clock, unusedMax: 2, unusedBytesMax: 10, lifetimeMs: HOUR_MS },
      bytesOf: async folder => (folder.endsWith('large') ? 11 : 1),
    });
  const use = async (folders: SharedFolders, name: string) => {
    await clock.advance(1000);
    return folders.use(name, async folder => writeFileSync(join(folder, 'file'), name));
  };
  const names = (): string[] => readdirSync(parent).sort();

  it('removes unused folders beyond the limit, least recently used first', async () => {
    const folders = open();
    const first = await use(folders, 'first');
    for (const name of ['a', 'b', 'c']) (await use(folders, name)).release();
    assert.deepEqual(names(), ['a', 'b', 'c', 'first'], 'the newest was in use when folders were last removed');
    (await use(folders, 'a')).release();
    (await use(folders, 'd')).release();
    assert.deepEqual(names(), ['a', 'c', 'd', 'first']);
    first.release();
    first.release();
    (await use(folders, 'a')).release();
    assert.deepEqual(names(), ['a', 'c', 'd'], 'the first was used least recently');
  });

  it('removes unused folders beyond the byte limit', async () => {
    const folders = open();
    (await use(folders, 'large')).release();
    (await use(folders, 'a')).release();
    assert.ok(!names().includes('large'));
  });

  it('keeps the folders of a previous process as long as the browsers of that process may be running', async () => {
    const namesBefore = names();
    await clock.advance(1000);
    const folders = open();
    for (const name of ['e', 'f', 'g', 'h']) (await use(folders, name)).release();
    assert.ok(namesBefore.every(name => names().includes(name)));
    await clock.advance(2 * HOUR_MS);
    (await use(folders, 'h')).release();
    assert.ok(namesBefore.every(name => !names().includes(name)));
  });

  it('creates a folder again if it is requested during its removal', async () => {
    const folders = open();
    const all = Array.from({ length: 20 }, (_, number) => `n${number % 5}`);
    const held = await Promise.all(
      all.map(name => folders.use(name, async folder => writeFileSync(join(folder, 'file'), name))),
    );
    for (const { path, release } of held) {
      assert.ok(readdirSync(path).includes('file'));
      release();
    }
  });
});
