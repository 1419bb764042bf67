// Removes session folders in the background. A folder is moved to the trash at once, so that the end of a session does
// not wait for the removal of its files. The next server removes the folders that a killed server left in the trash.
import { existsSync, mkdirSync } from 'node:fs';
import { readdir, rename } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { reason } from '../../kit/fault.ts';
import type { Log } from '../../kit/log.ts';
import { removeFolder } from './remove-folder.ts';

export class Trash {
  readonly #folder: string;
  readonly #log: Log;
  readonly #list: (folder: string) => Promise<readonly string[]>;
  #emptying: Promise<void> | undefined;
  /** Whether a folder was taken after the trash was last listed. */
  #hasNewFolder = false;

  constructor(dataDir: string, log: Log, list: (folder: string) => Promise<readonly string[]> = path => readdir(path)) {
    this.#folder = join(dataDir, 'trash');
    this.#log = log;
    this.#list = list;
    if (existsSync(this.#folder)) this.#empty();
  }

  /**
   * Moves the folder to the trash; its path is free when this returns. Call after every process of the box has ended.
   */
  async take(path: string): Promise<void> {
    if (!existsSync(path)) return;
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    // Session ids are unique, so the name is free in the trash.
    await rename(path, join(this.#folder, basename(path))).catch(() => removeFolder(path));
    this.#hasNewFolder = true;
    this.#empty();
  }

  /** Resolves when all folders that have been taken so far are removed. */
  async close(): Promise<void> {
    while (this.#emptying) await this.#emptying;
  }

  #empty(): void {
    this.#emptying ??= this.#removeAll().finally(() => {
      this.#emptying = undefined;
      // A folder that is moved to the trash while the trash is being listed may be missing from the list.
      if (this.#hasNewFolder) this.#empty();
    });
  }

  /**
   * Removes all folders in the trash. If a folder cannot be removed, this is tried again when the next folder is taken,
   * and at the next start.
   */
  async #removeAll(): Promise<void> {
    const failedNames = new Set<string>();
    const findNext = async (): Promise<string | undefined> => {
      this.#hasNewFolder = false;
      return (await this.#list(this.#folder).catch(() => [])).find(name => !failedNames.has(name));
    };
    for (let name = await findNext(); name !== undefined; name = await findNext())
      try {
        await removeFolder(join(this.#folder, name));
      } catch (error) {
        failedNames.add(name);
        this.#log.error('trash.not_removed', { name, reason: reason(error) });
      }
  }
}
