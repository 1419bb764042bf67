// The files of a tree that a server is at work in: folders may go while one looks.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';

/** By their whole paths. */
export function filesUnder(folder: string): string[] {
  return entriesOf(folder).flatMap(entry => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? filesUnder(path) : [path];
  });
}

function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
    throw error;
  }
}
