import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkCycles } from './cycles.ts';

const filesOf = (texts: Readonly<Record<string, string>>) =>
  Object.entries(texts).map(([path, text]) => ({ path: `server/kit/${path}.ts`, text }));

test('reports a circular import once, with its path', () => {
  const violations = checkCycles(
    filesOf({ a: "import './b.ts';", b: "import './c.ts';", c: "import './a.ts';\nimport './d.ts';", d: '' }),
  );
  assert.equal(violations.length, 1);
  assert.match(violations[0]?.what ?? '', /a\.ts -> server\/kit\/b\.ts -> server\/kit\/c\.ts -> server\/kit\/a\.ts/);
});

test('reports two circular imports through one file', () => {
  const violations = checkCycles(
    filesOf({ a: "import './b.ts';\nimport './c.ts';", b: "import './a.ts';", c: "import './a.ts';" }),
  );
  assert.equal(violations.length, 2);
});

test('reports a circular import of types', () => {
  assert.equal(checkCycles(filesOf({ a: "import type { B } from './b.ts';", b: "import './a.ts';" })).length, 1);
});

test('accepts a file that is imported through two other files', () => {
  assert.deepEqual(
    checkCycles(
      filesOf({
        a: "import './b.ts';\nimport './c.ts';",
        b: "import './d.ts';",
        c: "import type { D } from './d.ts';",
        d: '',
      }),
    ),
    [],
  );
});
