import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ResponseInput, work } from './response-job.ts';

const read = (text: string | Uint8Array, more: Partial<ResponseInput> = {}) =>
  work({
    ...{ body: typeof text === 'string' ? Buffer.from(text) : text, contentType: 'application/json', secrets: [] },
    ...more,
  });
const outputOf = (text: string, more: Partial<ResponseInput> = {}): unknown => Object(read(text, more)).output;

test('a response with JSON, text or an empty body is converted to an output object', () => {
  assert.deepEqual(outputOf('{"a":[1,true,null,"x"]}'), { a: [1, true, null, 'x'] });
  assert.deepEqual(outputOf('[1]'), { value: [1] });
  assert.deepEqual(outputOf('7', { contentType: 'application/vnd.shop+json; charset=utf-8' }), { value: 7 });
  assert.deepEqual(outputOf('hello', { contentType: 'text/plain' }), { text: 'hello' });
  assert.deepEqual(outputOf('', { contentType: 'image/png' }), {});
});

test('reports why a body cannot be read: damaged, too deeply nested, too large, or of an unsupported type', () => {
  const why = (text: string | Uint8Array, more: Partial<ResponseInput> = {}): unknown => Object(read(text, more)).why;
  assert.match(String(why('{')), /not valid JSON/);
  assert.match(String(why(Buffer.from([0xff, 0xfe]))), /not UTF-8/);
  assert.match(String(why('[1e999]')), /too large/);
  assert.match(String(why(`${'['.repeat(100)}${']'.repeat(100)}`)), /nested/);
  assert.match(String(why(`[${'0,'.repeat(100_001)}0]`)), /values/);
  assert.match(String(why('x', { contentType: 'image/png' })), /neither JSON nor text/);
});

test('removes secrets from strings and property names, and replaces characters that the database cannot store', () => {
  const secrets = ['s3cret-value'];
  const body = JSON.stringify({ 's3cret-value': 'Bearer s3cret-value', list: [`a\0b\ud800`] });
  assert.deepEqual(outputOf(body, { secrets }), { '***': 'Bearer ***', list: ['a\uFFFDb\uFFFD'] });
  assert.deepEqual(outputOf('{"a":"s3cret\\u002dvalue"}', { secrets }), { a: '***' });
});

test('reports whether the output matches the schema', () => {
  const schema = { type: 'object', properties: { state: { type: 'string' } } };
  assert.equal(Object(read('{"state":"x"}', { schema })).isValid, true);
  assert.equal(Object(read('{"state":1}', { schema })).isValid, false);
});
