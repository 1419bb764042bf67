import assert from 'node:assert/strict';
import { test } from 'node:test';
import { REDACTED } from './redact.ts';
import { TypedText } from './typed-text.ts';

const SECRET = 'Pässwört "1"&ü';

test('redacts typed text that is plain or encoded for a URL, a form or JSON', () => {
  const typedText = new TypedText();
  typedText.rememberText(SECRET);
  const form = new URLSearchParams({ pw: SECRET }).toString();
  const said = { a: `x${SECRET}y`, b: [encodeURIComponent(SECRET), form], c: { d: JSON.stringify({ SECRET }) }, e: 1 };
  assert.ok(typedText.occursIn(JSON.stringify(said)));
  const clean = JSON.stringify(typedText.redact(said));
  assert.doesNotMatch(clean, /wört|w%C3%B6rt/);
  assert.equal(clean.split(REDACTED).length, 5);
});

test('redacts text with spaces around it, and text that a page puts into its address without encoding all of it', () => {
  const typedText = new TypedText();
  typedText.rememberText(' Doe, Jane 4711 ');
  assert.equal(typedText.redactText('name=Doe, Jane 4711;'), `name=${REDACTED};`);
  const url = new URL('http://shop.test/');
  url.search = 'q=Doe, Jane 4711';
  assert.equal(typedText.redactText(url.href), `http://shop.test/?q=${REDACTED}`);
});

test('redacts a typed line as a whole, even if one of its parts was typed separately', () => {
  const typedText = new TypedText();
  for (const character of 'order 4711') typedText.addText('page', character);
  typedText.endWord('page');
  for (const character of ' of Doe') typedText.addText('page', character);
  assert.equal(typedText.redactText('order 4711 of Doe'), REDACTED);
});

test('joins typed characters into words, and applies corrections with backspace', () => {
  const typedText = new TypedText();
  for (const character of 'hunter3') typedText.addText('page', character);
  typedText.removeCharacter('page');
  typedText.addText('page', '2');
  assert.ok(typedText.occursIn('so hunter2 it is'));
  typedText.addText('page', '4');
  typedText.removeCharacter('page');
  assert.equal(typedText.redactText('so hunter2 it is'), `so ${REDACTED} it is`);
  typedText.endField('page');
  for (const character of 'abc') typedText.addText('page', character);
  assert.ok(!typedText.occursIn('abc') && !typedText.occursIn('hunter2abc'.slice(1, 7)));
});

test('joins inserted texts, and keeps only the last composition of an input method', () => {
  const typedText = new TypedText();
  for (const word of ['blue ', 'heron ', '4417']) {
    for (let length = 1; length <= word.length; length++) typedText.compose('page', word.slice(0, length));
    typedText.insertText('page', word);
  }
  assert.equal(typedText.redactText('is blue heron 4417 .'), `is ${REDACTED} .`);
  typedText.endField('page');
  for (let length = 1; length <= 10; length++) typedText.compose('page', '2026-11-28'.slice(0, length));
  assert.equal(typedText.redactText('2026-11-28'), REDACTED);
  assert.equal(typedText.redactText('from 2026-11-03'), 'from 2026-11-03');
  typedText.compose('page', '');
  assert.equal(typedText.redactText('2026-11-28'), '2026-11-28');
  typedText.compose('page', 'tea-47');
  typedText.addText('page', '1'); // The key ends the composition.
  assert.equal(typedText.redactText('tea-471'), REDACTED);
});

test('remembers an inserted text although other text follows it, and a text that is the beginning of another one', () => {
  const typedText = new TypedText();
  typedText.insertText('page', 'user-4711');
  typedText.insertText('page', 'pass-9922');
  typedText.addText('page', 'x');
  assert.equal(typedText.redactText('u=user-4711&p=pass-9922'), `u=${REDACTED}&p=${REDACTED}`);
  typedText.endField('page');
  for (const character of 'max-4711') typedText.addText('page', character);
  typedText.endField('page');
  for (const character of 'max-4711@x') typedText.addText('page', character);
  typedText.compose('page', 'y');
  assert.equal(typedText.redactText('is max-4711.'), `is ${REDACTED}.`);
});

test('remembers a slowly typed line although text is inserted after it', () => {
  const typedText = new TypedText();
  for (const character of 'ab-471199') {
    typedText.addText('page', character);
    typedText.endWord('page');
  }
  typedText.insertText('page', 'hello world');
  assert.equal(typedText.redactText('is ab-471199.'), `is ${REDACTED}.`);
});

test('remembers a composition alone, and a text that is typed in two places', () => {
  const typedText = new TypedText();
  for (const character of 'hello ') typedText.addText('page', character);
  typedText.compose('page', 'token-47');
  typedText.insertText('other', 'token-47');
  assert.equal(typedText.redactText('is token-47.'), `is ${REDACTED}.`);
  typedText.compose('page', 'token-478');
  assert.equal(typedText.redactText('is token-47, token-478.'), `is ${REDACTED}, ${REDACTED}.`);
  typedText.endField('page');
  for (const character of 'pass-47') typedText.addText('page', character);
  typedText.removeCharacter('page');
  typedText.compose('page', 'token-99');
  typedText.removeCharacter('page');
  assert.equal(typedText.redactText('is token-99.'), `is ${REDACTED}.`);
});

test('redacts a path with its slash, not the words in it', () => {
  const typedText = new TypedText();
  typedText.rememberText('/room42');
  assert.equal(typedText.redactText('room42 /room42'), `room42 ${REDACTED}`);
});

test('keeps at most 512 characters of a text whose compositions are never replaced', () => {
  const typedText = new TypedText();
  for (let count = 0; count < 100; count++) {
    typedText.compose('page', `${count}-`.padEnd(512, 'x'));
    typedText.endWord('page');
  }
  for (const character of 'end-47') typedText.addText('page', character);
  assert.equal(typedText.redactText(`${'x'.repeat(506)}end-47`), REDACTED);
  assert.equal(typedText.redactText(`${'x'.repeat(507)}end-47`), `x${REDACTED}`);
});

test('keeps only the last of several shortened lines, even if other commands are sent in between', () => {
  const typedText = new TypedText();
  for (const character of '2026-10-05 to 2026-10-06') typedText.addText('page', character);
  for (let count = 0; count < 10; count++) {
    typedText.endWord('page');
    typedText.removeCharacter('page');
  }
  assert.equal(typedText.redactText('2026-10-05 to 2026-10-07'), `${REDACTED} 2026-10-07`);
});

test('does not redact ordinary words because a page may write typed text into a path', () => {
  const typedText = new TypedText();
  typedText.rememberText('../../settings');
  typedText.rememberText('नमस्ते दुनिया।');
  assert.equal(typedText.redactText('/settings नमस्ते दुनिया।'), '/settings नमस्ते दुनिया।');
});

test('removes a whole character for a backspace', () => {
  const typedText = new TypedText();
  for (const character of 'pass-47😀') typedText.addText('page', character);
  typedText.removeCharacter('page');
  typedText.addText('page', '1');
  assert.equal(typedText.redactText('is pass-471.'), `is ${REDACTED}.`);
});

test('redacts text that a page writes into the path of an address without encoding all of it', () => {
  const typedText = new TypedText();
  typedText.rememberText('p@ss{word}9');
  const url = new URL('http://shop.test/');
  url.pathname = 'orders/p@ss{word}9';
  assert.equal(typedText.redactText(url.href), `http://shop.test/orders/${REDACTED}`);
});

test('a field that is emptied with backspace displaces no other text and redacts no beginning of its text', () => {
  const typedText = new TypedText();
  for (const character of 'secret-43') typedText.addText('page', character);
  typedText.endField('page');
  for (const character of '2026-10-05 to 2026-10-06 and back') typedText.addText('page', character);
  for (let count = 0; count < 40; count++) typedText.removeCharacter('page');
  assert.ok(typedText.occursIn('it is secret-43.'));
  assert.ok(!typedText.occursIn('on 2026-10-09'));
});

test('remembers a long typed string only once, and removes the oldest string first', () => {
  const typedText = new TypedText();
  typedText.rememberText('first-of-all-1');
  for (const character of 'x'.repeat(200).concat('-1')) typedText.addText('page', character);
  assert.ok(typedText.occursIn('first-of-all-1'));
  for (let index = 0; index < 100; index++) typedText.rememberText(`another-${index}`);
  assert.ok(!typedText.occursIn('first-of-all-1') && typedText.occursIn('another-99'));
});

test('does not remember ordinary words and URLs', () => {
  const typedText = new TypedText();
  for (const text of ['shoes', 'red running shoes', 'https://shop.test/', 'shop.test', '', '12'])
    typedText.rememberText(text);
  assert.ok(!typedText.occursIn('red running shoes at https://shop.test/ 12'));
});

test('remembers strings in nested arguments', () => {
  const typedText = new TypedText();
  typedText.rememberPassed([{ value: { o: [{ k: 'value', v: 'deep-S3cret' }] } }]);
  assert.ok(typedText.occursIn('deep-S3cret'));
});

test('does not remember arguments that are selectors, paths or code', () => {
  const typedText = new TypedText();
  const passedArguments = [
    '/popup',
    '#login-form',
    '.cart-2',
    '[data-id="7"]',
    'input#password',
    'a > b:nth-child(2)',
    '() => 1 + 1',
  ];
  typedText.rememberPassed(passedArguments);
  for (const text of passedArguments) assert.ok(!typedText.occursIn(text), text);
});

test('separates the text of two fields, and joins typed characters even if other commands were sent in between', () => {
  const typedText = new TypedText();
  for (const character of 'name-42') typedText.addText('page', character);
  typedText.endWord('page');
  for (const character of 'secret-43') typedText.addText('page', character);
  assert.ok(typedText.occursIn('it is name-42.') && typedText.occursIn('it is secret-43.'));
  for (const character of 'slow-7') {
    typedText.endWord('other');
    typedText.addText('other', character);
  }
  assert.ok(typedText.occursIn('it is slow-7.'));
});
