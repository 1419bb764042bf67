// Table-driven tests for the metadata query and the list of statuses.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isFault } from '../../kit/fault.ts';
import { parseMetadataQuery, parseStatuses } from './query.ts';

const VALID_QUERIES: ReadonlyArray<readonly [string, ReadonlyArray<readonly [readonly string[], string]>]> = [
  ["user_metadata['run']:'r-1842'", [[['run'], 'r-1842']]],
  ["user_metadata['a']['b']['c']:'d e'", [[['a', 'b', 'c'], 'd e']]],
  ["user_metadata['a']:''", [[['a'], '']]],
  ["user_metadata['it\\'s']:'a\\\\b'", [[["it's"], 'a\\b']]],
  ["user_metadata['a']:'\\\\x'", [[['a'], '\\x']]],
  ["user_metadata['a']:'\\\\'", [[['a'], '\\']]],
  ["user_metadata['a']:'x AND y'", [[['a'], 'x AND y']]],
  [
    "user_metadata['a']:'1' AND user_metadata['b']:'2'",
    [
      [['a'], '1'],
      [['b'], '2'],
    ],
  ],
  ["user_metadata['ключ']:'зн😀'", [[['ключ'], 'зн😀']]],
];

for (const [text, terms] of VALID_QUERIES)
  test(`parses ${text}`, () =>
    assert.deepEqual(
      parseMetadataQuery(text),
      terms.map(([path, value]) => ({ path, value })),
    ));

const INVALID_QUERIES: ReadonlyArray<readonly [string, number]> = [
  ['', 0],
  ['nonsense', 0],
  ["metadata['a']:'b'", 0],
  [" user_metadata['a']:'b'", 0],
  ["user_metadata['a']:'b' ", 22],
  ["user_metadata:'b'", 13],
  ["user_metadata['a':'b'", 17],
  ["user_metadata['a']'b'", 18],
  ["user_metadata['a']:b", 19],
  ["user_metadata['a']:'b", 21],
  ["user_metadata['a']:'b' OR user_metadata['c']:'d'", 22],
  ["user_metadata['a']:'b' AND ", 27],
  ["user_metadata['a']:'b'AND user_metadata['c']:'d'", 22],
  ["user_metadata['a']:'\\n'", 21],
  ['user_metadata["a"]:"b"', 14],
];

for (const [text, position] of INVALID_QUERIES)
  test(`refuses ${JSON.stringify(text)} with an error at position ${position}`, () =>
    assert.throws(
      () => parseMetadataQuery(text),
      error => isFault(error, 'invalid_query') && error.details?.position === position,
    ));

test('refuses a query with too many terms', () => {
  const term = "user_metadata['a']:'b'";
  assert.equal(parseMetadataQuery(Array(20).fill(term).join(' AND ')).length, 20);
  assert.throws(
    () => parseMetadataQuery(Array(21).fill(term).join(' AND ')),
    error => isFault(error, 'invalid_query'),
  );
});

test('parses statuses separated by commas, without duplicates', () => {
  assert.deepEqual(parseStatuses('RUNNING'), ['RUNNING']);
  assert.deepEqual(parseStatuses('RUNNING, PENDING,RUNNING'), ['RUNNING', 'PENDING']);
});

for (const text of ['running', 'ENDED', 'RUNNING,', ','])
  test(`refuses the status ${JSON.stringify(text)}`, () =>
    assert.throws(
      () => parseStatuses(text),
      error => isFault(error, 'invalid_request'),
    ));
