// Tests the format of credentials, and the rules for names, slugs, ranges and revisions.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { isFault } from '../../kit/fault.ts';
import { parseRange, rangesAllow } from './cidr.ts';
import { mint, recognize } from './credentials.ts';
import { cleanName, slugOf, withSuffix } from './names.ts';
import { revisionFrom } from './revisions.ts';

for (const [kind, prefix] of [
  ['agent_key', 'bak'],
  ['personal_token', 'bpt'],
  ['developer_token', 'bdt'],
  ['human_session', 'bhs'],
] as const)
  test(`a new ${kind} has the documented format, is recognized, and is masked when printed`, () => {
    const credential = mint(kind);
    const text = credential.text.reveal();
    assert.match(text, new RegExp(`^${prefix}_[A-Za-z0-9_-]{43}[0-9A-Za-z]{6}$`));
    assert.deepEqual(recognize(text), { kind, hash: createHash('sha256').update(text).digest() });
    assert.equal(credential.prefix, text.slice(0, 8));
    assert.ok(!`${inspect(credential)}${JSON.stringify(credential)}`.includes(text.slice(8)));
  });

test('new credentials are unique', () => {
  const texts = Array.from({ length: 200 }, () => mint('agent_key').text.reveal());
  assert.equal(new Set(texts).size, texts.length);
});

test('does not recognize a credential with one mistyped character', () => {
  const text = mint('agent_key').text.reveal();
  for (let at = 0; at < text.length; at += 1) {
    const otherCharacter = text[at] === 'x' ? 'y' : 'x';
    assert.equal(recognize(text.slice(0, at) + otherCharacter + text.slice(at + 1)), undefined, `at ${at}`);
  }
});

const UNRECOGNIZED_TEXTS: Readonly<Record<string, string>> = {
  'an empty string': '',
  'a prefix alone': 'bak_',
  'a string that is too short': 'bak_short',
  'a string with an unknown prefix': `bxx_${'a'.repeat(49)}`,
  'a credential that is followed by a space': `${mint('personal_token').text.reveal()} `,
};
for (const [what, text] of Object.entries(UNRECOGNIZED_TEXTS))
  test(`does not recognize ${what}`, () => assert.equal(recognize(text), undefined));

const RANGE_CASES: ReadonlyArray<readonly [string, string, boolean]> = [
  ['203.0.113.0/24', '203.0.113.9', true],
  ['203.0.113.0/24', '203.0.114.9', false],
  ['203.0.113.9', '203.0.113.9', true],
  ['203.0.113.9', '::ffff:203.0.113.9', true],
  ['2001:db8::/32', '2001:db8:1::1', true],
  ['2001:db8::/32', '2001:db9::1', false],
  ['0.0.0.0/0', '2001:db8::1', false],
  ['203.0.113.0/24', 'nonsense', false],
];
for (const [range, ip, inside] of RANGE_CASES)
  test(`${ip} is ${inside ? '' : 'not '}in ${range}`, () => assert.equal(rangesAllow([range], ip), inside));

test('an empty list of ranges allows every address', () => assert.ok(rangesAllow([], '198.51.100.1')));

for (const text of [
  '',
  'a.test',
  '203.0.113.0/33',
  '2001:db8::/129',
  '203.0.113.0/-1',
  '203.0.113/24',
  '203.0.113.0/24 ',
])
  test(`${JSON.stringify(text)} is not a range`, () => assert.equal(parseRange(text), undefined));

test('trims names and normalizes them to NFC', () => {
  assert.equal(cleanName('  Shop agent '), 'Shop agent');
  assert.equal(cleanName('e\u0301'), '\u00e9');
  assert.equal(cleanName('😀'.repeat(64)).length, 128);
});

for (const text of ['', '   ', 'x'.repeat(65), 'a\u0000b', 'a\nb', '\u009bx'])
  test(`refuses the name ${JSON.stringify(text).slice(0, 20)}`, () =>
    assert.throws(
      () => cleanName(text),
      error => isFault(error, 'invalid_request'),
    ));

test('derives slugs of at most 40 characters, and a random slug if a name has too few usable characters', () => {
  assert.equal(slugOf('Über Shop! 2'), 'uber-shop-2');
  assert.equal(slugOf('x'.repeat(60)).length, 40);
  for (const name of ['日本', '!', 'ab']) assert.match(slugOf(name), /^app-[a-z0-9]{5}$/);
  assert.match(withSuffix('x'.repeat(40)), /^x{34}-[a-z0-9]{5}$/);
});

test('reads a revision from If-Match, and refuses a missing or malformed header', () => {
  assert.equal(revisionFrom('"3"', 4), 3);
  assert.equal(revisionFrom('*', 4), 4, 'the current revision');
  for (const text of [undefined, '', ' '])
    assert.throws(
      () => revisionFrom(text, 3),
      error => isFault(error, 'precondition_required'),
    );
  for (const text of ['3', 'W/"3"', '"x"'])
    assert.throws(
      () => revisionFrom(text, 3),
      error => isFault(error, 'precondition_failed'),
    );
});
