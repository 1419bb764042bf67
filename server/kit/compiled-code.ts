// The cache of compiled code. A process uses it after `enableCompileCache`. A thread with its own environment needs a
// variable that names the cache. Without the cache, each thread would load Node's type stripper, which takes 17 MiB and
// 35 ms.
import { enableCompileCache, getCompileCacheDir } from 'node:module';
import { dirname } from 'node:path';

let threadsFolder: string | undefined;

/**
 * Caches compiled code in this folder. With `isForThreadsOnly`, this process itself does not use the cache, because
 * Node would keep the cached code in memory for as long as the process runs.
 */
export function cacheCompiledCode(folder: string, { isForThreadsOnly = false } = {}): void {
  threadsFolder = folder;
  if (!isForThreadsOnly) enableCompileCache(folder);
}

/** Returns the environment variables that make a thread use the cache; empty if there is no cache. */
export function compiledCodeEnv(): Readonly<Record<string, string>> {
  // Node keeps the files in a subfolder for its version, inside the folder that was set.
  const versionFolder = getCompileCacheDir();
  const folder = versionFolder === undefined ? threadsFolder : dirname(versionFolder);
  return folder === undefined ? {} : { NODE_COMPILE_CACHE: folder };
}
