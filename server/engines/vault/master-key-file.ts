// The file `master-key` in the data folder, which contains the master key: mode 0600, one key per line. While one key
// is being replaced by another, the file contains both, and each row with a data key in the database records the master
// key that wraps it. It is therefore safe to kill the process between any two steps.
import { link, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { hasCode, syncFolder, writeSynced } from '../../kit/durable.ts';
import { Fault } from '../../kit/fault.ts';
import { giveToFolderOwner } from '../../kit/folder-owner.ts';
import { newKey } from './envelope.ts';
import { type MasterKey, type MasterKeySource, masterKeyOf, masterKeyText, readMasterKeys } from './master-key.ts';

/** The permission bits of all users other than the owner. */
const FOREIGN_ACCESS = 0o077;
/** The name of a file that has not been renamed to `master-key` yet. Copies that the operator made have other names. */
const UNFINISHED_FILE_NAME = /^master-key\.[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export class MasterKeyFile implements MasterKeySource {
  readonly #folder: string;
  readonly #path: string;

  constructor(dataDir: string) {
    this.#folder = dataDir;
    this.#path = join(dataDir, 'master-key');
  }

  get name(): string {
    return this.#path;
  }

  async read({ isFirst }: { readonly isFirst: boolean }): Promise<readonly MasterKey[]> {
    const existingKeys = await this.#readExisting();
    if (existingKeys) return existingKeys;
    if (!isFirst) throw missingFileFault(this.#path);
    // If two processes create the file at once, both use the same key: link(2) fails if the file exists.
    // If another process has replaced `master-key` meanwhile, it may have removed this temporary file as unfinished.
    const temporaryPath = await this.#write([masterKeyOf(newKey())]);
    await link(temporaryPath, this.#path).catch(error => {
      if (!hasCode(error, 'EEXIST') && !hasCode(error, 'ENOENT')) throw error;
    });
    await rm(temporaryPath, { force: true });
    await syncFolder(this.#folder);
    return this.read({ isFirst: false });
  }

  async next(): Promise<MasterKey> {
    const nextKey = masterKeyOf(newKey());
    await this.#replace([nextKey, ...(await this.read({ isFirst: false }))]);
    return nextKey;
  }

  async keepOnly(ids: ReadonlySet<string>): Promise<void> {
    const currentKeys = await this.read({ isFirst: false });
    const neededKeys = currentKeys.filter(({ id }) => ids.has(id));
    if (neededKeys.length > 0 && neededKeys.length < currentKeys.length) await this.#replace(neededKeys);
  }

  async #readExisting(): Promise<readonly MasterKey[] | undefined> {
    try {
      const text = await readFile(this.#path, 'utf8');
      if (((await stat(this.#path)).mode & FOREIGN_ACCESS) !== 0) throw exposedFileFault(this.#path);
      return readMasterKeys(text, this.#path);
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return undefined;
      throw error;
    }
  }

  /** Only one process at a time calls this, because its callers hold the lock on the rows of the data keys. */
  async #replace(keys: readonly MasterKey[]): Promise<void> {
    await this.#removeUnfinished();
    await rename(await this.#write(keys), this.#path);
    await syncFolder(this.#folder);
  }

  /** Removes files that a killed process did not rename. They may contain former keys. */
  async #removeUnfinished(): Promise<void> {
    for (const name of await readdir(this.#folder))
      if (UNFINISHED_FILE_NAME.test(name)) await rm(join(this.#folder, name), { force: true });
  }

  /** Writes the keys into a new file. Returns its path. */
  async #write(keys: readonly MasterKey[]): Promise<string> {
    const newPath = `${this.#path}.${crypto.randomUUID()}`;
    await writeSynced(newPath, file => file.writeFile(keys.map(key => `${masterKeyText(key)}\n`).join('')));
    giveToFolderOwner(newPath, this.#folder);
    return newPath;
  }
}

const missingFileFault = (path: string): Fault =>
  new Fault(
    'master_key_missing',
    `${path} is missing, but its key is required to decrypt the data keys in the database.`,
    {
      advice:
        'Restore the file from a backup of the data folder. Without this file, the data in the vault cannot be decrypted.',
    },
  );

const exposedFileFault = (path: string): Fault =>
  new Fault('master_key_unusable', `${path} is accessible to users other than its owner.`, {
    advice: `Run chmod 600 ${path}.`,
  });
