import assert from 'node:assert/strict';
import { test } from 'node:test';
import { knownLocale } from './locales.ts';

for (const [wanted, known] of [
  ['de-DE', 'de-DE'],
  ['EN-us', 'en-US'],
  ['zh-Hant-TW', 'zh-Hant-TW'],
  ['sr-Latn-RS', 'sr-Latn-RS'],
  ['en-u-ca-buddhist', 'en-u-ca-buddhist'],
  ['en-x-aaaaaaa1', 'en'],
  ['de-AA', 'de'],
  ['de-CH-1996', 'de-CH'],
  ['en-u-zz-anything', 'en'],
  ['xx-YY', 'en-US'],
  ['abcdefgh', 'en-US'],
] as const)
  test(`knownLocale converts the locale ${wanted} to ${known}`, () => assert.equal(knownLocale(wanted), known));
