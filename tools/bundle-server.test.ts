import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { buildProgram } from './bundle-server.ts';

const ROOT = dirname(import.meta.dirname);

test('builds a program that runs the commands of the checkout from a bundle without other than ASCII characters', async () => {
  const program = await buildProgram();
  assert.equal(program, join(ROOT, '.berth/program.mjs'));
  const run = (file: string): string =>
    execFileSync(process.execPath, [file, '--version'], { cwd: '/', encoding: 'utf8' });
  assert.equal(run(program), run(join(ROOT, 'cli/berth.ts')));
  const [, bundle = ''] = /'\.\/(bundles\/[0-9a-f]{16})\/berth\.mjs'/.exec(readFileSync(program, 'utf8')) ?? [];
  assert.ok(existsSync(join(ROOT, '.berth', bundle, 'berth.mjs')), program);
  const files = globSync(`.berth/${bundle}/*.mjs`, { cwd: ROOT });
  assert.ok(files.length > 1);
  for (const file of files) assert.doesNotMatch(readFileSync(join(ROOT, file), 'utf8'), /[^\0-\x7f]/, file);
});
