// Changes the owner of files, because a command that is run as root in the folder of an ordinary user must not leave
// files that the user's server cannot open.
import { chownSync, fchownSync, statSync } from 'node:fs';

/** Gives a file, by its path or descriptor, to the owner of the folder. */
export function giveToFolderOwner(file: string | number, folder: string): void {
  const { uid, gid } = statSync(folder);
  if (process.getuid?.() !== 0 || uid === 0) return;
  if (typeof file === 'number') fchownSync(file, uid, gid);
  else chownSync(file, uid, gid);
}
