import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Secret } from '../../kit/secret.ts';
import { isQuoteValid, quoteIdOf } from './packs.ts';

const SECRET = new Secret('x'.repeat(32));
const PACKS = [{ id: 'p50', credits: 50, bonus: 0, price: 4500, currency: 'EUR' }];
const EXPIRES_AT = new Date(60_000);
const QUOTE_ID = quoteIdOf(SECRET, 'app', PACKS, EXPIRES_AT);

test('a quote is valid only for its application and its packs, until it expires', () => {
  assert.equal(isQuoteValid(SECRET, 'app', PACKS, QUOTE_ID, new Date(59_999)), true);
  assert.equal(isQuoteValid(SECRET, 'app', PACKS, QUOTE_ID, EXPIRES_AT), false);
  assert.equal(isQuoteValid(SECRET, 'other', PACKS, QUOTE_ID, new Date(0)), false);
  assert.equal(
    isQuoteValid(
      SECRET,
      'app',
      PACKS.map(pack => ({ ...pack, price: 1 })),
      QUOTE_ID,
      new Date(0),
    ),
    false,
  );
});

for (const [what, quote] of [
  ['a later expiry', `zzzzzzzz.${QUOTE_ID.split('.')[1]}`],
  ['a changed signature', `${QUOTE_ID.slice(0, -1)}${QUOTE_ID.endsWith('A') ? 'B' : 'A'}`],
  ['a missing signature', QUOTE_ID.split('.')[0] ?? ''],
  ['an empty value', ''],
] as const)
  test(`a quote with ${what} is not valid`, () =>
    assert.equal(isQuoteValid(SECRET, 'app', PACKS, quote, new Date(0)), false));
