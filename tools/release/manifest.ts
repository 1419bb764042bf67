// package.json of a release: only the packages that the compiled program imports, the command `berth`, and the commit.
// The packages are in the tarball (`bundleDependencies`), because npm ignores the lock file of a tarball that is not
// from a registry.
import { importsOf } from '../imports.ts';

/** The members of the repository's package.json that are used here. */
export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly license: string;
  readonly engines: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly optionalDependencies: Readonly<Record<string, string>>;
}

/** Names of the packages whose values these sources import. */
export function packagesOf(sources: Iterable<string>): Set<string> {
  const names = new Set<string>();
  for (const source of sources)
    for (const { specifier, isTypeOnly } of importsOf(source))
      if (!isTypeOnly && !/^(\.|node:)/.test(specifier)) names.add(nameOf(specifier));
  return names;
}

const nameOf = (specifier: string): string =>
  specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');

/**
 * The dependencies with these names, in the order of the repository's package.json.
 * @throws if a package is not pinned there.
 */
export function pinnedDependencies(repositoryManifest: Manifest, names: ReadonlySet<string>): Record<string, string> {
  const unpinnedNames = [...names].filter(name => !(name in repositoryManifest.dependencies));
  if (unpinnedNames.length > 0)
    throw new Error(`package.json must pin these packages in its dependencies: ${unpinnedNames.join(', ')}`);
  return Object.fromEntries(Object.entries(repositoryManifest.dependencies).filter(([name]) => names.has(name)));
}

/** We do not import `bufferutil`, but `ws` uses it if it is installed. */
const INDIRECT_PACKAGES = ['bufferutil'];

export function manifestOf(repositoryManifest: Manifest, sources: Iterable<string>, commit: string): Manifest & object {
  const { name, version, description, license, engines, optionalDependencies } = repositoryManifest;
  const dependencies = pinnedDependencies(repositoryManifest, new Set([...packagesOf(sources), ...INDIRECT_PACKAGES]));
  return {
    name,
    version,
    commit,
    description,
    license,
    private: true,
    type: 'module',
    bin: { berth: 'cli/berth.js' },
    engines,
    dependencies,
    bundleDependencies: Object.keys(dependencies),
    optionalDependencies,
  } as Manifest;
}
