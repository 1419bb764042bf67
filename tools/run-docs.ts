// Runs the blocks of a document that are marked ```sh run or ```ts run, in order, against a running server, to check
// that the examples work: node tools/run-docs.ts README.md --url http://127.0.0.1:8080 --key …
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { parseArgs } from 'node:util';

const ROOT = dirname(import.meta.dirname);
const BLOCK_MS_MAX = 120_000;
/** The server address in the documents, which is replaced by that of the running server. */
const DOCUMENTED_URL = 'http://127.0.0.1:8080';
/**
 * Maps the name of a package in documents to the name to import in this checkout. Stagehand is installed in two
 * versions, and our SDK is imported from its source.
 */
const LOCAL_PACKAGES: Readonly<Record<string, string>> = {
  '@browserbasehq/stagehand': 'stagehand3',
  '@berth/sdk': './sdk/index.ts',
};

export interface Block {
  readonly language: 'sh' | 'ts';
  readonly line: number;
  readonly text: string;
}

export function runnableBlocks(document: string): Block[] {
  return [...document.matchAll(/^```(sh|ts) run\n([\s\S]*?)^```$/gm)].map(match => ({
    language: match[1] === 'sh' ? 'sh' : 'ts',
    line: document.slice(0, match.index).split('\n').length,
    text: match[2] ?? '',
  }));
}

export interface RunningServer {
  readonly url: string;
  readonly key: string;
}

/** Resolves with the output of the block. Rejects with the output if the block failed. */
export function runBlock(block: Block, runningServer: RunningServer): Promise<string> {
  const text = Object.entries(LOCAL_PACKAGES).reduce(
    (all, [written, here]) => all.replaceAll(`'${written}'`, `'${here}'`),
    block.text.replaceAll(DOCUMENTED_URL, runningServer.url),
  );
  const [file, ...args] =
    block.language === 'sh'
      ? ['bash', '-euo', 'pipefail', '-c', text]
      : [process.execPath, '--input-type=module-typescript', '--eval', text];
  const child = spawn(file, args, {
    cwd: ROOT,
    env: { ...process.env, BERTH_URL: runningServer.url, BERTH_KEY: runningServer.key },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: BLOCK_MS_MAX,
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8');
    stream.on('data', (chunk: string) => {
      output += chunk;
    });
  }
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => {
      if (code === 0) resolve(output);
      else
        reject(
          new Error(`the code block at line ${block.line} failed with ${signal ?? `exit code ${code}`}:\n${output}`),
        );
    });
  });
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { url: { type: 'string', default: DOCUMENTED_URL }, key: { type: 'string', default: '' } },
  });
  for (const file of positionals)
    for (const block of runnableBlocks(readFileSync(resolve(file), 'utf8'))) {
      console.log(`${file}:${block.line}`);
      console.log(await runBlock(block, { url: values.url, key: values.key }));
    }
}

if (import.meta.main) await main();
