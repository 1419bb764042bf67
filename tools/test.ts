// Runs the suite: unit tests, then the suites that start servers and browsers, several files at a time. Each file has
// its own servers and folders, and sometimes waits for things other than the processor, so one file more than there are
// processors runs at a time, up to four files. `--slow` adds the files named *.slow.test.ts, and runs one file at a
// time, because these files measure times. `--rerun-failed` runs each failed file again, alone, after the others of its
// round, and lists the tests that pass in the second run as unsteady. `--unit` runs only the unit tests. `--engine
// headless-shell` uses this engine for all sessions. `--slow` also runs some suites again: those of
// tools/both-engines.ts with headless-shell, those of tools/behind-fronts.ts behind the fronts of a fleet, and the
// fault tests of a fleet with the standard lease. `-t NAME` runs the tests whose name matches this regular expression.
// `--watch` runs a file again when that file, or a file that it imports, has changed. Other arguments select files by a
// part of their path.
import { globSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { inspect, parseArgs } from 'node:util';
import { FRONTS_SUITES } from './behind-fronts.ts';
import { BOTH_ENGINES_SUITES } from './both-engines.ts';
import { bundleServer } from './bundle-server.ts';
import { findMemoryFolder } from './memory-folder.ts';
import { describeUsage, readProcessorTime } from './processor-time.ts';

const ROOT = dirname(import.meta.dirname);
/**
 * A cache of compiled code, which hundreds of processes load: servers, commands, test files. Its entries are keyed by
 * content.
 */
process.env.NODE_COMPILE_CACHE = join(ROOT, '.berth/compiled');
/**
 * The time limit of a single test. A suite that needs more time has several tests. On a busy machine the longest test
 * takes three minutes.
 */
const TEST_MS_MAX = 480_000;
/** The longest slow test is an hour of fuzzing with its preparation and checks. */
const SLOW_TEST_MS_MAX = 5_400_000;
/** The maximum number of test files that run at a time, because each may start several browsers. */
const FILES_AT_ONCE_MAX = 4;
/** The number of files listed at the end: those whose tests took longest. */
const FILES_SHOWN = 12;
/** The reason for each failure is printed at the end, truncated to this length. */
const REASON_CHARS_MAX = 2_000;

const { values, positionals: pathParts } = parseArgs({
  options: {
    slow: { type: 'boolean', default: false },
    'rerun-failed': { type: 'boolean', default: false },
    unit: { type: 'boolean', default: false },
    watch: { type: 'boolean', default: false },
    engine: { type: 'string' },
    name: { type: 'string', short: 't' },
  },
  allowPositionals: true,
});
const { slow, watch, engine, name: namePattern } = values;
// Slow tests write more temporary files than fit in memory.
const temporaryFolder = slow ? undefined : (process.env.TMPDIR ?? findMemoryFolder());
if (temporaryFolder !== undefined) process.env.TMPDIR = temporaryFolder;
/** The environment variable that tests/harness/bundle.ts reads. */
const BUNDLE_VARIABLE = 'BERTH_TEST_BUNDLE';
/** The environment variable that tests/harness/engine.ts reads in the test processes. */
const ENGINE_VARIABLE = 'BERTH_TEST_ENGINE';
/** The environment variable that tests/harness/behind-fronts.ts reads. */
const FRONTS_VARIABLE = 'BERTH_TEST_FRONTS';
/** The environment variable that tests/faults/fleet.test.ts reads. */
const FAULTS_VARIABLE = 'BERTH_TEST_FAULTS';
if (engine !== undefined) process.env[ENGINE_VARIABLE] = engine;

interface TestGroup {
  readonly name: string;
  readonly globs: readonly string[];
  readonly concurrency: number;
  /** The tests of this group start servers from a bundle, except with `--slow` and with `--watch`. */
  readonly isBundled?: true;
}

const TEST_GROUPS: readonly TestGroup[] = [
  {
    name: 'unit',
    globs: ['contract', 'server', 'sdk', 'cli', 'console', 'tools'].map(folder => `${folder}/**/*.test.ts`),
    concurrency: Math.min(2, availableParallelism()),
  },
  {
    name: 'acceptance, engines, attacks, faults, fuzz',
    globs: ['acceptance', 'engines', 'attacks', 'faults', 'fuzz'].map(folder => `tests/${folder}/**/*.test.ts`),
    concurrency: slow ? 1 : Math.min(FILES_AT_ONCE_MAX, availableParallelism() + 1),
    isBundled: true,
  },
];

/**
 * The test files that take longest, as measured in a run of all files. They are started first, so that the run does not
 * end with one long file alone.
 */
const LONG_FILES = [
  'faults/churn',
  'acceptance/console-looks',
  'acceptance/clients',
  'acceptance/fleet',
  'acceptance/console-find',
  'faults/fleet',
  'attacks/invocations',
  'acceptance/warm',
  'acceptance/console.test',
  'acceptance/docs',
  'acceptance/typed-credentials',
  'acceptance/invocations.test',
  'acceptance/mcp.test',
  'acceptance/live-page',
  'acceptance/console-inbox',
  'acceptance/console-tasks',
  'acceptance/cli.test',
  'attacks/handoffs',
  'fuzz/fuzz',
  'acceptance/console-many',
  'acceptance/console-invocations',
  'attacks/allowed-domains',
  'attacks/exfiltration',
  'attacks/credential-table',
  'attacks/typed-credentials',
  'acceptance/http-rules',
  'faults/kill-moments',
  'faults/context-save',
  'faults/files',
  'faults/database-kill',
  'acceptance/contexts.test',
  'acceptance/recordings.test',
  'acceptance/sessions',
  'acceptance/devtools',
  'acceptance/proxies',
];

interface Failure {
  /** Relative to the repository. */
  readonly file: string;
  readonly name: string;
  readonly why: string;
}

interface Tally {
  passed: number;
  skipped: number;
  readonly failures: Failure[];
  /** Milliseconds per file. */
  readonly msByFile: Map<string, number>;
}

function filesOf(group: TestGroup): string[] {
  return group.globs
    .flatMap(glob => globSync(glob, { cwd: ROOT }).sort())
    .sort((one, other) => rank(one) - rank(other))
    .filter(path => slow || !path.endsWith('.slow.test.ts'))
    .filter(path => pathParts.length === 0 || pathParts.some(word => path.includes(word)));
}

function rank(path: string): number {
  const index = LONG_FILES.findIndex(name => path.includes(name));
  return index < 0 ? LONG_FILES.length : index;
}

async function runFiles(files: readonly string[], concurrency: number, tally: Tally): Promise<void> {
  if (files.length === 0) return;
  const timeoutMs = slow ? SLOW_TEST_MS_MAX : TEST_MS_MAX;
  const stream = run({
    files: files.map(path => join(ROOT, path)),
    // Node does not accept a concurrency with --watch.
    ...(watch ? { watch } : { concurrency }),
    ...(namePattern === undefined ? {} : { testNamePatterns: new RegExp(namePattern) }),
    execArgv: [`--test-timeout=${timeoutMs}`, `--import=${join(import.meta.dirname, 'test-limit.ts')}`],
    cwd: ROOT,
  });
  // Tests are counted, not files. A file itself is counted only if it fails as a whole, because it cannot be loaded. If
  // a hook of the harness fails, the failure is reported under the harness's file, after the tests of the test file in
  // which the hook ran.
  let testFile = '?';
  const updateTestFile = (path: string | undefined): string => {
    if (path?.endsWith('.test.ts')) testFile = relative(ROOT, path);
    return testFile;
  };
  stream.on('test:pass', test => {
    updateTestFile(test.file);
    // A file without tests, or without tests that match the given name, is reported as one passed test with its path as
    // the name.
    if (test.details.type === 'suite' || test.name === test.file) return;
    if (test.skip !== undefined || test.todo !== undefined) tally.skipped++;
    else tally.passed++;
  });
  stream.on('test:fail', test => {
    const file = updateTestFile(test.file);
    const why = inspect(test.details.error.cause ?? test.details.error).slice(0, REASON_CHARS_MAX);
    tally.failures.push({ file, name: test.name, why });
  });
  // When each file was started. A file starts before its first test, and ends with its last test.
  const startedAtByFile = new Map<string, number>();
  stream.on('test:dequeue', ({ file, name }) => {
    if (file !== undefined && file === name) startedAtByFile.set(file, performance.now());
  });
  stream.on('test:complete', ({ file }) => {
    const fileStartedAt = file === undefined ? undefined : startedAtByFile.get(file);
    if (file !== undefined && fileStartedAt !== undefined)
      tally.msByFile.set(relative(ROOT, file), performance.now() - fileStartedAt);
  });
  const output = stream.compose(spec);
  output.pipe(process.stdout, { end: false });
  await new Promise<void>((resolve, reject) => output.on('end', resolve).on('error', reject));
}

const newTally = (): Tally => ({ passed: 0, skipped: 0, failures: [], msByFile: new Map() });

function addTally({ passed, skipped, failures: failed, msByFile }: Tally, sum: Tally): void {
  sum.passed += passed;
  sum.skipped += skipped;
  sum.failures.push(...failed);
  for (const [file, ms] of msByFile) sum.msByFile.set(file, (sum.msByFile.get(file) ?? 0) + ms);
}

/**
 * Runs each failed file again, alone. Returns the failures of files that pass in the second run, and removes these
 * failures from the tally.
 */
async function rerun(tally: Tally): Promise<Failure[]> {
  const flakyFailures: Failure[] = [];
  for (const file of new Set(tally.failures.map(failure => failure.file))) {
    console.log(`\nrunning again, alone: ${file}`);
    const secondTally = newTally();
    await runFiles([file], 1, secondTally);
    if (secondTally.failures.length > 0 || secondTally.passed === 0) continue;
    const firstFailures = tally.failures.filter(failure => failure.file === file);
    flakyFailures.push(...firstFailures);
    tally.passed += firstFailures.length;
    tally.failures.splice(0, Infinity, ...tally.failures.filter(failure => failure.file !== file));
  }
  return flakyFailures;
}

function printFailures(kind: string, failures: readonly Failure[]): void {
  for (const { file, name, why } of failures)
    console.log(`  ${kind}: ${file}: ${name}\n${why.replaceAll(/^/gm, '    ')}`);
}

const startedAt = performance.now();
const timeBefore = readProcessorTime();
const tally = newTally();
const flakyFailures: Failure[] = [];
let fileCount = 0;

async function rerunFailed(roundTally: Tally): Promise<void> {
  if (values['rerun-failed']) flakyFailures.push(...(await rerun(roundTally)));
}

for (const group of TEST_GROUPS.slice(0, values.unit ? 1 : TEST_GROUPS.length)) {
  const selectedFiles = filesOf(group);
  fileCount += selectedFiles.length;
  if (!slow && !watch && group.isBundled && selectedFiles.length > 0)
    process.env[BUNDLE_VARIABLE] = await bundleServer();
  await runFiles(selectedFiles, group.concurrency, tally);
}
await rerunFailed(tally);
if (slow && engine === undefined && !values.unit) {
  const runAgain = async (names: readonly string[], variable: string, value: string): Promise<void> => {
    process.env[variable] = value;
    const selectedFiles = TEST_GROUPS.flatMap(filesOf).filter(path => names.some(name => path.includes(name)));
    fileCount += selectedFiles.length;
    const roundTally = newTally();
    await runFiles(selectedFiles, 1, roundTally);
    await rerunFailed(roundTally);
    addTally(roundTally, tally);
    delete process.env[variable];
  };
  await runAgain(BOTH_ENGINES_SUITES, ENGINE_VARIABLE, 'headless-shell');
  await runAgain(FRONTS_SUITES, FRONTS_VARIABLE, '2');
  await runAgain(['tests/faults/fleet.test'], FAULTS_VARIABLE, 'standard');
}
const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
console.log(
  `\n${fileCount} files, ${tally.passed} tests passed, ${tally.failures.length} failed, ${tally.skipped} skipped, in ${seconds} s`,
);
console.log(`  ${describeUsage(timeBefore, readProcessorTime())}`);
const longestFiles = [...tally.msByFile].toSorted(([, one], [, other]) => other - one).slice(0, FILES_SHOWN);
for (const [file, ms] of longestFiles) console.log(`  ${(ms / 1000).toFixed(1).padStart(6)} s  ${file}`);
printFailures('unsteady: passed in the second run', flakyFailures);
printFailures('failed', tally.failures);
if (fileCount === 0) console.log('No test file has a path that contains one of the given words.');
else if (tally.passed + tally.failures.length === 0) console.log('No test that ran has a name that matches -t.');
process.exitCode = tally.passed === 0 || tally.failures.length > 0 ? 1 : 0;
