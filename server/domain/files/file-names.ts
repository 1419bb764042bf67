// File names chosen by others: callers name uploads, sites name downloads. Names are displayed and compared. Only the
// name of an upload is used as a file name on disk, and no name is ever used as a path.
import { fault } from '../faults.ts';

const NAME_BYTES_MAX = 255;
const DEFAULT_NAME = 'download';
const CONTROL_CHARACTER_PATTERN = /[\u0000-\u001f\u007f]/;
const FORBIDDEN_CHARACTERS_PATTERN = /[\u0000-\u001f\u007f/\\]/g;

/** Returns the name unchanged. Throws a fault with the reason if it is not allowed. */
export function requireUploadName(name: string): string {
  const problem = nameProblem(name);
  if (problem === undefined) return name;
  throw fault('invalid_file', `The file name ${JSON.stringify(name.slice(0, 100))} ${problem}.`, {
    advice: `Send a plain file name of 1 to ${NAME_BYTES_MAX} bytes, without a folder.`,
  });
}

function nameProblem(name: string): string | undefined {
  if (name === '' || name === '.' || name === '..') return 'is not allowed';
  if (/[/\\]/.test(name)) return 'contains a slash or backslash';
  if (CONTROL_CHARACTER_PATTERN.test(name)) return 'contains a control character';
  if (Buffer.byteLength(name) > NAME_BYTES_MAX) return `has ${Buffer.byteLength(name)} bytes`;
  return undefined;
}

/** Makes the name of a download safe to display. The browser also does this, unless it has been compromised. */
export function downloadName(suggestedName: string): string {
  const cleanedName = shorten(suggestedName.toWellFormed().replace(FORBIDDEN_CHARACTERS_PATTERN, '_'));
  return cleanedName === '' || cleanedName === '.' || cleanedName === '..' ? DEFAULT_NAME : cleanedName;
}

/** Truncates the name without splitting a character, and keeps the extension. */
function shorten(name: string): string {
  if (Buffer.byteLength(name) <= NAME_BYTES_MAX) return name;
  const extension = /\.[^.]{1,16}$/.exec(name)?.[0] ?? '';
  let stem = '';
  for (const character of name.slice(0, name.length - extension.length)) {
    if (Buffer.byteLength(stem + character + extension) > NAME_BYTES_MAX) break;
    stem += character;
  }
  return stem + extension;
}
