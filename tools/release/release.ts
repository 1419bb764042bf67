// `npm run release`: makes a release of the checkout without the network, in release/ or the folder after --to:
//
//   berth-VERSION.tgz        `npm install -g ./berth-VERSION.tgz` installs the command `berth`
//   berth-VERSION.cdx.json   the npm packages in it, including those inside the console, in CycloneDX
//   SHA256SUMS               for `sha256sum --check`
//
// The build is reproducible: the same checkout and the same version of npm produce identical files.
import { createHash } from 'node:crypto';
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { changelogFor } from './changelog.ts';
import { commitOf } from './commit.ts';
import { filesOfPackages, filesOfRelease, readSources } from './files.ts';
import { type Manifest, manifestOf, packagesOf, pinnedDependencies } from './manifest.ts';
import { createBillOfMaterials, createLock } from './npm-lists.ts';
import { createTarball } from './tarball.ts';

const ROOT = dirname(dirname(import.meta.dirname));
const BILL_FILE = 'parts.cdx.json';

/** Writes the files into the folder, and resolves with the path of the tarball. */
async function release(folder: string): Promise<string> {
  const repositoryManifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Manifest;
  const commit = commitOf(ROOT);
  const sources = readSources(ROOT);
  const manifest = manifestOf(repositoryManifest, sources.values(), commit.id);
  const billText = createBillOfMaterials(ROOT, addConsoleDependencies(repositoryManifest, manifest), commit);
  const files = await filesOfRelease(ROOT, sources);
  const changelog = readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8');
  files.set('CHANGELOG.md', { bytes: changelogFor(changelog, repositoryManifest.version, commit.at) });
  files.set('package.json', { bytes: `${JSON.stringify(manifest, null, 2)}\n` });
  const lock = createLock(ROOT, manifest);
  files.set('npm-shrinkwrap.json', { bytes: lock });
  for (const [path, file] of filesOfPackages(ROOT, lock)) files.set(path, file);
  files.set(BILL_FILE, { bytes: billText });

  const name = `${manifest.name}-${manifest.version}`;
  const releaseFiles = new Map([
    [`${name}.tgz`, await createTarball(files, commit.at)],
    [`${name}.cdx.json`, Buffer.from(billText)],
  ]);
  mkdirSync(folder, { recursive: true });
  for (const [file, bytes] of releaseFiles) writeFileSync(join(folder, file), bytes);
  writeFileSync(
    join(folder, 'SHA256SUMS'),
    [...releaseFiles].map(([file, bytes]) => `${sha256(bytes)}  ${file}\n`).join(''),
  );
  return join(folder, `${name}.tgz`);
}

/** Adds the packages that are built into the console, which are parts of the release too. */
function addConsoleDependencies(repositoryManifest: Manifest, manifest: Manifest): Manifest {
  const texts = globSync('console/**/*.{ts,tsx}', { cwd: ROOT })
    .filter(path => !path.endsWith('.test.ts'))
    .map(path => readFileSync(join(ROOT, path), 'utf8'));
  const consoleDependencies = pinnedDependencies(repositoryManifest, packagesOf(texts));
  return { ...manifest, dependencies: { ...manifest.dependencies, ...consoleDependencies } };
}

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

const { values } = parseArgs({ options: { to: { type: 'string', default: join(ROOT, 'release') } } });
process.stdout.write(`${await release(resolve(values.to))}\n`);
