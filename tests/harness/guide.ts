// Runs the blocks of a guide as written, with the addresses of a test in place of those in the text.
import { spawn } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { CHECKOUT, type TestServer } from './server.ts';

const SCRIPT_MS_MAX = 300_000;

export interface RunningGuide {
  /** Returns what the guide has written to its standard output so far. */
  stdout(): string;
  /** Returns what the guide has written to its standard error so far. */
  stderr(): string;
  readonly exitCode: Promise<number | null>;
}

export interface GuideResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export class Guide {
  readonly text: string;
  /** The folder in which its commands run. */
  readonly folder: string;
  readonly #replacements: Readonly<Record<string, string>>;

  /** `replacements` maps strings in the guide to their replacements. */
  constructor(name: string, replacements: Readonly<Record<string, string>>) {
    this.text = readFileSync(join(CHECKOUT, `docs/guides/${name}.md`), 'utf8');
    this.#replacements = replacements;
    this.folder = mkdtempSync(join(tmpdir(), `berth-${name}-`));
    after(() => rmSync(this.folder, { recursive: true }));
  }

  read(name: string): string {
    return readFileSync(join(this.folder, name), 'utf8');
  }

  /** Writes the files of the guide, runs its commands in one shell, and waits until the shell has ended. */
  async run(server: Pick<TestServer, 'env'>): Promise<GuideResult> {
    const runningGuide = this.start(server);
    const code = await runningGuide.exitCode;
    return { code, stdout: runningGuide.stdout(), stderr: runningGuide.stderr() };
  }

  start({ env }: Pick<TestServer, 'env'>): RunningGuide {
    this.#writeFiles();
    const blocks = [...this.text.matchAll(/^```sh story\n([\s\S]*?)^```$/gm)];
    const script = blocks.map(([, one = '']) => this.#replaceTexts(one)).join('\n');
    const child = spawn('bash', ['-euo', 'pipefail', '-c', script], {
      cwd: this.folder,
      env: { ...env, PATH: `${join(this.folder, 'bin')}:${env.PATH}` },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: SCRIPT_MS_MAX,
    });
    const output = { stdout: '', stderr: '' };
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      output.stdout += chunk;
    });
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
      output.stderr += chunk;
    });
    const exitCode = new Promise<number | null>(resolve => child.once('close', resolve));
    return { stdout: () => output.stdout, stderr: () => output.stderr, exitCode };
  }

  #replaceTexts(block: string): string {
    return Object.entries(this.#replacements).reduce(
      (text, [original, replacement]) => text.replaceAll(original, replacement),
      block,
    );
  }

  /** Writes the files of the guide, and the programs `berth` and `node` of this checkout. */
  #writeFiles(): void {
    const programs = join(this.folder, 'bin');
    mkdirSync(programs);
    writeFileSync(join(programs, 'berth'), `#!/bin/sh\nexec '${process.execPath}' '${CHECKOUT}/cli/berth.ts' "$@"\n`);
    chmodSync(join(programs, 'berth'), 0o755);
    symlinkSync(process.execPath, join(programs, 'node'));
    symlinkSync(join(CHECKOUT, 'node_modules'), join(this.folder, 'node_modules'));
    writeFileSync(join(this.folder, 'package.json'), '{"type":"module"}');
    for (const [, name = '', block = ''] of this.text.matchAll(/^```ts story (\S+)\n([\s\S]*?)^```$/gm))
      writeFileSync(join(this.folder, name), this.#replaceTexts(block));
  }
}
