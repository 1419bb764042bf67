import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isFault } from '../../kit/fault.ts';
import { normalizeHostName, normalizeHostNames } from './host-names.ts';

test('normalizes different spellings of a host name to one form', () => {
  const nameBySpelling = {
    'Example.COM': 'example.com',
    'example.com.': 'example.com',
    '*.example.com': 'example.com',
    'bücher.example': 'xn--bcher-kva.example',
    'BÜCHER.example': 'xn--bcher-kva.example',
    'xn--bcher-kva.example': 'xn--bcher-kva.example',
    '例え.テスト': 'xn--r8jz45g.xn--zckzah',
    a_b: 'a_b',
    '93.184.216.34': '93.184.216.34',
    '0x7f.1': '127.0.0.1',
  };
  for (const [written, name] of Object.entries(nameBySpelling)) assert.equal(normalizeHostName(written), name, written);
});

test('returns undefined for anything that is not a host name', () => {
  const texts = ['', '.', '*', '*.', '*.*.a.test', 'a*.test', 'https://a.test', 'a.test/path', 'a.test:443', 'a..test'];
  for (const text of [...texts, 'u@a.test', 'a test', 'a%2etest', '[::1]', `${'a'.repeat(300)}.test`, '1.2.3.999'])
    assert.equal(normalizeHostName(text), undefined, text);
});

test('normalizeHostNames removes duplicates from a list of host names, and reports each invalid entry', () => {
  assert.deepEqual(normalizeHostNames(['a.test', 'A.test.', '*.a.test'], 'allow'), ['a.test']);
  assert.throws(
    () => normalizeHostNames(['a.test', 'a/b', 'https://c'], 'allow'),
    error =>
      isFault(error, 'invalid_request') &&
      JSON.stringify(error.details?.issues).includes('allow.1') &&
      JSON.stringify(error.details?.issues).includes('allow.2'),
  );
});
