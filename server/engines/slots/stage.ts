// Form `root`: the box's user may lack access to a parent of a mounted path (a project under /root, a data folder with mode
// 0700). Such folders and files are bind-mounted on fixed mount points, inside the box's own mount namespace.
import { chmodSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { STAGE, STAGED_SESSION, type StagedMount } from './chain.ts';
import type { Program } from './slots.ts';

const OTHERS_MAY_READ = 0o004;
const OTHERS_MAY_ENTER = 0o001;

/** Called once at start. Only root can write to /run. The folders stay empty and are only used as mount points. */
export function makeStage(stage = STAGE, stagedSession = STAGED_SESSION): void {
  mkdirSync(stage, { recursive: true, mode: 0o711 });
  // The umask of this server, or of an earlier one, may have removed the permission that the box's user needs.
  if ((statSync(stage).mode & OTHERS_MAY_ENTER) === 0) chmodSync(stage, 0o711);
  mkdirSync(stagedSession, { recursive: true, mode: 0o700 });
}

export async function stageMounts(program: Program): Promise<readonly StagedMount[]> {
  const inaccessibleMounts = [];
  for (const mount of program.mounts) if (!(await isOpenToAll(mount.from))) inaccessibleMounts.push(mount);
  return Promise.all(
    inaccessibleMounts.map(async (mount, index) => ({ ...mount, mountPoint: await mountPoint(mount.from, index) })),
  );
}

/** A folder needs a folder as its mount point, and a file needs a file. */
async function mountPoint(from: string, index: number): Promise<string> {
  if ((await stat(from)).isDirectory()) {
    const folder = `${STAGE}/folder-${index}`;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    return folder;
  }
  const file = `${STAGE}/file-${index}`;
  writeFileSync(file, '', { mode: 0o600 });
  return file;
}

async function isOpenToAll(path: string): Promise<boolean> {
  const stats = await stat(path);
  const neededMode = stats.isDirectory() ? OTHERS_MAY_READ | OTHERS_MAY_ENTER : OTHERS_MAY_READ;
  if ((stats.mode & neededMode) !== neededMode) return false;
  for (let folder = dirname(path); folder !== '/'; folder = dirname(folder))
    if (((await stat(folder)).mode & OTHERS_MAY_ENTER) === 0) return false;
  return true;
}
