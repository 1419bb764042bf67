// Writes the generated files: `npm run gen`. Their sources are the contract and the declarations of the command line.
// tools/fresh.ts compares them with the committed files.
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { clientTypesFile } from './client-types.ts';
import { apiDocument, generatedFiles, NOTE } from './generated-files.ts';

const ROOT = dirname(import.meta.dirname);

for (const file of [...(await generatedFiles()), await clientTypesFile(apiDocument(), NOTE)]) {
  const path = join(ROOT, file.path);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, file.text);
  console.log(file.path);
}
