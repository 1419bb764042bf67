import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chownSync, linkSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { NotAPlainFile, openHostileFile } from './hostile-file.ts';

const folder = mkdtempSync(join(tmpdir(), 'berth-hostile-'));
after(() => rmSync(folder, { recursive: true }));
const OURS = { uid: undefined };

describe('openHostileFile', () => {
  mkdirSync(join(folder, 'box/downloads'), { recursive: true });
  const at = (name: string): string => join(folder, 'box/downloads', name);
  const open = (name: string, options: { uid: number | undefined } = OURS) =>
    openHostileFile(join(folder, 'box'), ['downloads', name], options);

  it('returns a regular file', async () => {
    writeFileSync(at('plain'), 'hello');
    const file = await open('plain');
    assert.equal(await file?.readFile('utf8'), 'hello');
    await file?.close();
  });

  it('returns undefined for a name that does not exist', async () => {
    assert.equal(await open('missing'), undefined);
    assert.equal(await openHostileFile(join(folder, 'box'), ['nowhere', 'x'], OURS), undefined);
  });

  it('refuses a symbolic link or a hard link', async () => {
    writeFileSync(join(folder, 'secret'), 'secret');
    symlinkSync(join(folder, 'secret'), at('symlink'));
    symlinkSync('plain', at('inner'));
    linkSync(join(folder, 'secret'), at('hardlink'));
    symlinkSync('/proc/self/environ', at('proc'));
    for (const name of ['symlink', 'inner', 'hardlink', 'proc']) await assert.rejects(open(name), NotAPlainFile, name);
  });

  it('refuses a path that contains a symbolic link', async () => {
    mkdirSync(join(folder, 'elsewhere'));
    writeFileSync(join(folder, 'elsewhere/plain'), 'secret');
    symlinkSync(join(folder, 'elsewhere'), join(folder, 'box/linked'));
    await assert.rejects(openHostileFile(join(folder, 'box'), ['linked', 'plain'], OURS), NotAPlainFile);
  });

  it('refuses named pipes and folders, and does not block on a named pipe', async () => {
    execFileSync('mkfifo', [at('pipe')]);
    mkdirSync(at('folder'));
    for (const name of ['pipe', 'folder']) await assert.rejects(open(name), NotAPlainFile, name);
  });

  it('refuses a file of another user', async () => {
    writeFileSync(at('foreign'), 'x');
    if (process.getuid?.() === 0) chownSync(at('foreign'), 4711, 4711);
    const uid = process.getuid?.() === 0 ? undefined : 4711;
    await assert.rejects(open('foreign', { uid }), NotAPlainFile);
  });

  for (const name of ['', '.', '..', '../secret', 'a/b', 'a\0b'])
    it(`refuses the name ${JSON.stringify(name)}`, () => assert.rejects(open(name), NotAPlainFile));
});
