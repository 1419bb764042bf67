// The folder of a running backup: hidden in the data folder, locked, and removed at the end. It contains hard links to
// the files that are copied.
import { randomUUID } from 'node:crypto';
import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { BACKUP_FOLDER_PREFIX, isBackupFolder, LINKING_PREFIX } from '../engines/artifacts/backup-links.ts';
import { lockDataFolder } from '../engines/store/data-folder.ts';
import { isFault } from '../kit/fault.ts';
import { giveToFolderOwner } from '../kit/folder-owner.ts';
import { type Closeable, Scope } from '../kit/scope.ts';

const LOCK_TIMEOUT_MS = 5_000;
const LOCK_ATTEMPTS_MAX = 3;
/** The removal is retried, because another process may add a link to the folder while it is being removed. */
const REMOVE_OPTIONS = { recursive: true, force: true, maxRetries: 5 } as const;

export class BackupFolder {
  readonly #dataDir: string;
  readonly #scope = new Scope();
  #path: string;

  private constructor(dataDir: string, path: string, lock: Closeable) {
    this.#dataDir = dataDir;
    this.#path = path;
    this.#scope.own(lock);
    this.#scope.defer(() => rm(this.#path, REMOVE_OPTIONS));
  }

  /**
   * Creates the folder, and removes those of killed backups. From now on, other processes link in it the files that
   * they remove.
   */
  static async create(dataDir: string): Promise<BackupFolder> {
    await removeAbandonedBackupFolders(dataDir);
    const { path, lock } = await lockNewFolder(dataDir);
    return new BackupFolder(dataDir, path, lock);
  }

  get path(): string {
    return this.#path;
  }

  /** Creates a folder for links, with its parents. */
  make(folder: string): Promise<void> {
    return makeOwned(this.#dataDir, join(this.#path, folder));
  }

  /** Call when everything is linked. Files that are removed afterwards are no longer linked. */
  async endLinking(): Promise<void> {
    const path = join(this.#dataDir, `${BACKUP_FOLDER_PREFIX}${randomUUID()}`);
    await rename(this.#path, path);
    this.#path = path;
  }

  close(): Promise<void> {
    return this.#scope.close();
  }
}

export async function removeAbandonedBackupFolders(dataDir: string): Promise<void> {
  for (const name of await readdir(dataDir)) if (isBackupFolder(name)) await removeIfAbandoned(join(dataDir, name));
}

/** Creates a folder that belongs to the owner of the data folder, whose server adds links to it. */
async function makeOwned(dataDir: string, folder: string): Promise<void> {
  const firstFolder = await mkdir(folder, { recursive: true, mode: 0o700 });
  for (let at = folder; firstFolder !== undefined && at.length >= firstFolder.length; at = dirname(at))
    giveToFolderOwner(at, dataDir);
}

/**
 * The lock, unlike a process id, also shows in another container that the backup is still running. Tries again if
 * another backup mistook the new folder for one of a killed backup before the folder was locked.
 */
async function lockNewFolder(dataDir: string, attemptsLeft = LOCK_ATTEMPTS_MAX) {
  const path = join(dataDir, `${LINKING_PREFIX}${randomUUID()}`);
  try {
    await makeOwned(dataDir, path);
    return { path, lock: await lockDataFolder(path, { waitMs: LOCK_TIMEOUT_MS, role: 'command' }) };
  } catch (error) {
    await rm(path, REMOVE_OPTIONS).catch(() => {});
    if (attemptsLeft <= 1 || !isFault(error, 'data_folder_unusable')) throw error;
    return lockNewFolder(dataDir, attemptsLeft - 1);
  }
}

async function removeIfAbandoned(path: string): Promise<void> {
  // A Fault means that the backup is running, or that another backup has just removed the folder.
  const lock = await lockDataFolder(path, { waitMs: 0, role: 'command' }).catch(error => {
    if (!isFault(error)) throw error;
  });
  if (!lock) return;
  try {
    await rm(path, REMOVE_OPTIONS);
  } finally {
    await lock.close();
  }
}
