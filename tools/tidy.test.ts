import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SourceFile } from './source-files.ts';
import { checkTidy } from './tidy.ts';

/**
 * Checks the file together with another file that imports it, so that it does not also violate the rule against unused
 * files.
 */
function violationsOf(path: string, text: string, otherFiles: readonly SourceFile[] = []): string[] {
  const importingFile = { path: 'tests/harness/user.ts', text: `// Uses it.\nimport '../../${path}';\n` };
  return checkTidy([{ path, text }, importingFile, ...otherFiles]).map(found => `${found.path}: ${found.what}`);
}

const withOpeningComment = (text: string): string => `// Owns it.\n${text}\n`;

const BANNED_TEXTS: ReadonlyArray<readonly [path: string, text: string]> = [
  ['server/domain/a.ts', 'const home = process.env.HOME;'],
  ['server/domain/a.ts', 'const { env } = process;'],
  ['server/domain/a.ts', "const env = process['env'];"],
  ['server/domain/a.ts', 'const { HOME } = process.env;'],
  ['server/domain/a.ts', 'start({ ...process }.env);'],
  ['server/domain/a.ts', "import { env } from 'node:process';"],
  ['server/config.ts', 'const home = process.env.HOME;'],
  ['server/domain/a.ts', 'const a = await import(`./${name}.ts`);'],
  ['cli/a.ts', 'const a = await import(file);'],
  ['server/engines/browser/a.ts', "import { spawn } from 'node:child_process';"],
  ['server/domain/a.ts', 'const now = Date.now();'],
  ['server/domain/a.ts', 'const now = new Date();'],
  ['server/domain/a.ts', 'const now = performance.now();'],
  ['server/domain/a.ts', "import { spawn } from 'node:child_process';"],
  ['server/engines/egress/a.ts', "const { spawn } = await import('child_process');"],
  ['server/domain/a.ts', 'const a: any = 1;'],
  ['server/domain/a.ts', 'const a = b as any;'],
  ['server/domain/a.ts', 'const a = b!.c;'],
  ['server/domain/a.ts', 'const a = list[0]!;'],
  ['server/domain/a.ts', '// @ts-ignore'],
  ['server/domain/a.ts', '// TODO: later'],
  ['server/domain/a.ts', "console.log('a');"],
  ['cli/a.ts', "const folder = '/work/berth/data';"],
  ['tools/a.ts', "const folder = '/root/data';"],
  ['tests/engines/a.test.ts', "test.only('a', () => {});"],
  ['tests/engines/a.test.ts', "test('a', { skip: true }, () => {});"],
  ['tests/engines/a.test.ts', "describe.skip('a', () => {});"],
  ['server/domain/a.ts', '// Looked at in every so manieth tick.'],
  ['contract/a.ts', "const description = 'Answered as a bare array.';"],
  ['server/engines/recorder/a.ts', 'export interface PageWish {}'],
];

for (const [path, text] of BANNED_TEXTS)
  test(`reports this text in ${path}: ${text}`, () => {
    assert.equal(violationsOf(path, withOpeningComment(text)).length, 1);
  });

const ACCEPTED_TEXTS: ReadonlyArray<readonly [path: string, text: string]> = [
  ['cli/berth.ts', 'const home = process.env.HOME;'],
  ['server/domain/a.ts', 'process.exitCode = 1;\nconst { process: one } = row;'],
  ['server/domain/a.ts', "const a = await import(\n  '../b.ts'\n);\nconst here = import.meta.url;"],
  ['server/kit/worker-thread.ts', 'const a = await import(module);'],
  ['server/kit/clock.ts', 'const now = new Date();'],
  ['server/engines/slots/a.ts', "import { spawn } from 'node:child_process';"],
  ['server/domain/a.ts', "const a = 'process.env and new Date()';"],
  ['server/domain/a.ts', '// anything: any reason to say Date.now() here'],
  ['server/domain/a.ts', 'const at = new Date(row.at);'],
  ['server/domain/a.ts', 'if (a !== b && !c.d) e(!f);'],
  ['server/domain/a.ts', 'const skip = filter({ only: 1 });'],
  ['cli/a.ts', "const url = 'https://berth.test/root/work/x';"],
  ['contract/a.ts', "const description = 'Returned as a JSON array.';"],
];

for (const [path, text] of ACCEPTED_TEXTS)
  test(`accepts this text in ${path}: ${text}`, () => {
    assert.deepEqual(violationsOf(path, withOpeningComment(text)), []);
  });

test('requires a comment at the start of a file', () => {
  assert.deepEqual(violationsOf('cli/a.ts', 'export const a = 1;\n'), ['cli/a.ts: no opening comment']);
  assert.deepEqual(violationsOf('cli/a.ts', '#!/usr/bin/env node\n// Owns it.\nexport const a = 1;\n'), []);
});

test('reports a file that only its own test imports', () => {
  const file = { path: 'server/kit/a.ts', text: withOpeningComment('export const a = 1;') };
  const ownTest = { path: 'server/kit/a.test.ts', text: "import './a.ts';\n" };
  const startingFile = {
    path: 'server/engines/slots/b.ts',
    text: withOpeningComment("import './c.ts';\nconst file = '../../kit/a.ts';"),
  };
  assert.match(
    checkTidy([file, ownTest])
      .map(found => found.what)
      .join(),
    /nobody imports/,
  );
  assert.ok(!checkTidy([file, ownTest, startingFile]).some(found => found.path === file.path));
});

test('requires exactly one title outside of code blocks in a document', () => {
  const what = (text: string): string[] => checkTidy([{ path: 'docs/a.md', text }]).map(found => found.what);
  assert.deepEqual(what('# A\n\n```sh\n# a comment\n```\n'), []);
  assert.deepEqual(what('# A\n\n# B\n'), ['a document with two titles']);
  assert.deepEqual(what('text\n'), ['a document without a title']);
});

test('requires that a link in a document leads to an existing file', () => {
  const files = [
    { path: 'docs/a.md', text: '# A\n[b](b.md#part) [c](../c.md) [d](https://d.test/x) [folder](decisions/)\n' },
    { path: 'docs/b.md', text: '# B\n' },
    { path: 'docs/decisions/0001.md', text: '# One\n' },
  ];
  assert.deepEqual(
    checkTidy(files).map(found => found.what),
    ['a link to nothing: ../c.md'],
  );
});
