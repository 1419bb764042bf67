// Runs the suite: unit tests, then the suites that start servers and browsers, some files at a time: each has servers and
// folders of its own, and waits for other things than the processor now and then, so there is one more than processors.
// `--slow` adds the files named *.slow.test.ts, and runs one at a time, because those measure; other words choose files by
// a part of their path.
import { globSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { inspect } from 'node:util';

const ROOT = dirname(import.meta.dirname);
/** Compiled code of what hundreds of processes begin with: servers, commands, test files. Entries go by what they are of. */
process.env.NODE_COMPILE_CACHE = join(ROOT, '.berth/compiled');
/** No single test may take longer; a suite that needs more splits its work. On a busy machine the longest takes three minutes. */
const TEST_MS_MAX = 480_000;
const SLOW_TEST_MS_MAX = 3_600_000;
/** Each file may have several browsers. */
const FILES_AT_ONCE_MAX = 4;
/** In the end the files are named in which the tests took longest. */
const FILES_SHOWN = 12;
/** And why each test failed, for who sees only the end of a long log. */
const REASON_CHARS_MAX = 2_000;

const slow = process.argv.includes('--slow');
const words = process.argv.slice(2).filter(word => !word.startsWith('-'));

interface Part {
  readonly name: string;
  readonly globs: readonly string[];
  readonly concurrency: number;
}

const PARTS: readonly Part[] = [
  {
    name: 'unit',
    globs: ['contract', 'server', 'sdk', 'cli', 'console', 'tools'].map(folder => `${folder}/**/*.test.ts`),
    concurrency: Math.min(2, availableParallelism()),
  },
  {
    name: 'acceptance, engines, attacks, faults',
    globs: ['acceptance', 'engines', 'attacks', 'faults'].map(folder => `tests/${folder}/**/*.test.ts`),
    concurrency: slow ? 1 : Math.min(FILES_AT_ONCE_MAX, availableParallelism() + 1),
  },
];

/** What takes longest begins first, so that nothing long is left for the end. */
const LONG = [
  'faults/churn',
  'acceptance/warm',
  'attacks/allowed-domains',
  'attacks/exfiltration',
  'acceptance/cli',
  'acceptance/live-page',
  'faults/context-save',
  'faults/kill-moments',
  'acceptance/contexts.test',
  'faults/files',
  'acceptance/recordings.test',
  'acceptance/sessions',
  'faults/database-kill',
  'acceptance/console.test',
  'acceptance/devtools',
  'acceptance/proxies',
];

interface Tally {
  passed: number;
  skipped: number;
  readonly failed: { readonly name: string; readonly why: string }[];
  /** Milliseconds of each file. */
  readonly files: Map<string, number>;
}

function filesOf(part: Part): string[] {
  return part.globs
    .flatMap(glob => globSync(glob, { cwd: ROOT }).sort())
    .sort((one, other) => rank(one) - rank(other))
    .filter(path => slow || !path.endsWith('.slow.test.ts'))
    .filter(path => words.length === 0 || words.some(word => path.includes(word)));
}

function rank(path: string): number {
  const place = LONG.findIndex(name => path.includes(name));
  return place < 0 ? LONG.length : place;
}

async function runPart(part: Part, tally: Tally): Promise<number> {
  const files = filesOf(part);
  if (files.length === 0) return 0;
  const limit = slow ? SLOW_TEST_MS_MAX : TEST_MS_MAX;
  const stream = run({
    files: files.map(path => join(ROOT, path)),
    concurrency: part.concurrency,
    execArgv: [`--test-timeout=${limit}`, `--import=${join(import.meta.dirname, 'test-limit.ts')}`],
    cwd: ROOT,
  });
  // A file counts by its tests; only a file that fails as a whole (it does not load) is counted itself.
  stream.on('test:pass', test => {
    if (test.details.type === 'suite') return;
    if (test.skip !== undefined || test.todo !== undefined) tally.skipped++;
    else tally.passed++;
  });
  stream.on('test:fail', test => {
    const name = `${test.file ? relative(ROOT, test.file) : '?'}: ${test.name}`;
    const why = inspect(test.details.error.cause ?? test.details.error).slice(0, REASON_CHARS_MAX);
    tally.failed.push({ name, why });
  });
  // The file itself is the first to begin; the last of its tests to be complete ends it.
  const begunAt = new Map<string, number>();
  stream.on('test:dequeue', ({ file, name }) => {
    if (file !== undefined && file === name) begunAt.set(file, performance.now());
  });
  stream.on('test:complete', ({ file }) => {
    const begun = file === undefined ? undefined : begunAt.get(file);
    if (file !== undefined && begun !== undefined) tally.files.set(relative(ROOT, file), performance.now() - begun);
  });
  const output = stream.compose(spec);
  output.pipe(process.stdout, { end: false });
  await new Promise<void>((resolve, reject) => output.on('end', resolve).on('error', reject));
  return files.length;
}

const startedAt = performance.now();
const tally: Tally = { passed: 0, skipped: 0, failed: [], files: new Map() };
let files = 0;
for (const part of PARTS) files += await runPart(part, tally);

const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
console.log(
  `\n${files} files, ${tally.passed} tests passed, ${tally.failed.length} failed, ${tally.skipped} skipped, in ${seconds} s`,
);
const longest = [...tally.files].toSorted(([, one], [, other]) => other - one).slice(0, FILES_SHOWN);
for (const [file, ms] of longest) console.log(`  ${(ms / 1000).toFixed(1).padStart(6)} s  ${file}`);
for (const { name, why } of tally.failed) console.log(`  failed: ${name}\n${why.replaceAll(/^/gm, '    ')}`);
if (files === 0) console.log('no test file matches');
process.exitCode = files === 0 || tally.failed.length > 0 ? 1 : 0;
