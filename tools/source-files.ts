// The files that the checks read: the text files of this project outside the ignored folders, with paths relative to
// its root.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface SourceFile {
  /** Relative to the root, with forward slashes. */
  readonly path: string;
  readonly text: string;
}

/** An error that a check reports: the file, the line, the problem, and the remedy. */
export interface Violation {
  readonly path: string;
  readonly line?: number;
  readonly what: string;
  readonly remedy: string;
}

const IGNORED_FOLDERS = new Set(['node_modules', '.git', '.berth', 'data', 'generated']);
const TEXT_FILES = /\.(tsx?|[mc]js|md|json|css|ya?ml|html)$|(^|\/)\.ci\/run$/;

export function readSourceFiles(root: string): SourceFile[] {
  return walk(root, '')
    .filter(path => TEXT_FILES.test(path) && path !== 'package-lock.json')
    .map(path => ({ path, text: readFileSync(join(root, path), 'utf8') }));
}

function walk(root: string, folder: string): string[] {
  const entries = readdirSync(join(root, folder), { withFileTypes: true });
  return entries
    .filter(entry => !IGNORED_FOLDERS.has(entry.name))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap(entry => {
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory()) return walk(root, path);
      return entry.isFile() ? [path] : [];
    });
}

export const isCode = (path: string): boolean => /\.(tsx?|[mc]js)$/.test(path);
export const isTest = (path: string): boolean => /\.test\.ts$/.test(path) || path.startsWith('tests/');
export const isDocument = (path: string): boolean => path.endsWith('.md');

export const lineOf = (text: string, offset: number): number => text.slice(0, offset).split('\n').length;
