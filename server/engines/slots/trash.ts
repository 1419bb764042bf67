// Removes session folders in the background. A folder is moved to the trash at once, so that the end of a session does
// not wait for the removal of its files. The next start removes what a killed server left behind.
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
  #hasNew = false;

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
    this.#hasNew = true;
    this.#empty();
  }

  /** Resolves when everything taken so far is removed. */
  async close(): Promise<void> {
    while (this.#emptying) await this.#emptying;
  }

  #empty(): void {
    this.#emptying ??= this.#removeAll().finally(() => {
      this.#emptying = undefined;
      // The last list may have been read before the folder was moved, although it arrived afterwards.
      if (this.#hasNew) this.#empty();
    });
  }

  /** Folders that could not be removed are tried again with the next folder, and at the next start. */
  async #removeAll(): Promise<void> {
    const failedNames = new Set<string>();
    const findNext = async (): Promise<string | undefined> => {
      this.#hasNew = false;
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
