// Bundles the server for `npm start` and the suite. Loading 2,400 modules would take most of the start time, and 40 MiB
// of memory. Our own files and three libraries with many modules become a few files. Everything else stays in
// node_modules. The code from each source file still has the path of that file, so it finds the files beside the
// source, and its worker threads run from the source. A bundle is kept under the digest of its sources.
import { createHash } from 'node:crypto';
import { existsSync, globSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Plugin } from 'vite';
import { removeOldBuilds, removeOldFiles } from './old-builds.ts';

const ROOT = dirname(import.meta.dirname);
const BUNDLES_FOLDER = join(ROOT, '.berth/bundles');
/** Where `cli/berth.ts` keeps compiled code. */
const COMPILED_FOLDER = join(ROOT, '.berth/compiled');
/** Every bundle adds files to `COMPILED_FOLDER`. A file that was removed too early is compiled again. */
const COMPILED_KEPT_MS = 7 * 86_400_000;
const SOURCE_GLOBS = [
  '{server,cli,contract,sdk}/**/*.ts',
  'tests/harness/*.ts',
  'tools/bundle-server.ts',
  'package-lock.json',
];
/**
 * The entry points of the bundle: the server and commands as programs, modules that these programs load, and commands
 * that run in the test's own process.
 */
const ENTRIES = {
  berth: 'cli/berth.ts',
  run: 'cli/run.ts',
  'serve-with-clock': 'tests/harness/serve-with-clock.ts',
  'watch-responses': 'tests/harness/watch-responses.ts',
};
const BUNDLED_LIBRARIES = /^(typebox|kysely|jose)(\/|$)/;
/** The number of other bundles to keep, because another run may be about to use one. */
const OTHER_BUNDLES_KEPT = 2;
/** This file reads the query of its own URL, so its `import.meta.url` must not be replaced. */
const OWN_URL_READER = 'watch-responses.ts';

/** Resolves with the folder of the bundle, which has a `.mjs` file for each entry. */
export async function bundleServer(): Promise<string> {
  const digest = digestOfSources();
  const folder = join(BUNDLES_FOLDER, digest);
  if (existsSync(folder)) return folder;
  await bundle(folder);
  // Bundles in use are kept, because a server loads some files of its bundle only when it needs them.
  removeOldBuilds(BUNDLES_FOLDER, digest, OTHER_BUNDLES_KEPT, isInUse);
  removeOldFiles(COMPILED_FOLDER, COMPILED_KEPT_MS);
  return folder;
}

/** Whether a process runs from the bundle in this folder. */
function isInUse(folder: string): boolean {
  return globSync('/proc/[0-9]*/cmdline').some(file => {
    try {
      return readFileSync(file, 'utf8').includes(`${folder}/`);
    } catch {
      return false; // The process has ended.
    }
  });
}

async function bundle(folder: string): Promise<void> {
  // Imported only here, because Vite takes a long time to load.
  const { build } = await import('vite');
  const stagingFolder = `${folder}.${process.pid}`;
  mkdirSync(BUNDLES_FOLDER, { recursive: true });
  await build({
    root: ROOT,
    configFile: false,
    logLevel: 'error',
    plugins: [{ name: 'places-of-sources', enforce: 'pre', transform: insertSourceLocations }, NODE_HTTP_PLUGIN],
    ssr: { noExternal: [BUNDLED_LIBRARIES], target: 'node' },
    build: {
      ssr: true,
      target: 'node24',
      minify: false,
      outDir: stagingFolder,
      emptyOutDir: true,
      rolldownOptions: {
        input: ENTRIES,
        output: {
          entryFileNames: '[name].mjs',
          chunkFileNames: '[name]-[hash].mjs',
          keepNames: true,
          comments: false,
          charset: 'ascii', // One non-ASCII character would double the memory that the text of a file takes.
        },
      },
    },
  });
  try {
    renameSync(stagingFolder, folder);
  } catch (error) {
    // The error is ignored if another run has made the bundle first.
    if (!existsSync(folder)) throw error;
    rmSync(stagingFolder, { recursive: true, force: true });
  }
}

/** Replaces the expressions by which a file finds its own location with the location of its source. */
function insertSourceLocations(code: string, path: string): string | undefined {
  if (!path.startsWith(`${ROOT}/`) || path.includes('/node_modules/') || path.endsWith(OWN_URL_READER))
    return undefined;
  return code
    .replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href))
    .replaceAll('import.meta.dirname', JSON.stringify(dirname(path)));
}

/**
 * An `import` of `node:http` reads all its exports. Some of them load the web client that is built into Node (undici),
 * whose code takes 2.6 MiB and is not used.
 */
const NODE_HTTP_PLUGIN: Plugin = {
  name: 'without-http-clients',
  enforce: 'pre',
  resolveId: id => (id === 'node:http' ? HTTP_MODULE : undefined),
  load: id => (id === HTTP_MODULE ? HTTP_SOURCE : undefined),
};
const HTTP_MODULE = '\0node-http';
const HTTP_EXPORTS = ['Agent', 'createServer', 'request', 'Server', 'ServerResponse', 'STATUS_CODES'];
const HTTP_SOURCE = `export const { ${HTTP_EXPORTS.join(', ')} } = process.getBuiltinModule('node:http');`;

function digestOfSources(): string {
  // ROOT is included, because the bundle contains the full paths of its sources.
  const hash = createHash('sha256').update(ROOT);
  for (const path of globSync(SOURCE_GLOBS, { cwd: ROOT }).sort())
    hash.update(path).update(readFileSync(join(ROOT, path)));
  return hash.digest('hex').slice(0, 16);
}

if (import.meta.main) process.stdout.write(`${join(await bundleServer(), 'berth.mjs')}\n`);
