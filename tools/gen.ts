// Writes the generated files: `npm run gen`. Their sources are the contract, the declarations of the command line, and
// the migrations. tools/fresh.ts compares them with the committed files.
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { clientTypesFile } from './client-types.ts';
import { checkColumns } from './fresh.ts';
import { apiDocument, generatedFiles, NOTE } from './generated-files.ts';

const ROOT = dirname(import.meta.dirname);

const columnsFiles = async () =>
  checkColumns(ROOT).length === 0
    ? []
    : [await (await import('./database-columns.ts')).databaseColumnsFile(ROOT, NOTE)];

const files = [...(await generatedFiles()), await clientTypesFile(apiDocument(), NOTE), ...(await columnsFiles())];
for (const file of files) {
  const path = join(ROOT, file.path);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, file.text);
  console.log(file.path);
}
