import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseCreditPacks } from './credit-packs.ts';

const PACK = { id: 'p50', credits: 50, price: 4500, currency: 'EUR' };
const read = (...packs: object[]) => parseCreditPacks(JSON.stringify(packs));

test('reads packs in order, with a default bonus of 0', () =>
  assert.deepEqual(read(PACK, { ...PACK, id: 'p100', bonus: 5 }), [
    { ...PACK, bonus: 0 },
    { ...PACK, id: 'p100', bonus: 5 },
  ]));

for (const [what, ...packs] of [
  ['an upper-case id', { ...PACK, id: 'P50' }],
  ['a duplicate id', PACK, PACK],
  ['no credits', { ...PACK, credits: 0 }],
  ['a fraction of a credit', { ...PACK, credits: 1.5 }],
  ['credits as a string', { ...PACK, credits: '50' }],
  ['a negative price', { ...PACK, price: -1 }],
  ['a negative bonus', { ...PACK, bonus: -1 }],
  ['a lower-case currency', { ...PACK, currency: 'eur' }],
  ['two currencies', PACK, { ...PACK, id: 'usd', currency: 'USD' }],
  ['an unknown field', { ...PACK, discount: 5 }],
  ['a missing field', { id: 'p50', credits: 50 }],
] as const)
  test(`refuses packs with ${what}`, () => assert.equal(read(...packs), undefined));

for (const text of ['', '{', '{}', 'null', '[null]', '[[]]', '"p50"'])
  test(`refuses ${text || 'an empty text'} as a list of packs`, () => assert.equal(parseCreditPacks(text), undefined));
