// Compares the generated files with their sources, and the table of settings with the settings that config.ts reads.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { digestOf } from './changed-files.ts';
import { listSettingNames } from './setting-names.ts';
import type { Violation } from './source-files.ts';

export interface GeneratedFile {
  readonly path: string;
  readonly text: string;
}

export const CLIENT_TYPES_PATH = 'sdk/generated/api.ts';
export const COLUMNS_PATH = 'server/engines/store/generated/columns.ts';
const COLUMNS_GENERATOR_PATH = 'tools/database-columns.ts';
const MIGRATIONS_FOLDER = 'server/engines/store/migrations';
const GEN_REMEDY = 'run `npm run gen` and commit what it wrote.';
const SETTINGS_DOCUMENT_PATH = 'docs/operating.md';

export function checkFresh(root: string, generatedFiles: readonly GeneratedFile[]): Violation[] {
  return generatedFiles.flatMap(file => {
    const committedText = existsSync(join(root, file.path)) ? readFileSync(join(root, file.path), 'utf8') : undefined;
    if (committedText === file.text) return [];
    const what = committedText === undefined ? 'this generated file is missing' : 'this generated file is out of date';
    return [{ path: file.path, what, remedy: GEN_REMEDY }];
  });
}

/** The generated file of columns. Its second line has a digest of what it was made of, and of its body. */
export const columnsText = (root: string, note: string, body: string): string =>
  [`// ${note}`, digestLine(root, body), body].join('\n');

function digestLine(root: string, body: string): string {
  const folder = join(root, MIGRATIONS_FOLDER);
  const migrations = readdirSync(folder)
    .sort()
    .map(name => `${name}\n${readFileSync(join(folder, name), 'utf8')}`);
  const generator = readFileSync(join(root, COLUMNS_GENERATOR_PATH), 'utf8');
  return `// Digest: ${digestOf([...migrations, generator, body].join('\n'))}`;
}

/** Compares only the digest, because reading the columns takes a running PostgreSQL. */
export function checkColumns(root: string): Violation[] {
  const path = join(root, COLUMNS_PATH);
  const [, line, ...bodyLines] = existsSync(path) ? readFileSync(path, 'utf8').split('\n') : [];
  if (line === digestLine(root, bodyLines.join('\n'))) return [];
  const what = 'this file, or a migration, has changed since it was generated';
  return [{ path: COLUMNS_PATH, what, remedy: GEN_REMEDY }];
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
