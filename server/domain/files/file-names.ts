// Names that others chose for files: callers for uploads, sites for downloads. They are shown and compared, and an upload's
// is the name of its file; no other path is ever made of one.
import { fault } from '../faults.ts';

const NAME_BYTES_MAX = 255;
const NAMELESS = 'download';
const CONTROL = /[\u0000-\u001f\u007f]/;
const NOT_IN_A_NAME = /[\u0000-\u001f\u007f/\\]/g;

/** An upload's name as it came, or the fault that says what is wrong with it. */
export function checkedUploadName(name: string): string {
  const wrong = wrongWith(name);
  if (wrong === undefined) return name;
  throw fault('invalid_file', `The file name ${JSON.stringify(name.slice(0, 100))} ${wrong}.`, {
    advice: `Send a plain file name of 1 to ${NAME_BYTES_MAX} bytes, without a folder.`,
  });
}

function wrongWith(name: string): string | undefined {
  if (name === '' || name === '.' || name === '..') return 'names no file';
  if (/[/\\]/.test(name)) return 'holds a slash';
  if (CONTROL.test(name)) return 'holds a control character';
  if (Buffer.byteLength(name) > NAME_BYTES_MAX) return `has ${Buffer.byteLength(name)} bytes`;
  return undefined;
}

/** What a site called a download, made fit to be shown: the browser has cleaned it, if it is still our browser. */
export function downloadName(suggested: string): string {
  const clean = shortened(suggested.toWellFormed().replace(NOT_IN_A_NAME, '_'));
  return clean === '' || clean === '.' || clean === '..' ? NAMELESS : clean;
}

/** Cut between characters, with its extension kept. */
function shortened(name: string): string {
  if (Buffer.byteLength(name) <= NAME_BYTES_MAX) return name;
  const extension = /\.[^.]{1,16}$/.exec(name)?.[0] ?? '';
  let stem = '';
  for (const character of name.slice(0, name.length - extension.length)) {
    if (Buffer.byteLength(stem + character + extension) > NAME_BYTES_MAX) break;
    stem += character;
  }
  return stem + extension;
}
