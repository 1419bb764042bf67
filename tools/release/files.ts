// The files of a release: the compiled program, the files that it reads beside its code, the built console and docs,
// the examples in deploy/, the documents, and the packages that the program imports.
import { globSync, readFileSync, statSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import { buildWeb } from '../build-web.ts';
import { compileSource } from './compile.ts';
import type { PackedFile } from './tarball.ts';

const SOURCE_GLOBS = ['cli/**/*.ts', 'contract/**/*.ts', 'sdk/**/*.ts', 'server/**/*.ts'];
const COPIED_GLOBS = [
  'contract/generated/openapi.yaml',
  'deploy/**/*',
  'docs/**/*.md',
  'sdk/package.json',
  'server/**/*.{bpf,json,pl}',
  'LICENSE',
  'README.md',
];
const PROGRAM = 'cli/berth.ts';
/** Types and source maps: 40 MB that a program does not read. */
const DEVELOPMENT_FILES = /\.(map|d\.[mc]?ts|tsbuildinfo)$/;

/** Text of each TypeScript file, by its path. */
export function readSources(root: string): Map<string, string> {
  const paths = filesOf(root, SOURCE_GLOBS).filter(path => !/\.(test|d)\.ts$/.test(path));
  return new Map(paths.map(path => [path, readFileSync(join(root, path), 'utf8')]));
}

export async function filesOfRelease(
  root: string,
  sources: ReadonlyMap<string, string>,
): Promise<Map<string, PackedFile>> {
  const files = new Map<string, PackedFile>();
  for (const [path, text] of sources)
    files.set(path.replace(/\.ts$/, '.js'), { bytes: compileSource(text), isProgram: path === PROGRAM });
  for (const path of filesOf(root, COPIED_GLOBS)) files.set(path, readPackedFile(join(root, path)));
  const web = await buildWeb(text => process.stderr.write(`${text}\n`));
  for (const path of filesOf(web, ['**/*']))
    files.set(`.berth/web/${basename(web)}/${path}`, { bytes: readFileSync(join(web, path)) });
  files.set('.berth/web/current', { bytes: basename(web) });
  return files;
}

/**
 * The packages in the lock file, except those for one operating system only. During the installation, npm fetches those
 * for the machine.
 */
export function filesOfPackages(root: string, lock: string): Map<string, PackedFile> {
  const { packages } = JSON.parse(lock) as { packages: Record<string, { os?: unknown }> };
  const packageEntries = Object.entries(packages).filter(([path, { os }]) => path !== '' && os === undefined);
  const paths = packageEntries.flatMap(([folder]) =>
    filesOfPackage(join(root, folder)).map(path => join(folder, path)),
  );
  return new Map(paths.map(path => [path, readPackedFile(join(root, path))]));
}

/** The files of a package without its nested packages, which have their own entries in the lock file. */
const filesOfPackage = (folder: string): string[] =>
  filesOf(folder, ['**/*', '**/.*'], path => path === 'node_modules').filter(path => !DEVELOPMENT_FILES.test(path));

const readPackedFile = (path: string): PackedFile => ({
  bytes: readFileSync(path),
  isProgram: (statSync(path).mode & 0o100) !== 0,
});

function filesOf(root: string, globs: readonly string[], isExcluded = (_folder: string): boolean => false): string[] {
  return globSync(globs, { cwd: root, withFileTypes: true, exclude: entry => isExcluded(entry.name) })
    .filter(entry => entry.isFile())
    .map(entry => relative(root, join(entry.parentPath, entry.name)))
    .sort();
}
