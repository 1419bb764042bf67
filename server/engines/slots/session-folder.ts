// The folder of one session: notes (written by the server), uploads (written by the server, read-only in the box) and
// box (untrusted). This class creates the folder, reads it after a restart, and removes it.
import { existsSync } from 'node:fs';
import { chmod, chown, lstat, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Remains } from './slots.ts';
import type { Trash } from './trash.ts';

/** The data that a restarted server needs in addition to the box's record. */
export interface BoxNotes {
  readonly egressPort: number;
  readonly cgroupFolders: readonly string[];
}

export class SessionFolder {
  readonly path: string;
  readonly #trash: Trash;

  constructor(sessionsDir: string, session: string, trash: Trash) {
    this.path = join(sessionsDir, session);
    this.#trash = trash;
  }

  get notes(): string {
    return join(this.path, 'notes');
  }
  get uploads(): string {
    return join(this.path, 'uploads');
  }
  get box(): string {
    return join(this.path, 'box');
  }
  get fifoIn(): string {
    return join(this.notes, 'in');
  }
  get fifoOut(): string {
    return join(this.notes, 'out');
  }

  exists(): boolean {
    return existsSync(this.path);
  }

  /** Throws if the folder exists. `uid` is the user id of the box's processes, if it differs from the server's. */
  async make(uid: number | undefined): Promise<void> {
    await mkdir(this.path, { mode: 0o711 });
    // `mkdir` applies the umask, which may remove permissions that the user of the box needs.
    await chmod(this.path, 0o711);
    const results = await Promise.allSettled([
      mkdir(this.notes, { mode: 0o700 }),
      this.#makeUploads(),
      this.#makeBox(uid),
    ]);
    const failure = results.find(part => part.status === 'rejected');
    if (!failure) return;
    await this.remove();
    throw failure.reason;
  }

  async #makeUploads(): Promise<void> {
    await mkdir(this.uploads);
    await chmod(this.uploads, 0o755);
  }

  async #makeBox(uid: number | undefined): Promise<void> {
    await mkdir(this.box, { mode: 0o700 });
    if (uid !== undefined) await chown(this.box, uid, uid);
  }

  async writeNotes(notes: BoxNotes): Promise<void> {
    await writeFile(join(this.notes, 'box.json'), JSON.stringify(notes), { mode: 0o600 });
  }

  async readNotes(): Promise<BoxNotes | undefined> {
    const text = await readFile(join(this.notes, 'box.json'), 'utf8').catch(() => undefined);
    return text === undefined ? undefined : parseNotes(text);
  }

  /** Returns the remains of the box. The owner of the box's folder is the box's user. */
  async remains(): Promise<Remains> {
    const uid = (await lstat(this.box).catch(() => undefined))?.uid;
    return { folder: this.box, uploads: this.uploads, uid: uid === process.getuid?.() ? undefined : uid };
  }

  /** Call after every process of the box has ended. The files are removed in the background. */
  remove(): Promise<void> {
    return this.#trash.take(this.path);
  }
}

export const listSessionsOnDisk = (sessionsDir: string): Promise<readonly string[]> =>
  readdir(sessionsDir).catch(() => []);

function parseNotes(text: string): BoxNotes | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null) return undefined;
    const { egressPort, cgroupFolders } = value as Partial<Record<keyof BoxNotes, unknown>>;
    if (typeof egressPort !== 'number' || !Array.isArray(cgroupFolders)) return undefined;
    return { egressPort, cgroupFolders: cgroupFolders.filter(folder => typeof folder === 'string') };
  } catch {
    return undefined;
  }
}
