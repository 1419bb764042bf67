// The data folders of several processes, inside the folder of their installation. The first process uses the folder of
// the installation itself. Therefore, if a server with a single process is restarted with several processes, the first
// process continues its sessions.
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type Config, processFolder } from '../config.ts';
import { firstUid, readInstallId } from '../engines/slots/install.ts';

const TRIES_MAX = 50;

/** Creates the folders, each with a range of user ids of its own. */
export function makeFolders({ sharedDir, processes }: Pick<Config, 'sharedDir' | 'processes'>): void {
  const usedUids = new Set<number | undefined>();
  for (let number = 1; number <= processes; number += 1) {
    const folder = processFolder(sharedDir, number);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const isNew = !existsSync(join(folder, 'install-id'));
    const readUid = (): number | undefined => firstUid(readInstallId(folder));
    for (let tries = 0; isNew && tries < TRIES_MAX && usedUids.has(readUid()); tries += 1)
      rmSync(join(folder, 'install-id'));
    usedUids.add(readUid());
  }
}

/** The numbers of all processes that have a folder, except the first. */
export function numbersWithFolder(sharedDir: string): number[] {
  try {
    return readdirSync(join(sharedDir, 'processes')).flatMap(name => (/^\d{1,2}$/.test(name) ? [Number(name)] : []));
  } catch {
    return [];
  }
}
