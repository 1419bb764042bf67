// Lists the files of a folder that a running server is using. Folders may disappear during the listing.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';

/** Returns absolute paths. */
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
