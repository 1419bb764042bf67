import assert from 'node:assert/strict';
import { test } from 'node:test';
import { commandParams, commandResult, LOGGED_COMMANDS, mayReturnSecrets } from './command-entries.ts';

const SECRET = 'hunter2-S3cr3t';
const secretParams = {
  text: SECRET,
  unmodifiedText: SECRET,
  key: SECRET[0],
  code: 'KeyH',
  windowsVirtualKeyCode: 72,
  expression: `f("${SECRET}")`,
  functionDeclaration: `() => "${SECRET}"`,
  arguments: [{ value: SECRET }, { value: { deep: [SECRET] } }, { unserializableValue: SECRET }],
  url: `https://u:${SECRET}@shop.test/?token=${SECRET}`,
  referrer: `https://u:${SECRET}@shop.test/`,
  promptText: SECRET,
  data: { items: [{ data: SECRET }] },
  touchPoints: [{ x: 1, y: 2, note: SECRET }],
  headerTemplate: SECRET,
};

for (const method of LOGGED_COMMANDS)
  test(`logs ${method} without typed text, arguments or secrets`, () => {
    const kept = JSON.stringify(commandParams(method, secretParams));
    assert.ok(!kept.includes(SECRET) && !kept.includes('KeyH') && !kept.includes('72'), kept);
  });

test('logs named keys, but not characters', () => {
  assert.equal(commandParams('Input.dispatchKeyEvent', { type: 'keyDown', key: 'Enter' }).key, 'Enter');
  assert.equal(commandParams('Input.dispatchKeyEvent', { type: 'keyDown', key: 'é' }).key, '[redacted]');
});

test('logs neither the text of an expression that is too long to be scanned, nor its result', () => {
  const expression = `document.title;${' '.repeat(65_536)}document.cookie; "${SECRET}"`;
  assert.equal(commandParams('Runtime.evaluate', { expression }).expression, '[redacted]…[cut]');
  assert.ok(mayReturnSecrets('Runtime.evaluate', { expression }));
});

test('logs the text of a result only if the expression does not read secrets', () => {
  const response = { id: 1, result: { result: { type: 'string', value: SECRET } } };
  const kept = (method: string, params: object): string =>
    JSON.stringify(commandResult(method, mayReturnSecrets(method, { ...params }), response));
  assert.ok(!kept('Runtime.callFunctionOn', {}).includes(SECRET));
  for (const expression of ['document.cookie', 'el.value', 'localStorage.x'])
    assert.ok(!kept('Runtime.evaluate', { expression }).includes(SECRET), expression);
  assert.ok(kept('Runtime.evaluate', { expression: 'document.title' }).includes(SECRET));
  assert.deepEqual(commandResult('Page.captureScreenshot', false, { result: { data: SECRET } }), {});
  assert.deepEqual(commandResult('Page.navigate', false, { error: { code: -32000, message: 'no' } }), {
    error: { code: -32000, message: 'no' },
  });
});
