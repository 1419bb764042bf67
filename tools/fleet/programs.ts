// The processes of a fleet on this machine. They run at the same time, and are ended one after the other.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';

const ROOT = join(import.meta.dirname, '../..');
const START_TIMEOUT_MS = 90_000;
const END_TIMEOUT_MS = 30_000;
const POLL_INTERVAL_MS = 100;

export type Variables = Readonly<Record<string, string>>;

export interface ProgramsOptions {
  readonly onLine?: (name: string, line: string) => void;
  /** Called when a program has ended by itself. */
  readonly onLost?: (name: string, code: number | null) => void;
}

export class Programs {
  readonly #options: ProgramsOptions;
  readonly #runningProcesses: ChildProcess[] = [];
  #isEnding = false;
  #startError: Error | undefined;

  constructor(options: ProgramsOptions = {}) {
    this.#options = options;
  }

  get isEnding(): boolean {
    return this.#isEnding;
  }

  run(name: string, command: readonly string[], env: Variables): ChildProcess {
    const { onLine, onLost } = this.#options;
    const [file = '', ...args] = command;
    const child = spawn(file, args, { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    this.#runningProcesses.push(child);
    for (const stream of [child.stdout, child.stderr])
      if (stream) createInterface(stream).on('line', line => onLine?.(name, line));
    child.once('exit', code => {
      const at = this.#runningProcesses.indexOf(child);
      if (at >= 0) onLost?.(name, code);
      if (at >= 0) this.#runningProcesses.splice(at, 1);
    });
    child.on('error', error => {
      if (child.pid !== undefined) return; // The program is running, but a signal could not be sent to it.
      const at = this.#runningProcesses.indexOf(child);
      if (at >= 0) this.#runningProcesses.splice(at, 1);
      this.#startError ??= new Error(`${name} could not be started: ${error.message}`);
    });
    return child;
  }

  /** Sends SIGINT. A host then ends its sessions, and PostgreSQL performs a fast shutdown. */
  async end(child: ChildProcess): Promise<void> {
    const at = this.#runningProcesses.indexOf(child);
    if (at < 0) return;
    this.#runningProcesses.splice(at, 1);
    const exitEvent = once(child, 'exit');
    child.kill('SIGINT');
    const timeout = setTimeout(END_TIMEOUT_MS, 'late', { ref: false });
    if ((await Promise.race([exitEvent, timeout])) !== 'late') return;
    child.kill('SIGKILL');
    await exitEvent;
  }

  /** Kills all programs at once, when this process ends. */
  killAll(): void {
    for (const child of this.#runningProcesses) child.kill('SIGKILL');
  }

  /** Ends the programs in reverse order, because hosts need the database while they end. */
  async endAll(): Promise<void> {
    this.#isEnding = true;
    for (const child of [...this.#runningProcesses].reverse()) await this.end(child);
  }

  /** @throws Error if this program or an earlier one could not be started, or if the program is not ready in time. */
  async waitUntilReady(description: string, isReady: () => boolean): Promise<void> {
    for (let remainingMs = START_TIMEOUT_MS; !isReady(); remainingMs -= POLL_INTERVAL_MS) {
      if (this.#startError) throw this.#startError;
      if (remainingMs <= 0 || this.#isEnding)
        throw new Error(`${description} did not start. Set FLEET_VERBOSE=1 to see the output of all programs.`);
      await setTimeout(POLL_INTERVAL_MS);
    }
  }
}
