import assert from 'node:assert/strict';
import { test } from 'node:test';
import { changedSince, digestsOf } from './changed-files.ts';

const files = (texts: Readonly<Record<string, string>>) =>
  Object.entries(texts).map(([path, text]) => ({ path, text }));

const BEFORE = {
  'server/a.ts': "import './b.ts';",
  'server/b.ts': "import type { C } from './kit/c.ts';",
  'server/kit/c.ts': 'export type C = 1;',
  'console/site.css': 'a { color: red }',
};
const passed = digestsOf(files(BEFORE));

test('checks no file again if none has changed', () => {
  assert.deepEqual(changedSince(files(BEFORE), passed), []);
});

test('checks a changed file again, and all files that import it', () => {
  const now = files({ ...BEFORE, 'server/kit/c.ts': 'export type C = 2;' });
  assert.deepEqual(changedSince(now, passed), ['server/a.ts', 'server/b.ts', 'server/kit/c.ts']);
  assert.deepEqual(changedSince(files({ ...BEFORE, 'console/site.css': '' }), passed), ['console/site.css']);
});

test('rechecks the files that import a removed file, and checks new files', () => {
  const { 'server/b.ts': _, ...without } = BEFORE;
  assert.deepEqual(changedSince(files(without), passed), ['server/a.ts']);
  assert.deepEqual(changedSince(files({ ...BEFORE, 'server/d.ts': '' }), passed), ['server/d.ts']);
});
