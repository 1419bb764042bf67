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
  test(`removes quoted text and comments from ${expression.replaceAll(SECRET, '…').replaceAll('\n', '⏎')}`, () =>
    assert.ok(!scanExpression(expression).redacted.includes(SECRET), scanExpression(expression).redacted));

test('keeps the unquoted parts of an expression, except long numbers', () => {
  assert.equal(scanExpression('1+1').redacted, '1+1');
  assert.equal(scanExpression('document.title').redacted, 'document.title');
  assert.equal(scanExpression("f('a', 2) / 3").redacted, `f('${REDACTED}', 2) / 3`);
  assert.equal(scanExpression('pay(4111111111111111)').redacted, `pay(${REDACTED})`);
});

test('returns the quoted strings with their escape sequences decoded', () =>
  assert.deepEqual(scanExpression(`a("x\\u0041\\n", 'it\\'s')`).literals, ['xA\n', "it's"]));
