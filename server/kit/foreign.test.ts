import assert from 'node:assert/strict';
import { test } from 'node:test';
import { boundedText, parseJson, requestUrl } from './foreign.ts';

test('truncates text to the maximum length, and replaces unpaired surrogates, even if the truncation split the pair', () => {
  assert.equal(boundedText('abc', 3), 'abc');
  assert.equal(boundedText('abcd', 3), 'abc');
  assert.equal(boundedText('a\ud800b', 9), 'a\ufffdb');
  assert.equal(boundedText('ab\u{1f600}', 3), 'ab\ufffd');
});

test('returns undefined for text that is not JSON', () => {
  assert.deepEqual(parseJson('{"a":[1]}'), { a: [1] });
  assert.deepEqual(parseJson(Buffer.from('"é"')), 'é');
  for (const text of ['', '{', '{"a":1}x', '\0', Buffer.from([0xff])]) assert.equal(parseJson(text), undefined);
});

test('parses every request target as a URL', () => {
  assert.equal(requestUrl('/a/b?c=d').pathname, '/a/b');
  assert.equal(requestUrl('/a?c=d').searchParams.get('c'), 'd');
  assert.equal(requestUrl('http://host:1/a').pathname, '/a');
  assert.equal(requestUrl('//v1').pathname, '//v1');
  for (const target of ['//', '//[', '/\\', '*', 'http://[', undefined]) assert.ok(requestUrl(target).pathname);
});
