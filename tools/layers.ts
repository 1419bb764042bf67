// Checks the import rules of ARCHITECTURE.md. An import is judged by the importing file, the imported file or package,
// and whether only types are imported.
import { posix } from 'node:path';
import { importsOf } from './imports.ts';
import { isCode, type SourceFile, type Violation } from './source-files.ts';

interface FileLocation {
  readonly layer: Layer;
  /** The engine, domain or entry folder, if the layer has such folders. */
  readonly folder?: string;
}

type Layer =
  | 'contract'
  | 'kit'
  | 'engines'
  | 'domain'
  | 'entry'
  | 'config'
  | 'wiring'
  | 'sdk'
  | 'cli'
  | 'console'
  | 'unit test'
  | 'acceptance'
  | 'tests'
  | 'tools'
  | 'bench'
  | 'elsewhere';

/** One row of the table of import rules: which of our files and which npm packages a file of this layer may import. */
interface Rule {
  readonly values: readonly Layer[];
  readonly types?: readonly Layer[];
  /** `undefined`: any package may be imported. */
  readonly packages?: readonly string[];
  readonly node: boolean;
  readonly remedy: string;
}

const SERVER_LAYERS: readonly Layer[] = ['contract', 'kit', 'engines', 'domain', 'entry', 'config', 'wiring'];

const RULES: Readonly<Record<Layer, Rule>> = {
  contract: {
    values: ['contract'],
    packages: ['typebox'],
    node: false,
    remedy:
      'contract/ describes the API, and may import only TypeBox and itself. Move the code to the module that implements it.',
  },
  kit: { values: ['kit'], packages: [], node: true, remedy: 'all layers import kit, so kit may import only Node.' },
  config: {
    values: ['kit'],
    packages: [],
    node: true,
    remedy: 'config.ts parses settings, and may import only kit.',
  },
  engines: {
    values: ['kit'],
    node: true,
    remedy:
      'an engine wraps one external component, and may import only kit: take what you need as a parameter, and let the wiring pass it.',
  },
  domain: {
    values: ['contract', 'kit', 'domain'],
    types: ['engines'],
    packages: ['typebox'],
    node: true,
    remedy:
      'the domain may import engines with `import type` only, and never an entry: take the instance as a parameter.',
  },
  entry: {
    values: ['contract', 'kit', 'domain'],
    node: true,
    remedy:
      'an entry turns requests into calls of the domain. Let the domain offer what the entry needs from an engine or another entry.',
  },
  wiring: {
    values: SERVER_LAYERS,
    node: true,
    remedy: 'the wiring may import the whole server, and nothing outside it.',
  },
  sdk: { values: ['sdk', 'contract'], node: true, remedy: 'the SDK is a client: it may import only the contract.' },
  cli: {
    values: ['cli', 'sdk', 'contract', 'kit'],
    node: true,
    remedy:
      'the CLI is a client. Of the server, its operator commands may import only main.ts, local.ts, examine.ts, leftovers.ts, backup.ts, restore.ts, server-record.ts and config.ts.',
  },
  console: {
    values: ['console'],
    types: ['contract'],
    node: false,
    remedy:
      'the console is a client that runs in a browser: it may import packages, the verification of receipts in sdk/, and types of the contract. tools/build-console.ts inserts the values of the contract that it needs.',
  },
  'unit test': {
    values: [...SERVER_LAYERS, 'cli', 'console', 'tools', 'sdk', 'tests'],
    node: true,
    remedy: 'a unit test imports the code it tests and tests/harness.',
  },
  acceptance: {
    values: ['acceptance', 'tests', 'sdk', 'contract'],
    node: true,
    remedy:
      'tests/acceptance runs against any address, so it never imports the server. Put code that starts a server into tests/harness.',
  },
  tests: {
    values: [...SERVER_LAYERS, 'tests', 'sdk', 'cli', 'tools'],
    node: true,
    remedy: 'tests/ may use anything but another suite.',
  },
  tools: {
    values: ['tools', 'contract', 'config', 'cli', 'engines', 'kit'],
    node: true,
    remedy:
      'a tool may import the contract, the settings, the CLI, engines and the kit, but no other part of the server.',
  },
  bench: {
    values: [...SERVER_LAYERS, 'bench', 'sdk', 'tests', 'tools'],
    node: true,
    remedy: 'the bench may use the server and tests/harness.',
  },
  elsewhere: { values: [], node: true, remedy: 'put the file into one of the folders that ARCHITECTURE.md names.' },
};

/**
 * Files directly in server/ and in server/wiring/: the server itself, and the parts that the operator's commands use.
 */
const WIRING_FILES_PATTERN = /^server\/(?:wiring\/)?[\w.-]+\.ts$/;
/** The files of the server that the CLI may import. */
const CLI_IMPORTABLE_FILES_PATTERN = /^server\/(main|local|examine|leftovers|backup|restore|server-record|config)\.ts$/;

/** Files of the SDK that the console imports, and the files that these import: they run in a browser, without Node. */
const BROWSER_FILES = /^sdk\/(verify-receipt-in-browser|receipt-rules|approval-rules|canonical-json|base64url)\.ts$/;

export function locationOf(path: string): FileLocation {
  if (path.startsWith('tests/')) return { layer: path.startsWith('tests/acceptance/') ? 'acceptance' : 'tests' };
  if (path.endsWith('.test.ts')) return { layer: 'unit test' };
  if (path === 'server/config.ts') return { layer: 'config' };
  if (WIRING_FILES_PATTERN.test(path)) return { layer: 'wiring' };
  const [top, second, third] = path.split('/');
  if (top === 'server') {
    if (second === 'kit') return { layer: 'kit' };
    if (second === 'engines' || second === 'domain' || second === 'entry')
      return { layer: second, folder: path.split('/').length > 3 ? (third ?? '') : '' };
    return { layer: 'elsewhere' };
  }
  if (top === 'contract' || top === 'sdk' || top === 'cli' || top === 'console' || top === 'tools' || top === 'bench')
    return { layer: top };
  return { layer: 'elsewhere' };
}

/** Returns the reason why `from` may not import `specifier`, or undefined if the import is allowed. */
export function judge(from: string, specifier: string, isTypeOnly: boolean): string | undefined {
  const location = locationOf(from);
  const rule = RULES[location.layer];
  if (BROWSER_FILES.test(from) && !specifier.startsWith('./'))
    return `${from} runs in browsers: it may import only files of the SDK`;
  if (specifier.startsWith('node:')) return rule.node ? undefined : `${location.layer} may not import Node's modules`;
  if (!specifier.startsWith('.')) return judgePackage(location, rule, specifier);
  if (!/\.(tsx?|[mc]js|json|css|svg)$/.test(specifier))
    return `the import of ${specifier} does not name a file; write the path with its extension, such as .ts`;
  const target = posix.normalize(posix.join(posix.dirname(from), specifier));
  if (/\.(json|css|svg)$/.test(target)) return undefined;
  return judgeLocalImport(from, location, rule, target, isTypeOnly);
}

function judgePackage(location: FileLocation, rule: Rule, specifier: string): string | undefined {
  const name = specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
  if (rule.packages === undefined || rule.packages.includes(name)) return undefined;
  return `${location.layer} may not import the package ${name}`;
}

function judgeLocalImport(
  from: string,
  location: FileLocation,
  rule: Rule,
  target: string,
  isTypeOnly: boolean,
): string | undefined {
  const targetLocation = locationOf(target);
  if (target.endsWith('.test.ts')) return `a test file may not be imported (${target})`;
  if (target === 'server/parts.ts' && from !== 'server/main.ts' && !isTestLayer(location.layer))
    return 'only main.ts may import parts.ts';
  if (location.layer === 'cli' && CLI_IMPORTABLE_FILES_PATTERN.test(target)) return undefined;
  if (location.layer === 'console' && target === 'sdk/verify-receipt-in-browser.ts') return undefined;
  if (BROWSER_FILES.test(from) && !BROWSER_FILES.test(target))
    return `${from} runs in browsers, but ${target} does not`;
  if (targetLocation.layer === location.layer && location.folder !== undefined)
    return judgeNeighbour(location, targetLocation);
  if (rule.values.includes(targetLocation.layer)) return undefined;
  if (rule.types?.includes(targetLocation.layer))
    return isTypeOnly
      ? undefined
      : `${from} imports a value from ${target}, but may import types only (\`import type\`)`;
  return `${location.layer} may not import ${targetLocation.layer} (${target})`;
}

const isTestLayer = (layer: Layer): boolean => layer === 'unit test' || layer === 'tests' || layer === 'bench';

/** Folders of the domain may import each other. Engines and entries may not. */
function judgeNeighbour(location: FileLocation, otherLocation: FileLocation): string | undefined {
  if (location.layer === 'domain' || location.folder === otherLocation.folder) return undefined;
  return `${location.layer}/${location.folder} may not import ${otherLocation.layer}/${otherLocation.folder}: ${location.layer === 'entry' ? 'entries' : 'engines'} do not import each other`;
}

export function checkLayers(files: readonly SourceFile[]): Violation[] {
  return files
    .filter(file => isCode(file.path))
    .flatMap(file =>
      importsOf(file.text).flatMap(found => {
        const what = judge(file.path, found.specifier, found.isTypeOnly);
        if (what === undefined) return [];
        return [{ path: file.path, line: found.line, what, remedy: RULES[locationOf(file.path).layer].remedy }];
      }),
    );
}
