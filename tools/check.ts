// `npm run check`: all checks at once, each complaint with its remedy. Words choose checks: npm run check -- layers tidy
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { checkCycles } from './cycles.ts';
import { checkEntrances } from './entrances.ts';
import { checkFresh, checkSettings } from './fresh.ts';
import { checkLayers } from './layers.ts';
import { type Complaint, readSourceFiles } from './source-files.ts';
import { checkTidy } from './tidy.ts';

const ROOT = dirname(import.meta.dirname);
const PROGRAM_MS_MAX = 300_000;

interface Outcome {
  readonly ok: boolean;
  /** What to print when it is not. */
  readonly text: string;
}

type Check = () => Promise<Outcome>;

const NAME_THE_TYPE = 'name the type; `any`, `!` and `as` only move the fault.';

const CHECKS: Readonly<Record<string, Check>> = {
  types: () => program('tsc', ['-p', '.', '--pretty', 'false'], NAME_THE_TYPE),
  console: () => program('tsc', ['-p', 'console', '--pretty', 'false'], NAME_THE_TYPE),
  lint: () =>
    program(
      'biome',
      ['ci', '--colors=off', '.'],
      '`node_modules/.bin/biome check --write .` mends layout and most of the rest.',
    ),
  layers: async () => complaints(checkLayers(readSourceFiles(ROOT))),
  cycles: async () => complaints(checkCycles(readSourceFiles(ROOT))),
  entrances: async () => complaints(checkEntrances(readSourceFiles(ROOT))),
  tidy: async () => complaints(checkTidy(readSourceFiles(ROOT))),
  settings: async () => complaints(checkSettings(readFileSync(join(ROOT, 'docs/operating.md'), 'utf8'))),
  fresh: async () => {
    const { generatedFiles } = await import('./generated-files.ts');
    return complaints(checkFresh(ROOT, await generatedFiles()));
  },
};

function complaints(found: readonly Complaint[]): Outcome {
  const text = found
    .map(({ path, line, what, remedy }) => `${path}${line === undefined ? '' : `:${line}`}: ${what}\n    -> ${remedy}`)
    .join('\n');
  return { ok: found.length === 0, text };
}

function program(name: string, args: readonly string[], remedy: string): Promise<Outcome> {
  const child = spawn(process.execPath, [join(ROOT, 'node_modules', '.bin', name), ...args], {
    cwd: ROOT,
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
      const ended = code === 0 ? '' : `(${name} ended with ${signal ?? code})`;
      resolve({ ok: code === 0, text: `${output.trim()}\n${ended}\n    -> ${remedy}` });
    });
  });
}

async function timed(name: string, check: Check): Promise<Outcome & { name: string; seconds: string }> {
  const startedAt = performance.now();
  const outcome = await check().catch((error: unknown) => ({
    ok: false,
    text: `the check itself failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
  }));
  return { ...outcome, name, seconds: ((performance.now() - startedAt) / 1000).toFixed(1) };
}

const wanted = process.argv.slice(2).filter(word => !word.startsWith('-'));
const unknown = wanted.filter(word => !(word in CHECKS));
if (unknown.length > 0) {
  console.error(`no such check: ${unknown.join(', ')}. There are: ${Object.keys(CHECKS).join(', ')}`);
  process.exit(2);
}
const chosen = Object.entries(CHECKS).filter(([name]) => wanted.length === 0 || wanted.includes(name));
const outcomes = await Promise.all(chosen.map(([name, check]) => timed(name, check)));
for (const outcome of outcomes.filter(one => !one.ok)) console.log(`\n== ${outcome.name}\n${outcome.text}`);
console.log('');
for (const outcome of outcomes)
  console.log(`${outcome.ok ? 'ok  ' : 'FAIL'}  ${outcome.name.padEnd(9)} ${outcome.seconds} s`);
process.exitCode = outcomes.every(one => one.ok) ? 0 : 1;
