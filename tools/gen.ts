// Writes the generated files: `npm run gen`. What they are made of stands in the contract and in the command line's own
// declarations; tools/fresh.ts compares them with what is committed.
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
