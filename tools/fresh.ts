// Compares the generated files with their sources, and the table of settings with the settings that config.ts reads.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { listSettingNames } from './setting-names.ts';
import type { Violation } from './source-files.ts';

export interface GeneratedFile {
  readonly path: string;
  readonly text: string;
}

export const CLIENT_TYPES_PATH = 'sdk/generated/api.ts';
const SETTINGS_DOCUMENT_PATH = 'docs/operating.md';

export function checkFresh(root: string, generatedFiles: readonly GeneratedFile[]): Violation[] {
  return generatedFiles.flatMap(file => {
    const committedText = existsSync(join(root, file.path)) ? readFileSync(join(root, file.path), 'utf8') : undefined;
    if (committedText === file.text) return [];
    const what = committedText === undefined ? 'this generated file is missing' : 'this generated file is out of date';
    return [{ path: file.path, what, remedy: 'run `npm run gen` and commit what it wrote.' }];
  });
}

/** Checks that the operator's table has a row for each setting that config.ts reads, and no other rows. */
export function checkSettings(document: string, names: readonly string[] = listSettingNames()): Violation[] {
  const rowNames = [...document.matchAll(/^\| `([A-Z][A-Z0-9_]+)`/gm)].map(match => match[1] ?? '');
  const undocumentedNames = names.filter(name => !rowNames.includes(name));
  const unusedRowNames = rowNames.filter(name => !names.includes(name));
  return [
    ...undocumentedNames.map(name => ({
      path: SETTINGS_DOCUMENT_PATH,
      what: `${name} is read by server/config.ts and not explained`,
      remedy: `add a row that begins "| \`${name}\`" to the table of settings.`,
    })),
    ...unusedRowNames.map(name => ({
      path: SETTINGS_DOCUMENT_PATH,
      what: `${name} is explained and never read by server/config.ts`,
      remedy: 'remove the row, or correct the name in it.',
    })),
  ];
}
