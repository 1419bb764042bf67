import assert from 'node:assert/strict';
import { test } from 'node:test';
import { changedPathsSince, digestsOf } from './changed-files.ts';

const filesOf = (texts: Readonly<Record<string, string>>) =>
  Object.entries(texts).map(([path, text]) => ({ path, text }));

const TEXTS_BEFORE = {
  'server/a.ts': "import './b.ts';",
  'server/b.ts': "import type { C } from './kit/c.ts';",
  'server/kit/c.ts': 'export type C = 1;',
  'console/site.css': 'a { color: red }',
};
const passedDigests = digestsOf(filesOf(TEXTS_BEFORE));

test('checks no file again if none has changed', () => {
  assert.deepEqual(changedPathsSince(filesOf(TEXTS_BEFORE), passedDigests), []);
});

test('checks a changed file again, and all files that import it', () => {
  const now = filesOf({ ...TEXTS_BEFORE, 'server/kit/c.ts': 'export type C = 2;' });
  assert.deepEqual(changedPathsSince(now, passedDigests), ['server/a.ts', 'server/b.ts', 'server/kit/c.ts']);
  assert.deepEqual(changedPathsSince(filesOf({ ...TEXTS_BEFORE, 'console/site.css': '' }), passedDigests), [
    'console/site.css',
  ]);
});

test('rechecks the files that import a removed file, and checks new files', () => {
  const { 'server/b.ts': _, ...remainingTexts } = TEXTS_BEFORE;
  assert.deepEqual(changedPathsSince(filesOf(remainingTexts), passedDigests), ['server/a.ts']);
  assert.deepEqual(changedPathsSince(filesOf({ ...TEXTS_BEFORE, 'server/d.ts': '' }), passedDigests), ['server/d.ts']);
});
