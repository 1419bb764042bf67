// Checks the names of archive entries, so that unpacking writes only into one folder, and each file only once, on any
// file system.
import { refusal } from './refusal.ts';

const NAME_BYTES_MAX = 1024;
const PART_BYTES_MAX = 255;
const DEPTH_MAX = 32;
/** Matches control characters, lone surrogates, and the replacement character for bytes that could not be decoded. */
const UNREADABLE_PATTERN = /[\p{Cc}\p{Cs}\uFFFD]/u;
/**
 * The only names at the root of an extension that may begin with `_`. Chromium refuses an extension with any other such
 * name.
 */
const ALLOWED_RESERVED_NAMES = new Set(['_locales', '_platform_specific']);
/** Folders created by the web store and by macOS. Chromium refuses `_metadata` and does not use `__MACOSX`. */
const SKIPPED_FOLDERS = new Set(['_metadata', '__MACOSX']);
const QUOTED_CHARACTERS_MAX = 120;

/** Returns the parts of the name, or undefined if the entry is skipped. */
export function entryPath(name: string): readonly string[] | undefined {
  const quotedName = JSON.stringify(name.slice(0, QUOTED_CHARACTERS_MAX));
  if (/^([/\\]|[a-zA-Z]:)/.test(name))
    throw refusal(
      'absolute_path',
      `the name ${quotedName} is absolute`,
      'Use names relative to the folder of the extension.',
    );
  const parts = name.replace(/\/$/, '').split('/');
  if (name.split(/[/\\]/).includes('..'))
    throw refusal('path_escape', `the name ${quotedName} contains ..`, 'Use names without .. parts.');
  if (isInvalid(name, parts))
    throw refusal(
      'bad_name',
      `the name ${quotedName} is not allowed`,
      `Use at most ${DEPTH_MAX} parts of at most ${PART_BYTES_MAX} bytes, separated by /, without backslashes, empty parts and control characters.`,
    );
  const [firstPart = ''] = parts;
  if (SKIPPED_FOLDERS.has(firstPart)) return undefined;
  if (firstPart.startsWith('_') && !ALLOWED_RESERVED_NAMES.has(firstPart))
    throw refusal(
      'bad_name',
      `the name ${quotedName} begins with _, which Chromium reserves`,
      'Rename the file or folder. At the root, only _locales and _platform_specific may begin with _.',
    );
  return parts;
}

const isInvalid = (name: string, parts: readonly string[]): boolean =>
  name.includes('\\') ||
  UNREADABLE_PATTERN.test(name) ||
  Buffer.byteLength(name) > NAME_BYTES_MAX ||
  parts.length > DEPTH_MAX ||
  parts.some(part => part === '' || part === '.' || Buffer.byteLength(part) > PART_BYTES_MAX);

/**
 * Refuses a second entry for the same file, even if the two names are the same only on a file system that ignores case
 * or normalizes accents.
 */
export class SeenNames {
  readonly #files = new Map<string, string>();
  readonly #folders = new Map<string, string>();

  add(parts: readonly string[], isFolder: boolean): void {
    const name = parts.join('/');
    const key = normalize(name);
    const existingName = this.#files.get(key) ?? (isFolder ? undefined : this.#folders.get(key));
    if (existingName !== undefined) throw collision(name, existingName);
    for (let depth = 1; depth < parts.length + Number(isFolder); depth++)
      this.#addFolder(parts.slice(0, depth).join('/'));
    if (!isFolder) this.#files.set(key, name);
  }

  #addFolder(name: string): void {
    const key = normalize(name);
    const existingName = this.#files.get(key) ?? this.#folders.get(key);
    if (existingName !== undefined && (existingName !== name || this.#files.has(key)))
      throw collision(name, existingName);
    this.#folders.set(key, name);
  }
}

const normalize = (name: string): string => name.normalize('NFC').toLowerCase();

const collision = (name: string, existing: string) =>
  name === existing
    ? refusal('duplicate_name', `it contains ${JSON.stringify(name)} twice`, 'Pack the extension again.')
    : refusal(
        'case_collision',
        `${JSON.stringify(name)} and ${JSON.stringify(existing)} are the same name on a case-insensitive file system`,
        'Rename one of them.',
      );
