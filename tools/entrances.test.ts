import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkEntrances } from './entrances.ts';

const violationsOf = (text: string, path = 'server/entry/cdp/a.ts', exceptions = {}): string[] =>
  checkEntrances([{ path, text }], exceptions).map(({ what }) => what);

for (const text of [
  "socket.on('message', data => this.#hear(data));",
  "socket.once('data', hear);",
  'socket.on("message", (data, binary) => {\n});',
  "socket.on(\n  'message',\n  this.#hear,\n);",
  "server.on('upgrade', function (request) {});",
  "socket.addEventListener('message', hear); const guardedHear = guardListener(fail, hear);",
  "socket.on('message', hear); const shear = guardListener(fail, hear);",
  "socket.on('message', hear); // const hear = guardListener(fail, listen);",
  'super({ onread: { buffer, callback: take } });',
  'const value = JSON.parse(text);',
  'const value = [text].map(JSON.parse);',
  'const url = String(params.url);',
])
  test(`reports ${text.split('\n')[0]}`, () => assert.equal(violationsOf(text).length, 1, text));

for (const text of [
  "socket.on('message', guardListener(this.#failed, (data: Buffer) => this.#hear(data)));",
  "socket.on(\n  'data',\n  guardListener(() => socket.destroy(), hear),\n);",
  "const hear = guardListener(fail, listen);\nsocket.on('message', hear);",
  "readonly #hear = guardListener(this.#failed, (data: Buffer) => {});\nstart() { socket.on('message', this.#hear); }",
  "socket.on('close', () => this.#left());",
  "// socket.on('message', hear);",
  'const value = parseJson(text);',
  'const text = `${count}`; const other = value.toString(); const name = "String(";',
])
  test(`accepts ${text.split('\n')[0]}`, () => assert.deepEqual(violationsOf(text), []));

test('accepts an unguarded entrance that is listed as an exception, and reports superfluous exceptions', () => {
  const text = "socket.on('data', keep);";
  const path = 'server/engines/slots/a.ts';
  assert.deepEqual(violationsOf(text, path, { [path]: { data: 'they are ours' } }), []);
  assert.equal(violationsOf('', path, { [path]: { data: 'they are ours' } }).length, 1);
  assert.equal(violationsOf(text, path, { [path]: { message: 'they are ours' } }).length, 2);
});

test('does not check tests, tools or the console', () => {
  for (const path of ['server/kit/a.test.ts', 'tools/a.ts', 'console/a.ts', 'tests/harness/a.ts'])
    assert.deepEqual(violationsOf("socket.on('message', hear); JSON.parse(text);", path), []);
});
