// Where a session's context waits between the end of the session and its save: a folder of ours on the disk of the
// sessions, with the cookies copied aside, the profile moved out of the box, and the sealed archive made of it. Every
// step leaves something that says it is done, so that a later process goes on where this one died.
import { lstat, mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isCode, moveDurably, writeSynced } from '../../kit/durable.ts';
import { reason } from '../../kit/fault.ts';
import { KEPT } from './checked-tar.ts';

/** The sealed cookies of a session cannot be larger, or they are not read. */
const COOKIES_BYTES_MAX = 64 * 1024 ** 2;

export interface PackedNote {
  readonly sizeBytes: number;
  readonly skipped: number;
  /** Hex. */
  readonly checksum: string;
}

export class Staging {
  readonly #folder: string;
  readonly #remove: (folder: string) => Promise<void>;

  constructor(root: string, session: string, remove: (folder: string) => Promise<void>) {
    this.#folder = join(root, session);
    this.#remove = remove;
  }

  get archiveFile(): string {
    return join(this.#folder, 'archive');
  }
  get cookiesFile(): string {
    return join(this.#folder, 'cookies');
  }
  get profile(): string {
    return join(this.#folder, 'profile');
  }

  async make(): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
  }

  /** Replaces the copy; whoever dies in between leaves the one before. */
  async writeCookies(sealed: Buffer): Promise<void> {
    await this.#write('cookies', sealed);
  }

  /** The cookies that are sealed here; undefined when none were copied. */
  async readCookies(): Promise<Buffer | undefined> {
    const found = await lstat(this.cookiesFile).catch(absent);
    if (!found) return undefined;
    if (found.size > COOKIES_BYTES_MAX) throw new Error(`the cookies copied aside have ${found.size} bytes`);
    return readFile(this.cookiesFile);
  }

  /** The browser has closed by itself, so what it left behind is whole. */
  async markClean(): Promise<void> {
    await this.#write('clean', Buffer.alloc(0));
  }

  /** Takes the profile out of the box, where it is whole. The box's folder is real; what stands in it need not be. */
  async takeProfile(boxFolder: string): Promise<void> {
    if (!(await this.#has('clean')) || (await this.#has('profile'))) return;
    const inBox = join(boxFolder, 'profile');
    if (!(await isFolder(inBox))) return;
    await moveDurably(inBox, this.profile);
  }

  async hasProfile(): Promise<boolean> {
    return isFolder(this.profile);
  }

  /** What there is of what is kept, as paths in the profile. Nothing that lives can change it any more. */
  async keptNames(): Promise<readonly string[]> {
    if (!(await isFolder(join(this.profile, 'Default')))) return [];
    const names: string[] = [];
    for (const name of KEPT) {
      const found = await lstat(join(this.profile, 'Default', name)).catch(absent);
      if (found?.isFile() || found?.isDirectory()) names.push(`Default/${name}`);
    }
    return names;
  }

  /** Of an archive that was begun and not finished. */
  async freeArchive(): Promise<void> {
    await rm(this.archiveFile, { force: true });
  }

  /** The archive is whole once this is written. The profile itself, which is in clear, goes. */
  async notePacked(note: PackedNote): Promise<void> {
    await this.#write('packed.json', Buffer.from(JSON.stringify(note)));
    await this.#remove(this.profile);
  }

  async packed(): Promise<PackedNote | undefined> {
    const text = await readFile(join(this.#folder, 'packed.json'), 'utf8').catch(absent);
    if (text === undefined) return undefined;
    const value: unknown = JSON.parse(text);
    if (!isNote(value)) throw new Error('the note of a packed archive cannot be read');
    return value;
  }

  async remove(): Promise<void> {
    await this.#remove(this.#folder);
  }

  async #write(name: string, bytes: Buffer): Promise<void> {
    const file = join(this.#folder, name);
    const fresh = `${file}.new`;
    await rm(fresh, { force: true });
    await writeSynced(fresh, handle => handle.writeFile(bytes));
    await moveDurably(fresh, file);
  }

  async #has(name: string): Promise<boolean> {
    return (await lstat(join(this.#folder, name)).catch(absent)) !== undefined;
  }
}

export const stagedSessions = (root: string): Promise<readonly string[]> =>
  readdir(root).catch(error => absent(error) ?? []);

const isFolder = async (path: string): Promise<boolean> => (await lstat(path).catch(absent))?.isDirectory() ?? false;

const isNote = (value: unknown): value is PackedNote =>
  typeof value === 'object' &&
  value !== null &&
  'sizeBytes' in value &&
  typeof value.sizeBytes === 'number' &&
  'skipped' in value &&
  typeof value.skipped === 'number' &&
  'checksum' in value &&
  typeof value.checksum === 'string';

function absent(error: unknown): undefined {
  if (isCode(error, 'ENOENT') || isCode(error, 'ENOTDIR')) return undefined;
  throw new Error(`the staging folder cannot be read: ${reason(error)}`, { cause: error });
}
