import assert from 'node:assert/strict';
import { test } from 'node:test';
import { plainMembers, prunedJson, textAt } from './values.ts';

test('truncates long text, and replaces lone surrogates in text', () => {
  const said = { long: 'x'.repeat(1_000_000), half: 'a\ud800', object: { toString: 1 } };
  assert.equal(textAt(said, 'long')?.length, 64 * 1024 + 1);
  assert.equal(textAt(said, 'half'), 'a\ufffd');
  assert.equal(textAt(said, 'object'), undefined);
  assert.deepEqual(plainMembers(said, ['half', 'object']), { half: 'a\ufffd' });
});

test('converts a value of any depth and size to a short string', () => {
  const deep: unknown = JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`);
  assert.match(prunedJson(deep), /^\[+"…"\]+$/);
  const wide = prunedJson({ list: Array.from({ length: 100_000 }, (_, at) => at) });
  assert.ok(wide.length < 10_000, wide.slice(0, 100));
  assert.equal(prunedJson({ a: ['x', 1, true, null] }), '{"a":["x",1,true,null]}');
});
