// The generated file of columns, with which the types of the tables are compared when they are compiled.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { databaseColumnsFile } from '../../tools/database-columns.ts';
import { NOTE } from '../../tools/generated-files.ts';

const ROOT = join(import.meta.dirname, '../..');

test('the file of columns has the columns of a database after all migrations', async () => {
  const file = await databaseColumnsFile(ROOT, NOTE);
  assert.match(file.text, /^ {2}keys: \{\n(?: {4}\w+: '\w+';\n)*? {4}id: 'required';$/m);
  assert.equal(readFileSync(join(ROOT, file.path), 'utf8'), file.text);
});
