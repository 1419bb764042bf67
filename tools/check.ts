// `npm run check`: all checks at once, each violation with its remedy.
// Arguments select checks: npm run check -- layers tidy
// Files that passed the compiler and the linter are recorded under .berth, and are checked again when they, or files
// that they import, have changed. `--cold` discards these records first.
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { changedPathsSince, digestOf, digestsOf, readNotes, removeNotes, writeNotes } from './changed-files.ts';
import { checkCycles } from './cycles.ts';
import { checkDecisions } from './decisions.ts';
import { checkEntrances } from './entrances.ts';
import { CLIENT_TYPES_PATH, COLUMNS_PATH, checkColumns, checkFresh, checkSettings } from './fresh.ts';
import { checkLayers } from './layers.ts';
import { checkLengths } from './lengths.ts';
import { isCode, readSourceFiles, type SourceFile, type Violation } from './source-files.ts';
import { checkTidy } from './tidy.ts';
import { checkTimers } from './timers.ts';
import { checkUnused } from './unused.ts';

const ROOT = dirname(import.meta.dirname);
const PROGRAM_MS_MAX = 300_000;
/** TypeScript's compiler is a Go program that runs briefly, so it collects garbage only near this memory limit. */
const COMPILER_ENV = { GOGC: 'off', GOMEMLIMIT: '1GiB' };
/**
 * The programs are not run through node_modules/.bin: `tsc` there may be TypeScript 6, which openapi-typescript needs.
 */
const PROGRAMS = { tsc: 'typescript/bin/tsc', biome: '@biomejs/biome/bin/biome' };
const notesPathOf = (name: string): string => join(ROOT, '.berth/checked', name);
const NOTES_PATHS = {
  types: notesPathOf('types.json'),
  console: notesPathOf('console.json'),
  compiled: notesPathOf('types-compiled.json'),
  consoleCompiled: notesPathOf('console-compiled.json'),
  lint: notesPathOf('lint.json'),
  client: notesPathOf('client.json'),
};

interface Outcome {
  readonly ok: boolean;
  /** The text to print if the check fails. */
  readonly text: string;
}

type Check = () => Promise<Outcome>;

/** Inputs of the compiler, in addition to the files that all checks read. */
const COMPILER_INPUTS = [
  'tsconfig.json',
  'console/tsconfig.json',
  'package-lock.json',
  'tools/setup.d.mts',
  CLIENT_TYPES_PATH,
  COLUMNS_PATH,
];
const isCompiled = (path: string): boolean => isCode(path) || path.endsWith('.json');
const isConsoleFile = (path: string): boolean => path.startsWith('console/');
const LINTED_FILES = /\.(tsx?|[mc]?js|json|css)$/;
const LINT_REMEDY = '`node_modules/.bin/biome check --write .` corrects the layout and most other findings.';
const TYPE_REMEDY = 'correct the types; `any`, `!` and `as` only hide the error.';

const CHECKS: Readonly<Record<string, Check>> = {
  types: () => runIfChanged(NOTES_PATHS.compiled, COMPILER_INPUTS, isCompiled, () => compile('.', NOTES_PATHS.types)),
  console: () =>
    runIfChanged(NOTES_PATHS.consoleCompiled, COMPILER_INPUTS, isConsoleFile, () =>
      compile('console', NOTES_PATHS.console),
    ),
  lint,
  layers: async () => outcomeOf(checkLayers(sourceFiles())),
  cycles: async () => outcomeOf(checkCycles(sourceFiles())),
  entrances: async () => outcomeOf(checkEntrances(sourceFiles())),
  timers: async () => outcomeOf(checkTimers(sourceFiles())),
  unused: async () => outcomeOf(checkUnused(sourceFiles())),
  lengths: async () => outcomeOf(checkLengths(sourceFiles())),
  decisions: async () => outcomeOf(checkDecisions(sourceFiles())),
  tidy: async () => outcomeOf(checkTidy(sourceFiles())),
  settings: async () => outcomeOf(checkSettings(read('docs/operating.md'))),
  fresh: async () => {
    const { generatedFiles } = await import('./generated-files.ts');
    return outcomeOf([...checkFresh(ROOT, await generatedFiles()), ...checkColumns(ROOT)]);
  },
  client: checkClientTypes,
};

let files: readonly SourceFile[] | undefined;

/** Read once for all checks. */
function sourceFiles(): readonly SourceFile[] {
  files ??= readSourceFiles(ROOT);
  return files;
}

/** Uses a single checker, because several would each compute the same types. */
function compile(project: string, buildInfo: string): Promise<Outcome> {
  const incrementalArgs = ['--incremental', '--tsBuildInfoFile', buildInfo];
  const args = ['-p', project, '--pretty', 'false', '--checkers', '1', ...incrementalArgs];
  return runProgram('tsc', args, TYPE_REMEDY, COMPILER_ENV);
}

function lint(): Promise<Outcome> {
  const inputs = ['biome.json', 'package-lock.json'];
  const check = (changed: readonly string[]) => runProgram('biome', ['ci', '--colors=off', ...changed], LINT_REMEDY);
  return runIfChanged(NOTES_PATHS.lint, inputs, path => LINTED_FILES.test(path), check);
}

/**
 * Runs a check on the files that it concerns, but only on those that have changed, or import a changed file, since the
 * check last passed. If the changes are not known or one of the files was removed, runs the check on `.`.
 */
async function runIfChanged(
  file: string,
  inputs: readonly string[],
  isConcerned: (path: string) => boolean,
  run: (changed: readonly string[]) => Promise<Outcome>,
): Promise<Outcome> {
  const allFiles = sourceFiles();
  const inputsDigest = digestOf(inputs.map(read).join());
  const earlierNotes = readNotes(file);
  const paths = new Set(allFiles.map(({ path }) => path));
  const isRemoved = (path: string): boolean => isConcerned(path) && !paths.has(path);
  const areNotesValid = earlierNotes?.of === inputsDigest && !Object.keys(earlierNotes.files).some(isRemoved);
  const changedPaths = areNotesValid ? changedPathsSince(allFiles, earlierNotes.files).filter(isConcerned) : ['.'];
  if (changedPaths.length === 0) return { ok: true, text: '' };
  const outcome = await run(changedPaths);
  if (outcome.ok) writeNotes(file, { of: inputsDigest, files: digestsOf(allFiles) });
  return outcome;
}

/** Making the types of the SDK takes a second, so it is done only when they or their inputs have changed. */
async function checkClientTypes(): Promise<Outcome> {
  const { apiDocument, NOTE } = await import('./generated-files.ts');
  const document = apiDocument();
  const generatorInputs = ['package-lock.json', 'tools/client-types.ts'].map(read);
  const inputsDigest = digestOf([JSON.stringify(document), ...generatorInputs].join());
  const committedFiles = existsSync(join(ROOT, CLIENT_TYPES_PATH))
    ? [{ path: CLIENT_TYPES_PATH, text: read(CLIENT_TYPES_PATH) }]
    : [];
  const earlierNotes = readNotes(NOTES_PATHS.client);
  if (
    committedFiles.length > 0 &&
    earlierNotes?.of === inputsDigest &&
    changedPathsSince(committedFiles, earlierNotes.files).length === 0
  )
    return { ok: true, text: '' };
  const { clientTypesFile } = await import('./client-types.ts');
  const violations = checkFresh(ROOT, [await clientTypesFile(document, NOTE)]);
  if (violations.length === 0) writeNotes(NOTES_PATHS.client, { of: inputsDigest, files: digestsOf(committedFiles) });
  return outcomeOf(violations);
}

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

function outcomeOf(violations: readonly Violation[]): Outcome {
  const text = violations
    .map(({ path, line, what, remedy }) => `${path}${line === undefined ? '' : `:${line}`}: ${what}\n    -> ${remedy}`)
    .join('\n');
  return { ok: violations.length === 0, text };
}

function runProgram(
  name: keyof typeof PROGRAMS,
  args: readonly string[],
  remedy: string,
  env: Readonly<Record<string, string>> = {},
): Promise<Outcome> {
  const child = spawn(process.execPath, [join(ROOT, 'node_modules', PROGRAMS[name]), ...args], {
    cwd: ROOT,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: PROGRAM_MS_MAX,
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8');
    stream.on('data', (text: string) => {
      output += text;
    });
  }
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => {
      const exitText = code === 0 ? '' : `(${name} ended with ${signal ?? code})`;
      resolve({ ok: code === 0, text: `${output.trim()}\n${exitText}\n    -> ${remedy}` });
    });
  });
}

async function runTimed(name: string, check: Check): Promise<Outcome & { name: string; seconds: string }> {
  const startedAt = performance.now();
  const outcome = await check().catch((error: unknown) => ({
    ok: false,
    text: `the check itself failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
  }));
  return { ...outcome, name, seconds: ((performance.now() - startedAt) / 1000).toFixed(1) };
}

const requestedChecks = process.argv.slice(2).filter(word => !word.startsWith('-'));
const unknownChecks = requestedChecks.filter(word => !(word in CHECKS));
if (unknownChecks.length > 0) {
  console.error(`no such check: ${unknownChecks.join(', ')}. The checks are: ${Object.keys(CHECKS).join(', ')}`);
  process.exit(2);
}
if (process.argv.includes('--cold')) for (const file of Object.values(NOTES_PATHS)) removeNotes(file);
const selectedChecks = Object.entries(CHECKS).filter(
  ([name]) => requestedChecks.length === 0 || requestedChecks.includes(name),
);
const outcomes = await Promise.all(selectedChecks.map(([name, check]) => runTimed(name, check)));
for (const outcome of outcomes.filter(one => !one.ok)) console.log(`\n== ${outcome.name}\n${outcome.text}`);
console.log('');
for (const outcome of outcomes)
  console.log(`${outcome.ok ? 'ok  ' : 'FAIL'}  ${outcome.name.padEnd(9)} ${outcome.seconds} s`);
process.exitCode = outcomes.every(one => one.ok) ? 0 : 1;
