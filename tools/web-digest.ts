// The digest of everything that the console and the docs site are built from, to detect whether a build is up to date.
import { createHash } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const SOURCE_GLOBS = [
  'console/**/*',
  'docs/**/*.md',
  'contract/**/*.ts',
  'sdk/*.ts',
  'tools/{build-web,build-console,web-digest}.ts',
  'tools/docs-site/**/*',
  'package.json',
];

export function digestOfSources(root: string): string {
  const hash = createHash('sha256');
  const files = globSync(SOURCE_GLOBS, { cwd: root, withFileTypes: true })
    .filter(entry => entry.isFile() && !entry.name.endsWith('.test.ts'))
    .map(entry => join(entry.parentPath, entry.name))
    .sort();
  for (const file of files) {
    const bytes = readFileSync(file);
    hash.update(`${file.slice(root.length)}\0${bytes.length}\0`).update(bytes);
  }
  return hash.digest('hex').slice(0, 16);
}
