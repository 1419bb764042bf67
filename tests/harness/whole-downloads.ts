// The complete files in the download folder of a session. When a download completes, an empty file with the final name
// exists for a moment beside the partial file, which is then renamed over the empty one.
import { existsSync, readdirSync } from 'node:fs';

const PARTIAL_SUFFIX = '.crdownload';

/** The names of the files. Chromium creates the folder with the first file. */
export function listCompleteDownloads(folder: string): string[] {
  const names = existsSync(folder) ? readdirSync(folder) : [];
  return names.filter(name => !name.endsWith(PARTIAL_SUFFIX) && !names.includes(name + PARTIAL_SUFFIX));
}
