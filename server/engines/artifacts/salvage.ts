// Files of ended sessions that are moved out of the box before it is removed. They are only renamed, so that the end of
// a session does not wait for them. They are read and stored later. Paths are <session>/<name>.
import { chmod, chown, lstat, mkdir, readdir, rename, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { hasCode, makeFolder, syncFolder } from '../../kit/durable.ts';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export class SalvagedFiles {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async open(folder: string): Promise<SalvagedFiles> {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return new SalvagedFiles(folder);
  }

  /**
   * Moves regular files with these names out of a folder that is no longer used by any process. Safe to repeat. Other
   * files, and files with several hard links, stay and are removed with the box. Returns the number of moved files.
   */
  async moveIn(session: string, sourceFolder: string, names: readonly string[]): Promise<number> {
    const sessionFolder = this.#folderOf(session);
    let movedCount = 0;
    for (const name of names) {
      const path = join(sourceFolder, name);
      const stats = await lstat(path).catch(ignoreAbsent);
      if (!UUID.test(name) || !stats?.isFile() || stats.nlink !== 1) continue;
      await makeFolder(sessionFolder);
      await rename(path, join(sessionFolder, name));
      await this.#takeOwnership(join(sessionFolder, name));
      movedCount += 1;
    }
    if (movedCount > 0) await syncFolder(sessionFolder);
    return movedCount;
  }

  /** Returns the ids of the sessions that have salvaged files. */
  async sessions(): Promise<readonly string[]> {
    return (await readdir(this.#folder)).filter(name => UUID.test(name));
  }

  async namesOf(session: string): Promise<readonly string[]> {
    return (await readdir(this.#folderOf(session)).catch(ignoreAbsent)) ?? [];
  }

  pathOf(session: string, name: string): string {
    if (!UUID.test(name)) throw new Error(`${JSON.stringify(name)} is not the name of a salvaged file`);
    return join(this.#folderOf(session), name);
  }

  async remove(session: string, name: string): Promise<void> {
    await rm(this.pathOf(session, name), { force: true });
  }

  /** Removes the folder of a session. It must be empty. */
  async removeFolder(session: string): Promise<void> {
    await rmdir(this.#folderOf(session)).catch(ignoreAbsent);
  }

  #folderOf(session: string): string {
    if (!UUID.test(session)) throw new Error(`${JSON.stringify(session)} is not a session id`);
    return join(this.#folder, session);
  }

  /** Makes the file accessible. It belongs to the user of the box, who may have removed all permissions from it. */
  async #takeOwnership(path: string): Promise<void> {
    if (process.getuid?.() === 0) await chown(path, 0, process.getgid?.() ?? 0);
    await chmod(path, 0o600);
  }
}

function ignoreAbsent(error: unknown): undefined {
  if (!hasCode(error, 'ENOENT') && !hasCode(error, 'ENOTDIR')) throw error;
}
