import assert from 'node:assert/strict';
import { test } from 'node:test';
import { REDACTED } from './redact.ts';
import { TypedText } from './typed-text.ts';

const SECRET = 'Pässwört "1"&ü';

test('redacts typed text that is plain or encoded for a URL, a form or JSON', () => {
  const typed = new TypedText();
  typed.rememberText(SECRET);
  const form = new URLSearchParams({ pw: SECRET }).toString();
  const said = { a: `x${SECRET}y`, b: [encodeURIComponent(SECRET), form], c: { d: JSON.stringify({ SECRET }) }, e: 1 };
  assert.ok(typed.occursIn(JSON.stringify(said)));
  const clean = JSON.stringify(typed.redact(said));
  assert.doesNotMatch(clean, /wört|w%C3%B6rt/);
  assert.equal(clean.split(REDACTED).length, 5);
});

test('joins typed characters into words, and applies corrections with backspace', () => {
  const typed = new TypedText();
  for (const character of 'hunter3') typed.addCharacter('page', character);
  typed.removeCharacter('page');
  typed.addCharacter('page', '2');
  assert.ok(typed.occursIn('so hunter2 it is'));
  typed.endField('page');
  for (const character of 'abc') typed.addCharacter('page', character);
  assert.ok(!typed.occursIn('abc') && !typed.occursIn('hunter2abc'.slice(1, 7)));
});

test('remembers a long text only once, and forgets the oldest text first', () => {
  const typed = new TypedText();
  typed.rememberText('first-of-all-1');
  for (const character of 'x'.repeat(200).concat('-1')) typed.addCharacter('page', character);
  assert.ok(typed.occursIn('first-of-all-1'));
  for (let index = 0; index < 100; index++) typed.rememberText(`another-${index}`);
  assert.ok(!typed.occursIn('first-of-all-1') && typed.occursIn('another-99'));
});

test('does not remember ordinary words and URLs', () => {
  const typed = new TypedText();
  for (const text of ['shoes', 'red running shoes', 'https://shop.test/', 'shop.test', '', '12'])
    typed.rememberText(text);
  assert.ok(!typed.occursIn('red running shoes at https://shop.test/ 12'));
});

test('remembers texts in nested arguments', () => {
  const typed = new TypedText();
  typed.rememberPassed([{ value: { o: [{ k: 'value', v: 'deep-S3cret' }] } }]);
  assert.ok(typed.occursIn('deep-S3cret'));
});

test('does not remember arguments that are selectors, paths or code', () => {
  const typed = new TypedText();
  const given = [
    '/popup',
    '#login-form',
    '.cart-2',
    '[data-id="7"]',
    'input#password',
    'a > b:nth-child(2)',
    '() => 1 + 1',
  ];
  typed.rememberPassed(given);
  for (const text of given) assert.ok(!typed.occursIn(text), text);
});

test('separates texts typed into two fields, and joins characters even if other commands were sent between them', () => {
  const typed = new TypedText();
  for (const character of 'name-42') typed.addCharacter('page', character);
  typed.endWord('page');
  for (const character of 'secret-43') typed.addCharacter('page', character);
  assert.ok(typed.occursIn('it is name-42.') && typed.occursIn('it is secret-43.'));
  for (const character of 'slow-7') {
    typed.endWord('other');
    typed.addCharacter('other', character);
  }
  assert.ok(typed.occursIn('it is slow-7.'));
});
