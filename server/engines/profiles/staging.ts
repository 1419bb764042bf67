// The staging folder of a session holds its context from the end of the session until the context is saved. It is on
// the same disk as the session folders. It contains a copy of the cookies, the profile that was moved out of
// the box, and the sealed archive of the profile. Every step writes a file that records the step, so that a later
// process can continue after a crash.
import { lstat, mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { hasCode, moveDurably, writeSynced } from '../../kit/durable.ts';
import { reason } from '../../kit/fault.ts';
import { STORED_ENTRIES } from './checked-tar.ts';

/** Larger cookie files are not read. */
const COOKIES_BYTES_MAX = 64 * 1024 ** 2;

export interface PackedRecord {
  readonly sizeBytes: number;
  readonly skipped: number;
  /** SHA-256 in hex. */
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
  get profileFolder(): string {
    return join(this.#folder, 'profile');
  }

  async create(): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
  }

  /** Replaces the copy of the cookies atomically. */
  async writeCookies(sealed: Buffer): Promise<void> {
    await this.#write('cookies', sealed);
  }

  /** Returns the sealed cookies. Undefined if no cookies were copied. */
  async readCookies(): Promise<Buffer | undefined> {
    const stats = await lstat(this.cookiesFile).catch(undefinedIfMissing);
    if (!stats) return undefined;
    if (stats.size > COOKIES_BYTES_MAX)
      throw new Error(`the staged cookies are too large: ${stats.size} bytes; the limit is ${COOKIES_BYTES_MAX} bytes`);
    return readFile(this.cookiesFile);
  }

  /** Records that the browser has shut down cleanly, so that its profile is complete. */
  async markClean(): Promise<void> {
    await this.#write('clean', Buffer.alloc(0));
  }

  /** Moves the profile out of the box if it is complete. The box's folder is trusted; its content is not. */
  async moveProfile(boxFolder: string): Promise<void> {
    if (!(await this.#exists('clean')) || (await this.#exists('profile'))) return;
    const boxProfile = join(boxFolder, 'profile');
    if (!(await isFolder(boxProfile))) return;
    await moveDurably(boxProfile, this.profileFolder);
  }

  async hasProfile(): Promise<boolean> {
    return isFolder(this.profileFolder);
  }

  /**
   * Returns those entries of STORED_ENTRIES that exist, as paths in the profile. No running process can change them at
   * this point.
   */
  async storedNames(): Promise<readonly string[]> {
    if (!(await isFolder(join(this.profileFolder, 'Default')))) return [];
    const names: string[] = [];
    for (const name of STORED_ENTRIES) {
      const stats = await lstat(join(this.profileFolder, 'Default', name)).catch(undefinedIfMissing);
      if (stats?.isFile() || stats?.isDirectory()) names.push(`Default/${name}`);
    }
    return names;
  }

  /** Removes an archive that was not finished. */
  async discardArchive(): Promise<void> {
    await rm(this.archiveFile, { force: true });
  }

  /** Records that the archive is complete, and removes the profile, which is not encrypted. */
  async recordPacked(newRecord: PackedRecord): Promise<void> {
    await this.#write('packed.json', Buffer.from(JSON.stringify(newRecord)));
    await this.#remove(this.profileFolder);
  }

  async packedRecord(): Promise<PackedRecord | undefined> {
    const text = await readFile(join(this.#folder, 'packed.json'), 'utf8').catch(undefinedIfMissing);
    if (text === undefined) return undefined;
    const record: unknown = JSON.parse(text);
    if (!isPackedRecord(record))
      throw new Error(`${join(this.#folder, 'packed.json')} is not a valid record of a packed archive`);
    return record;
  }

  async remove(): Promise<void> {
    await this.#remove(this.#folder);
  }

  async #write(name: string, bytes: Buffer): Promise<void> {
    const file = join(this.#folder, name);
    const temporaryFile = `${file}.new`;
    await rm(temporaryFile, { force: true });
    await writeSynced(temporaryFile, handle => handle.writeFile(bytes));
    await moveDurably(temporaryFile, file);
  }

  async #exists(name: string): Promise<boolean> {
    return (await lstat(join(this.#folder, name)).catch(undefinedIfMissing)) !== undefined;
  }
}

export const stagedSessions = (root: string): Promise<readonly string[]> =>
  readdir(root).catch(error => undefinedIfMissing(error) ?? []);

const isFolder = async (path: string): Promise<boolean> =>
  (await lstat(path).catch(undefinedIfMissing))?.isDirectory() ?? false;

const isPackedRecord = (value: unknown): value is PackedRecord =>
  typeof value === 'object' &&
  value !== null &&
  'sizeBytes' in value &&
  typeof value.sizeBytes === 'number' &&
  'skipped' in value &&
  typeof value.skipped === 'number' &&
  'checksum' in value &&
  typeof value.checksum === 'string';

function undefinedIfMissing(error: unknown): undefined {
  if (hasCode(error, 'ENOENT') || hasCode(error, 'ENOTDIR')) return undefined;
  throw new Error(`the staging folder cannot be read: ${reason(error)}`, { cause: error });
}
