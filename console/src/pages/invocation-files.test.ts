import assert from 'node:assert/strict';
import { test } from 'node:test';
import { filesIn } from './invocation-files.ts';

const FILE = { downloadUrl: 'https://berth.example/f', mimeType: 'image/png', size: 3, checksum: 'ff' };
const SHOWN_FILE = { url: 'https://berth.example/f', mimeType: 'image/png', size: 3 };

test('filesIn returns all files of an output and ignores invalid entries', () => {
  assert.deepEqual(filesIn({ artifact: FILE }), [SHOWN_FILE]);
  assert.deepEqual(filesIn({ artifacts: [FILE, FILE, null, 'x'] }), [SHOWN_FILE, SHOWN_FILE]);
  assert.deepEqual(filesIn({ artifacts: [FILE], downloads: [FILE] }), [SHOWN_FILE, SHOWN_FILE]);
  for (const output of [undefined, {}, { artifact: 'x' }, { artifact: { ...FILE, size: '3' } }])
    assert.deepEqual(filesIn(output), []);
});

test('filesIn omits a file whose download URL would run a script', () => {
  assert.deepEqual(filesIn({ artifact: { ...FILE, downloadUrl: 'javascript:alert(1)' } }), []);
});
