// Files of dead sessions, moved out of their boxes before those go: renamed only, so that an end never waits for them.
// They are taken in later, and what they are is looked at then. The order of folders is session, then name.
import { chmod, chown, lstat, mkdir, readdir, rename, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isCode, makeFolder, syncFolder } from '../../kit/durable.ts';

const NAME = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export class Salvage {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async open(folder: string): Promise<Salvage> {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return new Salvage(folder);
  }

  /**
   * Moves the plain files of these names from a folder in which nothing lives any more. Safe to repeat. What is no plain
   * file with one name stays where it is, and goes with its box. Returns how many were moved.
   */
  async moveIn(session: string, from: string, names: readonly string[]): Promise<number> {
    const into = this.#folderOf(session);
    let moved = 0;
    for (const name of names) {
      const path = join(from, name);
      const found = await lstat(path).catch(ignoreAbsent);
      if (!NAME.test(name) || !found?.isFile() || found.nlink !== 1) continue;
      await makeFolder(into);
      await rename(path, join(into, name));
      await this.#adopt(join(into, name));
      moved += 1;
    }
    if (moved > 0) await syncFolder(into);
    return moved;
  }

  /** Sessions of which something was moved in. */
  async sessions(): Promise<readonly string[]> {
    return (await readdir(this.#folder)).filter(name => NAME.test(name));
  }

  async namesOf(session: string): Promise<readonly string[]> {
    return (await readdir(this.#folderOf(session)).catch(ignoreAbsent)) ?? [];
  }

  pathOf(session: string, name: string): string {
    if (!NAME.test(name)) throw new Error(`${JSON.stringify(name)} is no name of a salvaged file`);
    return join(this.#folderOf(session), name);
  }

  async remove(session: string, name: string): Promise<void> {
    await rm(this.pathOf(session, name), { force: true });
  }

  /** Once it is empty. */
  async forget(session: string): Promise<void> {
    await rmdir(this.#folderOf(session)).catch(ignoreAbsent);
  }

  #folderOf(session: string): string {
    if (!NAME.test(session)) throw new Error(`${JSON.stringify(session)} is no session`);
    return join(this.#folder, session);
  }

  /** It belonged to the box's user, who may have taken every right from it. */
  async #adopt(path: string): Promise<void> {
    if (process.getuid?.() === 0) await chown(path, 0, process.getgid?.() ?? 0);
    await chmod(path, 0o600);
  }
}

function ignoreAbsent(error: unknown): undefined {
  if (!isCode(error, 'ENOENT') && !isCode(error, 'ENOTDIR')) throw error;
}
