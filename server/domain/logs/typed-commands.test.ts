import assert from 'node:assert/strict';
import { test } from 'node:test';
import { REDACTED } from './redact.ts';
import { rememberTyped } from './typed-commands.ts';
import { TypedText } from './typed-text.ts';

const CONTROL = 2;

/** Sends commands to one page. */
function openPage() {
  const typedText = new TypedText();
  const send = (method: string, params: Record<string, unknown>, targetIds = ['page']): void =>
    rememberTyped(typedText, method, targetIds, params);
  const press = (key: string, modifiers = 0): void => {
    const text = key.length === 1 && modifiers === 0 ? key : '';
    send('Input.dispatchKeyEvent', { type: text === '' ? 'rawKeyDown' : 'keyDown', key, text, modifiers });
    send('Input.dispatchKeyEvent', { type: 'keyUp', key, modifiers });
  };
  const type = (text: string): void => [...text].forEach(key => void press(key));
  return { send, press, type, redact: (text: string) => typedText.redactText(text) };
}

test('remembers text that is typed key by key, with the text in the key event or in one of its own', () => {
  const page = openPage();
  page.press('Shift');
  page.type('pass-4711');
  assert.equal(page.redact('is pass-4711.'), `is ${REDACTED}.`);
  page.press('Tab');
  for (const key of 'other-12') {
    page.send('Input.dispatchKeyEvent', { type: 'keyDown', key, modifiers: 0 });
    page.send('Input.dispatchKeyEvent', { type: 'char', text: key });
    page.send('Input.dispatchKeyEvent', { type: 'keyUp', key });
  }
  assert.equal(page.redact('is other-12.'), `is ${REDACTED}.`);
});

test('remembers what is typed after a selection, a move of the cursor or a removed word', () => {
  const page = openPage();
  page.type('wrong12345');
  page.press('a', CONTROL);
  page.type('right67890');
  page.press('ArrowLeft');
  page.type('third-1');
  page.press('Backspace', CONTROL);
  page.type('fourth-2');
  page.press('Backspace');
  page.type('3');
  for (const text of ['wrong12345', 'right67890', 'third-1', 'fourth-3'])
    assert.equal(page.redact(`is ${text}.`), `is ${REDACTED}.`, text);
});

test('continues a word after a key that changes neither the text nor the position', () => {
  const page = openPage();
  page.type('order-');
  for (const key of ['Escape', 'F2', 'PageDown']) page.press(key);
  page.press('c', CONTROL);
  page.type('47');
  assert.equal(page.redact('is order-47.'), `is ${REDACTED}.`);
});

test('a line break ends the line, also if only its text is sent', () => {
  const page = openPage();
  page.type('pass-47');
  page.send('Input.dispatchKeyEvent', { type: 'char', text: '\r' });
  page.type('next-48');
  assert.equal(page.redact('pass-47 next-48'), `${REDACTED} ${REDACTED}`);
});

test('remembers what is typed after a focus in a frame, or after a text that was inserted', () => {
  const page = openPage();
  page.send('Input.insertText', { text: 'hello you' });
  page.type('pass-9922');
  page.send('Runtime.callFunctionOn', { arguments: [] }, ['frame', 'page']);
  page.type('next-4711');
  page.send('Input.insertText', { text: 'hello me' });
  for (const text of ['pass-9922', 'next-4711']) assert.equal(page.redact(`is ${text}.`), `is ${REDACTED}.`, text);
});

test('joins a line that is typed with End or an unknown key in between', () => {
  const page = openPage();
  page.type('pass-');
  page.press('End');
  page.press('ZenkakuHankaku');
  page.type('4711');
  assert.equal(page.redact('is pass-4711.'), `is ${REDACTED}.`);
});

test('a click or a touch begins another word', () => {
  for (const method of ['Input.dispatchMouseEvent', 'Input.dispatchTouchEvent']) {
    const page = openPage();
    page.type('name-42');
    page.send(method, {});
    page.type('secret-43');
    for (const text of ['name-42', 'secret-43']) assert.equal(page.redact(`is ${text}.`), `is ${REDACTED}.`, text);
  }
});

test('remembers compositions of an input method, and texts that are inserted', () => {
  const page = openPage();
  page.send('Input.imeSetComposition', { text: 'blue' });
  page.send('Input.insertText', { text: 'blue ' });
  page.send('Input.imeSetComposition', { text: '4417-' });
  page.send('Input.insertText', { text: '4417' });
  assert.equal(page.redact('is blue 4417 .'), `is ${REDACTED} .`);
});

test('remembers the answer to a dialog only if it is accepted', () => {
  const page = openPage();
  page.send('Page.handleJavaScriptDialog', { accept: false, promptText: 'refused-1' });
  page.send('Page.handleJavaScriptDialog', { accept: true, promptText: 'accepted-2' });
  assert.equal(page.redact('refused-1 accepted-2'), `refused-1 ${REDACTED}`);
});
