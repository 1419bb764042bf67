// Bundles the server for `npm start` and the suite. 2,400 modules would take most of the time of a start, and 40 MiB.
// Our own files and three libraries with many modules become a few files; everything else stays in node_modules. The
// code from each source file still has the path of that file, so it finds the files beside the source, and its worker
// threads run from the source. A bundle is kept under the digest of its sources.
import { createHash, randomUUID } from 'node:crypto';
import { existsSync, globSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { removeOldBuilds } from './old-builds.ts';

const ROOT = dirname(import.meta.dirname);
const BUNDLES_FOLDER = join(ROOT, '.berth/bundles');
/** What `npm start` runs. It imports the bundle of the current sources. */
const PROGRAM = join(ROOT, '.berth/program.mjs');
const SOURCES = [
  '{server,cli,contract,sdk}/**/*.ts',
  'tests/harness/*.ts',
  'tools/bundle-server.ts',
  'package-lock.json',
];
/**
 * What runs from the bundle: the server and commands as programs, modules that are loaded into these, and commands
 * in the test's own process.
 */
const ENTRIES = {
  berth: 'cli/berth.ts',
  run: 'cli/run.ts',
  'serve-with-clock': 'tests/harness/serve-with-clock.ts',
  'watch-responses': 'tests/harness/watch-responses.ts',
};
const BUNDLED_LIBRARIES = /^(typebox|kysely|jose)(\/|$)/;
/**
 * The number of other bundles to keep (4 MB each). Another run may use one, and a server loads some of its files only
 * when it needs them.
 */
const OTHER_BUNDLES_KEPT = 9;
/** This file reads the query of its own URL, so its `import.meta.url` must not be replaced. */
const READS_OWN_URL = 'watch-responses.ts';

/** Resolves with the folder of the bundle, which has a `.mjs` file for each entry. */
export async function bundleServer(): Promise<string> {
  const digest = digestOfSources();
  const folder = join(BUNDLES_FOLDER, digest);
  if (!existsSync(folder)) await bundle(folder);
  removeOldBuilds(BUNDLES_FOLDER, digest, OTHER_BUNDLES_KEPT);
  return folder;
}

/** Writes the program that `npm start` runs, and resolves with its path. */
export async function buildProgram(): Promise<string> {
  const text = `import './${relative(dirname(PROGRAM), join(await bundleServer(), 'berth.mjs'))}';\n`;
  if (existsSync(PROGRAM) && readFileSync(PROGRAM, 'utf8') === text) return PROGRAM;
  const temporaryFile = `${PROGRAM}-${randomUUID()}`;
  writeFileSync(temporaryFile, text);
  renameSync(temporaryFile, PROGRAM);
  return PROGRAM;
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
    plugins: [{ name: 'places-of-sources', enforce: 'pre', transform: withSourceLocations }],
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
          charset: 'ascii', // A single other character would double the memory of the whole text of a file.
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
function withSourceLocations(code: string, path: string): string | undefined {
  if (!path.startsWith(`${ROOT}/`) || path.includes('/node_modules/') || path.endsWith(READS_OWN_URL)) return undefined;
  return code
    .replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href))
    .replaceAll('import.meta.dirname', JSON.stringify(dirname(path)));
}

function digestOfSources(): string {
  // ROOT is included, because the bundle contains the full paths of its sources.
  const hash = createHash('sha256').update(ROOT);
  for (const path of globSync(SOURCES, { cwd: ROOT }).sort()) hash.update(path).update(readFileSync(join(ROOT, path)));
  return hash.digest('hex').slice(0, 16);
}

if (import.meta.main) await buildProgram();
