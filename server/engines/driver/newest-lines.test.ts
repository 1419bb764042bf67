import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newestLines } from './newest-lines.ts';

test('returns all lines if they fit', () => {
  assert.equal(newestLines(['one', 'two']), 'one\ntwo');
  assert.equal(newestLines([]), '');
});

test('omits the oldest lines if there are more than 200', () => {
  const [note, ...lines] = newestLines(Array.from({ length: 203 }, (_, n) => `line ${n}`)).split('\n');
  assert.equal(note, '(3 earlier entries are not shown)');
  assert.deepEqual([lines.length, lines[0], lines.at(-1)], [200, 'line 3', 'line 202']);
});

test('omits the oldest lines if the text would be too long, and truncates each line to 1,000 characters', () => {
  const text = newestLines(Array.from({ length: 150 }, (_, n) => `${n} `.padEnd(1_500, 'x')));
  const [note, ...lines] = text.split('\n');
  assert.equal(note, '(51 earlier entries are not shown)');
  assert.deepEqual([lines.length, lines[0]?.slice(0, 3), lines.at(-1)?.slice(0, 4)], [99, '51 ', '149 ']);
  assert.ok(lines.every(line => line.length === 1_000));
});
