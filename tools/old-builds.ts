// Removes builds that are no longer needed from a folder in which each complete build is named after the digest of its
// sources. Other processes may build, rename and remove builds in this folder at the same time.
import { existsSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';

const COMPLETE = /^[0-9a-f]{16}$/;
/** The folder of a build that is being made. */
const UNFINISHED = /^(making-|[0-9a-f]{16}\.)/;
/** A build takes a minute. One that is unfinished after this time was killed. */
const UNFINISHED_MS_MAX = 86_400_000;

/**
 * Keeps the current build, those in use, and the `kept` newest others, because a process may be about to load one.
 * `isInUse` gets the path of a build.
 */
export function removeOldBuilds(
  folder: string,
  current: string,
  kept: number,
  isInUse: (path: string) => boolean = () => false,
): void {
  const others = readdirSync(folder)
    .filter(name => name !== current)
    .map(name => ({ name, path: join(folder, name), changedMs: changedMs(join(folder, name)) }));
  const complete = others
    .filter(({ name }) => COMPLETE.test(name))
    .toSorted((one, other) => other.changedMs - one.changedMs);
  const killed = others.filter(
    ({ name, changedMs }) => UNFINISHED.test(name) && changedMs < Date.now() - UNFINISHED_MS_MAX,
  );
  const unneeded = complete.slice(kept).filter(({ path }) => !isInUse(path));
  for (const { path } of [...unneeded, ...killed]) rmSync(path, { recursive: true, force: true });
}

/** Removes the files, at any depth of the folder, that were written longer ago than this. */
export function removeOldFiles(folder: string, keptMs: number): void {
  if (!existsSync(folder)) return;
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile() && changedMs(path) < Date.now() - keptMs) rmSync(path, { force: true });
  }
}

/** 0 if another process has removed it in the meantime. */
const changedMs = (path: string): number => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
