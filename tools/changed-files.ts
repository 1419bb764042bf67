// Records which files passed a check by the compiler or the linter, and returns those that have to be checked again:
// files that have changed since, and files that import a changed file, because the result of a check may depend on the
// imported types.
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, posix } from 'node:path';
import { importsOf } from './imports.ts';
import { isCode, type SourceFile } from './source-files.ts';

/** Digests by path. */
export type Digests = Readonly<Record<string, string>>;

export interface Notes {
  /** A digest of the inputs that affect all files: the program and its settings. */
  readonly of: string;
  readonly files: Digests;
}

export const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex');

export const digestsOf = (files: readonly SourceFile[]): Digests =>
  Object.fromEntries(files.map(({ path, text }) => [path, digestOf(text)]));

/**
 * Returns the paths of the files that must be checked again. A removed file counts as changed for the files that import
 * it.
 */
export function changedPathsSince(files: readonly SourceFile[], passedDigests: Digests): string[] {
  const currentDigests = digestsOf(files);
  const paths = new Set([...Object.keys(currentDigests), ...Object.keys(passedDigests)]);
  const changedPaths = new Set([...paths].filter(path => currentDigests[path] !== passedDigests[path]));
  const importers = importersOf(files);
  // Iterating over a set includes elements that are added during the iteration.
  for (const path of changedPaths) for (const importer of importers.get(path) ?? []) changedPaths.add(importer);
  return [...changedPaths].filter(path => currentDigests[path] !== undefined).sort();
}

function importersOf(files: readonly SourceFile[]): ReadonlyMap<string, readonly string[]> {
  const importers = new Map<string, string[]>();
  for (const { path, text } of files.filter(file => isCode(file.path)))
    for (const { specifier } of importsOf(text)) {
      if (!specifier.startsWith('.')) continue;
      const target = posix.join(posix.dirname(path), specifier);
      importers.set(target, [...(importers.get(target) ?? []), path]);
    }
  return importers;
}

/** Undefined if there are no notes, or if they cannot be read. */
export function readNotes(file: string): Notes | undefined {
  try {
    const notes: unknown = JSON.parse(readFileSync(file, 'utf8'));
    return isNotes(notes) ? notes : undefined;
  } catch {
    return undefined;
  }
}

function isNotes(value: unknown): value is Notes {
  return typeof value === 'object' && value !== null && 'of' in value && 'files' in value;
}

export function writeNotes(file: string, notes: Notes): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, JSON.stringify(notes));
}

export const removeNotes = (file: string): void => rmSync(file, { force: true });
