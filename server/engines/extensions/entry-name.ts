// Which names an archive's entries may have, so that unpacking writes inside one folder, each file once, on any disk. Pure.
import { refusal } from './refusal.ts';

const NAME_BYTES_MAX = 1024;
const PART_BYTES_MAX = 255;
const DEPTH_MAX = 32;
/** What a name may not hold: control characters, and what stands for text that could not be read. */
const UNREADABLE = /[\p{Cc}\p{Cs}\uFFFD]/u;
/** Chromium loads no folder with another name of its own kind at the root. */
const RESERVED_KNOWN = new Set(['_locales', '_platform_specific']);
/** Made by the web store and by macOS; Chromium would refuse the one and has no use for the other. */
const LEFT_OUT = new Set(['_metadata', '__MACOSX']);
const SHOWN_MAX = 120;

/** The parts of the name; undefined where the entry is left out. */
export function entryPath(name: string): readonly string[] | undefined {
  const shown = JSON.stringify(name.slice(0, SHOWN_MAX));
  if (/^([/\\]|[a-zA-Z]:)/.test(name))
    throw refusal('absolute_path', `the name ${shown} is absolute`, 'Pack it with names that begin in its folder.');
  const parts = name.replace(/\/$/, '').split('/');
  if (name.split(/[/\\]/).includes('..'))
    throw refusal('path_escape', `the name ${shown} leads out of the archive`, 'Pack it without .. in names.');
  if (isBad(name, parts))
    throw refusal(
      'bad_name',
      `the name ${shown} is not one that every disk can hold`,
      `Expected are parts of at most ${PART_BYTES_MAX} bytes joined by /, at most ${DEPTH_MAX} deep, without backslashes, empty parts and control characters.`,
    );
  const [first = ''] = parts;
  if (LEFT_OUT.has(first)) return undefined;
  if (first.startsWith('_') && !RESERVED_KNOWN.has(first))
    throw refusal(
      'bad_name',
      `the name ${shown} begins with _, which Chromium keeps for itself`,
      'Rename it; only _locales and _platform_specific may stand at the root.',
    );
  return parts;
}

const isBad = (name: string, parts: readonly string[]): boolean =>
  name.includes('\\') ||
  UNREADABLE.test(name) ||
  Buffer.byteLength(name) > NAME_BYTES_MAX ||
  parts.length > DEPTH_MAX ||
  parts.some(part => part === '' || part === '.' || Buffer.byteLength(part) > PART_BYTES_MAX);

/** Sees that no two entries are the same file, on a disk that knows no case or composes accents too. */
export class SeenNames {
  readonly #files = new Map<string, string>();
  readonly #folders = new Map<string, string>();

  add(parts: readonly string[], isFolder: boolean): void {
    const name = parts.join('/');
    const key = keyOf(name);
    const known = this.#files.get(key) ?? (isFolder ? undefined : this.#folders.get(key));
    if (known !== undefined) throw collision(name, known);
    for (let depth = 1; depth < parts.length + Number(isFolder); depth++)
      this.#addFolder(parts.slice(0, depth).join('/'));
    if (!isFolder) this.#files.set(key, name);
  }

  #addFolder(name: string): void {
    const key = keyOf(name);
    const known = this.#files.get(key) ?? this.#folders.get(key);
    if (known !== undefined && (known !== name || this.#files.has(key))) throw collision(name, known);
    this.#folders.set(key, name);
  }
}

const keyOf = (name: string): string => name.normalize('NFC').toLowerCase();

const collision = (name: string, known: string) =>
  name === known
    ? refusal('duplicate_name', `${JSON.stringify(name)} stands in it twice`, 'Pack it anew.')
    : refusal(
        'case_collision',
        `${JSON.stringify(name)} and ${JSON.stringify(known)} are one name where case does not count`,
        'Rename one of them.',
      );
