// The whole files in the folder to which a session's browser downloads. For a moment the name of the whole file is there
// already, and empty, beside the partial one, which is then renamed over it.
import { existsSync, readdirSync } from 'node:fs';

const PARTIAL = '.crdownload';

/** Their names. Chromium makes the folder with the first file. */
export function wholeDownloads(folder: string): string[] {
  const names = existsSync(folder) ? readdirSync(folder) : [];
  return names.filter(name => !name.endsWith(PARTIAL) && !names.includes(name + PARTIAL));
}
