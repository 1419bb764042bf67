import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codeOnly, importsOf, withoutComments } from './imports.ts';

const importLines = (text: string): string[] =>
  importsOf(text).map(one => `${one.line} ${one.specifier}${one.isTypeOnly ? ' type' : ''}`);

test('finds every form of import, with its line', () => {
  const text = [
    "import './a.ts';",
    "import b from './b.ts';",
    "import { c, type C } from './c.ts';",
    "import * as d from './d.ts';",
    'import e, {',
    '  f,',
    "} from './e.ts';",
    "export * from './g.ts';",
    "export { h } from './h.ts';",
    "const i = await import('./i.ts');",
    "const j = require('./j.cjs');",
  ].join('\n');
  assert.deepEqual(importLines(text), [
    '1 ./a.ts',
    '2 ./b.ts',
    '3 ./c.ts',
    '4 ./d.ts',
    '7 ./e.ts',
    '8 ./g.ts',
    '9 ./h.ts',
    '10 ./i.ts',
    '11 ./j.cjs',
  ]);
});

test('treats an import as type-only if the whole statement is erased', () => {
  const text = [
    "import type { A } from './a.ts';",
    "export type { B } from './b.ts';",
    "type C = typeof import('./c.ts');",
    "import { type D } from './d.ts';",
    "import type from './e.ts';",
  ].join('\n');
  assert.deepEqual(importLines(text), ['1 ./a.ts type', '2 ./b.ts type', '3 ./c.ts type', '4 ./d.ts', '5 ./e.ts']);
});

test('does not treat words in comments, strings, templates and regular expressions as imports', () => {
  const text = [
    "// import a from './a.ts';",
    "/* import b from './b.ts'; */",
    'const c = "import c from \'./c.ts\'";',
    "const d = `import d from './d.ts' ${`import('./e.ts')`} import f from './f.ts'`;",
    "const g = /import g from '.\\/g.ts'/;",
    "const h = 1 / 2; import i from './i.ts'; const k = 4 / 2;",
    "object.import('./l.ts');",
  ].join('\n');
  assert.deepEqual(importLines(text), ['6 ./i.ts']);
});

test('finds an import in an expression inside a template literal', () => {
  assert.deepEqual(importLines("const a = `x ${await import('./a.ts')} ${{ b: '}' }.b} y`;\nimport './c.ts';"), [
    '1 ./a.ts',
    '2 ./c.ts',
  ]);
});

test('removing comments and strings preserves the length and the line breaks of the text', () => {
  const text = "const a = 'b//c'; // d\nconst e = /['\"`]/; /* f\n g */ const h = `i${j}k`;\n";
  assert.equal(codeOnly(text), "const a = '    ';     \nconst e = /     /;     \n      const h = ` ${j} `;\n");
  assert.equal(withoutComments(text).length, text.length);
  assert.match(withoutComments(text), /'b\/\/c'/);
  assert.doesNotMatch(withoutComments(text), / f| g /);
});
