import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { bundleServer } from './bundle-server.ts';

test('bundles a program that prints the version of the checkout and contains only ASCII characters', async () => {
  const folder = await bundleServer();
  const run = (file: string): string =>
    execFileSync(process.execPath, [file, '--version'], { cwd: '/', encoding: 'utf8' });
  assert.equal(run(join(folder, 'berth.mjs')), run(join(dirname(import.meta.dirname), 'cli/berth.ts')));
  const files = globSync('*.mjs', { cwd: folder });
  assert.ok(files.length > 1);
  for (const file of files) assert.doesNotMatch(readFileSync(join(folder, file), 'utf8'), /[^\0-\x7f]/, file);
});
