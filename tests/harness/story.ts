// Runs a guide as it is written: its blocks ```sh story as one script, its blocks ```ts story NAME as files beside it.
import { spawn } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { CHECKOUT, type TestServer } from './server.ts';

const WRITTEN_URL = 'http://127.0.0.1:8080';
const SCRIPT_MS_MAX = 300_000;

export interface RunningStory {
  /** What the script has printed so far. */
  printed(): string;
  /** What it has said on its standard error. */
  said(): string;
  readonly ended: Promise<number | null>;
}

export class Story {
  readonly text: string;
  readonly folder: string;
  readonly #server: TestServer;
  readonly #here: (block: string) => string;

  /** `page`: the address that stands in the guide, and the address to use. */
  constructor(server: TestServer, guide: string, page: readonly [string, string]) {
    this.#server = server;
    this.text = readGuide(guide);
    this.#here = block => block.replaceAll(WRITTEN_URL, server.url).replaceAll(...page);
    this.folder = mkdtempSync(join(tmpdir(), 'berth-story-'));
    after(() => rmSync(this.folder, { recursive: true }));
    this.#layOut();
  }

  saved(name: string): string {
    return readFileSync(join(this.folder, name), 'utf8');
  }

  run(): RunningStory {
    const blocks = [...this.text.matchAll(/^```sh story\n([\s\S]*?)^```$/gm)];
    const script = blocks.map(([, block = '']) => this.#here(block)).join('\n');
    const child = spawn('bash', ['-euo', 'pipefail', '-c', script], {
      cwd: this.folder,
      env: { ...this.#server.env, PATH: `${join(this.folder, 'bin')}:${this.#server.env.PATH}` },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: SCRIPT_MS_MAX,
    });
    const heard = { out: '', error: '' };
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      heard.out += chunk;
    });
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
      heard.error += chunk;
    });
    const ended = new Promise<number | null>(resolve => child.once('close', resolve));
    return { printed: () => heard.out, said: () => heard.error, ended };
  }

  /** The files of the guide, and the programs `berth` and `node` of this checkout. */
  #layOut(): void {
    const programs = join(this.folder, 'bin');
    mkdirSync(programs);
    writeFileSync(join(programs, 'berth'), `#!/bin/sh\nexec '${process.execPath}' '${CHECKOUT}/cli/berth.ts' "$@"\n`);
    chmodSync(join(programs, 'berth'), 0o755);
    symlinkSync(process.execPath, join(programs, 'node'));
    symlinkSync(join(CHECKOUT, 'node_modules'), join(this.folder, 'node_modules'));
    writeFileSync(join(this.folder, 'package.json'), '{"type":"module"}');
    for (const [, name = '', block = ''] of this.text.matchAll(/^```ts story (\S+)\n([\s\S]*?)^```$/gm))
      writeFileSync(join(this.folder, name), this.#here(block));
  }
}

export const readGuide = (name: string): string => readFileSync(join(CHECKOUT, 'docs/guides', name), 'utf8');
