// Removes builds that are no longer needed from a folder in which each complete build is named after the digest of its
// sources. Other processes may build, rename and remove builds in this folder at the same time.
import { existsSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';

const COMPLETE_NAME = /^[0-9a-f]{16}$/;
/** Matches the folder name of a build that is being made. */
const UNFINISHED_NAME = /^(making-|[0-9a-f]{16}\.)/;
/** A build takes about a minute. One that is still unfinished after this time is assumed to have been killed. */
const BUILD_MS_MAX = 86_400_000;

/**
 * Keeps the current build, the builds in use, and the `keptCount` newest other builds, because a process may be about
 * to load one of these. `isInUse` gets the path of a build.
 */
export function removeOldBuilds(
  folder: string,
  currentName: string,
  keptCount: number,
  isInUse: (path: string) => boolean = () => false,
): void {
  const otherBuilds = readdirSync(folder)
    .filter(name => name !== currentName)
    .map(name => ({ name, path: join(folder, name), changedMs: changeTimeOf(join(folder, name)) }));
  const completeBuilds = otherBuilds
    .filter(({ name }) => COMPLETE_NAME.test(name))
    .toSorted((one, other) => other.changedMs - one.changedMs);
  const killedBuilds = otherBuilds.filter(
    ({ name, changedMs }) => UNFINISHED_NAME.test(name) && changedMs < Date.now() - BUILD_MS_MAX,
  );
  const unneededBuilds = completeBuilds.slice(keptCount).filter(({ path }) => !isInUse(path));
  for (const { path } of [...unneededBuilds, ...killedBuilds]) rmSync(path, { recursive: true, force: true });
}

/** Removes the files, at any depth of the folder, that were written more than `keptMs` milliseconds ago. */
export function removeOldFiles(folder: string, keptMs: number): void {
  if (!existsSync(folder)) return;
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile() && changeTimeOf(path) < Date.now() - keptMs) rmSync(path, { force: true });
  }
}

/** The time of the last change in milliseconds. 0 if another process has removed the path in the meantime. */
const changeTimeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
