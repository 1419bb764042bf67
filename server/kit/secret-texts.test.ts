import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { SecretTexts } from './secret-texts.ts';

const SECRET = 'p4ss wörd&"x"';

test('returns values unchanged if there are no secrets', () => {
  const value = { a: ['x'.repeat(200_000)] };
  assert.equal(new SecretTexts().cleanAll(value), value);
});

test('replaces secrets in strings and property names at every depth, including secrets encoded for URLs, JSON or base64', () => {
  const secrets = new SecretTexts();
  secrets.add(SECRET);
  const echoes = [
    SECRET,
    encodeURIComponent(SECRET),
    JSON.stringify(SECRET),
    btoa(`user:${Buffer.from(SECRET).toString('latin1')}`),
  ];
  for (const echo of echoes) {
    const cleaned = JSON.stringify(secrets.cleanAll({ [`n ${echo}`]: [{ deep: `a ${echo} z` }], n: 1, none: null }));
    assert.match(cleaned, /\*\*\*/, echo);
    assert.ok(!cleaned.includes('p4ss') && !cleaned.includes('cDRzcyB3'), cleaned);
  }
});

test('removes the beginning of a secret from the end of a truncated text', () => {
  const secrets = new SecretTexts();
  secrets.add('correct horse battery');
  const cleaned = secrets.clean(`${'x'.repeat(128 * 1024 - 7)}correct horse battery`);
  assert.equal(cleaned.length, 128 * 1024 - 7);
});

test('printing or serializing the collection of secrets does not reveal them', () => {
  const secrets = new SecretTexts();
  secrets.add(SECRET);
  for (const printed of [inspect({ secrets }), JSON.stringify({ secrets })])
    assert.ok(!printed.includes('p4ss'), printed);
});
