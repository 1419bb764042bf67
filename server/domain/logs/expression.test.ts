import assert from 'node:assert/strict';
import { test } from 'node:test';
import { scanExpression } from './expression.ts';
import { REDACTED } from './redact.ts';

const SECRET = 'hunter2-S3cr3t';

for (const expression of [
  `document.querySelector("#pw").value = "${SECRET}"`,
  `el.value = '${SECRET}'; // don't`,
  `/* don't */ el.value = '${SECRET}'`,
  `el.value = "it's \\"${SECRET}\\""`,
  `fill(\`${SECRET}\`)`,
  `fill(\`a\${f(\`${SECRET}\`)}b\`)`,
  `const pattern = /["']/; el.value = "${SECRET}"`,
  `a / b; el.value = "${SECRET}" / 2`,
  `x.split(/[/'"]/g).map(y => "${SECRET}")`,
  `el.value = "${SECRET}`,
  `el.value = '${SECRET}\n'`,
  `return /'/.test(x) ? '${SECRET}' : 1`,
  `// ${SECRET}`,
])
  test(`removes quoted text from ${expression.replaceAll(SECRET, '…').replaceAll('\n', '⏎')}`, () =>
    assert.ok(!scanExpression(expression).shape.includes(SECRET), scanExpression(expression).shape));

test('does not change the unquoted parts of an expression', () => {
  assert.equal(scanExpression('1+1').shape, '1+1');
  assert.equal(scanExpression('document.title').shape, 'document.title');
  assert.equal(scanExpression("f('a', 2) / 3").shape, `f('${REDACTED}', 2) / 3`);
  assert.equal(scanExpression('pay(4111111111111111)').shape, `pay(${REDACTED})`);
});

test('returns the quoted strings without escape sequences', () =>
  assert.deepEqual(scanExpression(`a("x\\u0041\\n", 'it\\'s')`).quoted, ['xA\n', "it's"]));
