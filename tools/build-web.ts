// Builds the console and the docs site if their sources have changed. `npm start` and the suite use this file. A
// complete build is in a folder of .berth/web that is named after the digest of its sources. Its larger text files are
// also stored compressed. The file `current` names the build that a server loads. Concurrent builds do no harm: each is
// made in a separate folder and moved into place.
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, extname, join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { removeOldBuilds } from './old-builds.ts';
import { digestOfSources } from './web-digest.ts';

const ROOT = dirname(import.meta.dirname);
const WEB_FOLDER = join(ROOT, '.berth', 'web');
const COMPRESSED_EXTENSIONS = new Set(['.html', '.css', '.js', '.json', '.svg']);
/** Smaller files are not compressed, because that would save too little. */
const COMPRESS_BYTES_MIN = 512;
const BROTLI_QUALITY = 10;
/** The number of older builds to keep, in case a server is about to load one. */
const OLD_BUILDS_KEPT = 2;

/** Reports its progress with `report`. Resolves with the folder of the build. */
export async function buildWeb(report: (text: string) => void = () => {}): Promise<string> {
  const digest = digestOfSources(ROOT);
  const folder = join(WEB_FOLDER, digest);
  if (!existsSync(folder)) {
    report('building the web console and the docs ...');
    await build(folder);
  }
  setCurrentBuild(digest);
  removeOldBuilds(WEB_FOLDER, digest, OLD_BUILDS_KEPT);
  return folder;
}

async function build(folder: string): Promise<void> {
  // Imported only here, because Vite takes a long time to load and most calls need no build.
  const { buildConsole, buildConsumerPages, buildLiveView, buildRunner } = await import('./build-console.ts');
  const { buildDocs } = await import('./docs-site/build-docs.ts');
  const stagingFolder = join(WEB_FOLDER, `making-${randomUUID()}`);
  mkdirSync(stagingFolder, { recursive: true });
  try {
    await buildConsole(join(stagingFolder, 'console'));
    await buildRunner(join(stagingFolder, 'console', 'runner'));
    await buildLiveView(join(stagingFolder, 'live-view'));
    await buildConsumerPages(join(stagingFolder, 'consumer'));
    buildDocs(join(stagingFolder, 'docs'));
    await compressAll(stagingFolder);
    renameSync(stagingFolder, folder);
  } catch (error) {
    // The error is ignored if another process has finished the same build first.
    if (!existsSync(folder)) throw error;
  } finally {
    rmSync(stagingFolder, { recursive: true, force: true });
  }
}

async function compressAll(folder: string): Promise<void> {
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (!entry.isFile() || !COMPRESSED_EXTENSIONS.has(extname(path)) || statSync(path).size < COMPRESS_BYTES_MIN)
      continue;
    const bytes = readFileSync(path);
    writeFileSync(`${path}.gz`, await promisify(gzip)(bytes, { level: 9 }));
    const params = { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY };
    writeFileSync(`${path}.br`, await promisify(brotliCompress)(bytes, { params }));
  }
}

function setCurrentBuild(digest: string): void {
  const file = join(WEB_FOLDER, 'current');
  if (existsSync(file) && readFileSync(file, 'utf8') === digest) return;
  const temporaryFile = `${file}-${randomUUID()}`;
  writeFileSync(temporaryFile, digest);
  renameSync(temporaryFile, file);
}

if (import.meta.main) await buildWeb(text => process.stderr.write(`berth setup: ${text}\n`));
