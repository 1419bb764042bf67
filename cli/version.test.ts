import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { versionText } from './version.ts';

for (const kind of ['relative', 'absolute'] as const)
  test(`versionText returns the commit of a linked Git worktree if the paths in its .git and commondir files are ${kind}`, t => {
    const folder = mkdtempSync(join(tmpdir(), 'berth-version-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const git = join(folder, 'git');
    const worktreeGit = join(git, 'worktrees', 'extra');
    mkdirSync(worktreeGit, { recursive: true });
    mkdirSync(join(git, 'refs', 'heads'), { recursive: true });
    writeFileSync(join(folder, '.git'), `gitdir: ${kind === 'absolute' ? worktreeGit : 'git/worktrees/extra'}\n`);
    writeFileSync(join(worktreeGit, 'HEAD'), 'ref: refs/heads/main\n');
    writeFileSync(join(worktreeGit, 'commondir'), `${kind === 'absolute' ? git : '../..'}\n`);
    writeFileSync(join(git, 'refs', 'heads', 'main'), '0123456789abcdef0123456789abcdef01234567\n');
    assert.match(versionText(folder), / \(0123456789ab\)$/);
  });
