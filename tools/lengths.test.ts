import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkLengths } from './lengths.ts';

/** A function with `inside` lines between its first line and its last line. */
const functionText = (name: string, inside: number): string =>
  `async function ${name}(\n  port: number,\n): Promise<void> {\n${'  open(port);\n'.repeat(inside - 2)}}\n`;

const violationsOn = (path: string, text: string): string[] =>
  checkLengths([{ path, text }]).map(({ line, what }) => `${line}: ${what}`);

test('reports each wiring function that has more than 60 lines', () => {
  const text = `// Wires.\n${functionText('short', 58)}\n/** Long. */\nexport ${functionText('long', 59)}`;
  const expectedViolations = ['64: long has 61 lines, and a wiring function may have 60'];
  assert.deepEqual(violationsOn('server/wiring/files.ts', text), expectedViolations);
  assert.deepEqual(violationsOn('server/parts.ts', text), expectedViolations);
});

test('measures arrow functions but not types', () => {
  const body = '  one: 1,\n'.repeat(60);
  assert.equal(violationsOn('server/local.ts', `const made = () => ({\n${body}});\n`).length, 1);
  assert.deepEqual(violationsOn('server/local.ts', `interface Parts {\n${body}}\n`), []);
});

test('ignores files that are not wiring', () => {
  const text = functionText('long', 90);
  assert.deepEqual(violationsOn('server/domain/files/files.ts', text), []);
  assert.deepEqual(violationsOn('server/wiring/files.test.ts', text), []);
});
