import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BadEnvelope, readEnvelope } from './envelope.ts';

const read = (text: string) => readEnvelope(Buffer.from(text));

const GOOD: Array<[string, { id: number; method: string; sessionId?: string; start?: number }]> = [
  ['{"id":1,"method":"A.b"}', { id: 1, method: 'A.b' }],
  [' \n{ "id" : 7 , "method" : "A.b" , "params" : { } } ', { id: 7, method: 'A.b', start: 2 }],
  [
    '{"method":"A.b","params":{"x":"}\\"{","y":[1,[2,{"z":null}]]},"id":2,"sessionId":"S"}',
    { id: 2, method: 'A.b', sessionId: 'S' },
  ],
  ['{"id":3,"method":"\\u0042rowser.close"}', { id: 3, method: 'Browser.close' }],
  ['{"id":3,"\\u006dethod":"Browser.close"}', { id: 3, method: 'Browser.close' }],
  ['{"id":3,"method":"A.b","params":{"s":"\\\\"}}', { id: 3, method: 'A.b' }],
  ['{"id":3,"method":"A.b","params":{"s":"/* \\" */"}}', { id: 3, method: 'A.b' }],
  ['{"id":-4,"method":"Ä.b"}', { id: -4, method: 'Ä.b' }],
  ['{"id":5,"method":"A.b","params":[ ],"x":null}', { id: 5, method: 'A.b' }],
  [
    '{"id":5,"method":"A.b","params":{"a":[-0.5e+3, true ,[],{}, "\\u00e4\t"],"b":{"c":false}}}',
    { id: 5, method: 'A.b' },
  ],
];

for (const [text, expected] of GOOD)
  test(`reads ${text}`, () => {
    assert.deepEqual(read(text), { sessionId: undefined, start: 0, ...expected });
  });

const BAD = [
  '',
  '[]',
  '{',
  '{}',
  '{"id":1}',
  '{"method":"A.b"}',
  '{"id":"1","method":"A.b"}',
  '{"id":1.5,"method":"A.b"}',
  '{"id":1,"method":2}',
  '{"id":1,"method":"A.b","method":"Browser.close"}',
  '{"id":1,"method":"A.b","m\\u0065thod":"Browser.close"}',
  '{"id":1,"method":"A.b"}{"id":2,"method":"Browser.close"}',
  '{"id":1,"method":"A.b"}\0{"id":2,"method":"Browser.close"}',
  '{"id":1,"method":"A.b","params":{"x":"\0"}}',
  '{"id":1,/* " */"method":"A.b"}',
  '{"id":1,"method":"A.b","params":{/*"*/}}',
  '{"id":1,"method":"A.b","params":{"x":1]}',
  '{"id":1,"method":"A.b","params":{"x":1}',
  '{"id":1,"method":"A.b",}',
  '{"id":1 "method":"A.b"}',
  "{'id':1,'method':'A.b'}",
  '{"id":1,"method":"A.b","sessionId":5}',
  '{"id":1,"method":"A.b","sessionId":""}',
  `{"id":1,"method":"A.b","params":${'['.repeat(300)}${']'.repeat(300)}}`,
  '{"id":3000000000,"method":"A.b"}',
];
/** Invalid JSON values, each used as the parameter of a command. */
const BAD_VALUES = [
  ...['tru', 'true false', '01', '1.', '-', '.5', '+1', '1e', '1e999', 'nan', '', '{"b":}', '{b:1}', '{"b":1,}', '{,}'],
  ...['[1,]', '[1 2]', '[,1]', '[1}', '{"b" 1}', '{"b":1:2}', '"\\q"', '"\\x41"', '"\\u12"', '"a', '1,,"c":2'],
];

for (const text of [...BAD, ...BAD_VALUES.map(value => `{"id":1,"method":"A.b","params":{"a":${value}}}`)])
  test(`refuses ${JSON.stringify(text).slice(0, 80)}`, () => {
    assert.throws(() => read(text), BadEnvelope);
  });

test('reads the envelope of a 25 MB message', () => {
  const big = JSON.stringify({ id: 9, method: 'Runtime.evaluate', params: { expression: 'x"\\'.repeat(5_000_000) } });
  assert.equal(read(big).id, 9);
});

test('reports errors with the codes of Chromium, and with the id if it could be read', () => {
  const errorOf = (text: string): unknown[] => {
    try {
      return [read(text)];
    } catch (error) {
      return error instanceof BadEnvelope ? [error.code, error.id] : [error];
    }
  };
  assert.deepEqual(errorOf('hello'), [-32700, undefined]);
  assert.deepEqual(errorOf('[1]'), [-32600, undefined]);
  assert.deepEqual(errorOf('{"method":"A.b"}'), [-32600, undefined]);
  assert.deepEqual(errorOf('{"id":7}'), [-32600, 7]);
});
