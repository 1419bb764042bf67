// One of several server processes, which the supervisor starts, restarts and stops.
import cluster, { type Worker } from 'node:cluster';
import { PROCESS_VARIABLE, type ProcessPosition } from '../config.ts';
import type { Clock } from '../kit/clock.ts';
import { reason } from '../kit/fault.ts';
import { guardListener } from '../kit/guard.ts';
import type { Log } from '../kit/log.ts';
import type { ServerAddresses } from '../server-record.ts';
import { parseReady, restartMessage } from './process-messages.ts';

const BACKOFF_FIRST_MS = 250;
const BACKOFF_MAX_MS = 30_000;
/** A process that ran for longer than this is restarted without delay. */
const STABLE_MS_MIN = 30_000;
const EXIT_FAILED = 1;

export type StopSignal = 'SIGTERM' | 'SIGINT';

export interface SupervisedParts {
  readonly position: ProcessPosition;
  /** Environment variables that the process gets in addition to those of the supervisor. */
  readonly env: Readonly<Record<string, string>>;
  readonly clock: Clock;
  readonly log: Log;
  /** Called when the process has ended by itself and will be restarted. */
  readonly onEnded: (number: number) => void;
}

export class SupervisedProcess {
  readonly #parts: SupervisedParts;
  readonly #ready = Promise.withResolvers<ServerAddresses | undefined>();
  readonly #exitCode = Promise.withResolvers<number>();
  readonly #stopController = new AbortController();
  #worker: Worker | undefined;
  #signal: StopSignal | undefined;
  #hasServed = false;
  #earlyExits = 0;

  constructor(parts: SupervisedParts) {
    this.#parts = parts;
  }

  /**
   * Starts the process. Resolves to its addresses when it is serving, or to undefined if it was stopped or ended before
   * that.
   */
  start(): Promise<ServerAddresses | undefined> {
    if (!this.#signal) this.#fork();
    return this.#ready.promise;
  }

  /** Resolves to the exit code when the process has stopped for good. */
  get whenEnded(): Promise<number> {
    return this.#exitCode.promise;
  }

  stop(signal: StopSignal): void {
    if (this.#signal) return;
    this.#signal = signal;
    this.#stopController.abort(new Error('the processes are being stopped'));
    if (this.#worker) this.#worker.process.kill(signal);
    else this.#end(0);
  }

  #fork(): void {
    const { position: numbered, env, clock, log } = this.#parts;
    const startMs = clock.monotonicMs();
    let worker: Worker;
    try {
      worker = cluster.fork({ ...env, [PROCESS_VARIABLE]: `${numbered.number}/${numbered.processCount}` });
    } catch (error) {
      return void this.#retry(error);
    }
    // If there is no process id, the kernel did not start the process. The worker then emits `error`, but never `exit`.
    if (worker.process.pid === undefined) return void worker.once('error', error => this.#retry(error));
    this.#worker = worker;
    const onFailure = (error: unknown): void =>
      log.warn('processes.message_refused', { ...numbered, reason: reason(error) });
    worker.on(
      'message',
      guardListener(onFailure, (message: unknown) => this.#onMessage(message)),
    );
    worker.on('error', error =>
      this.#parts.log.warn('processes.channel_failed', { ...numbered, reason: error.message }),
    );
    worker.once('exit', (code, signal) => {
      this.#worker = undefined;
      void this.#restart({ code: code ?? EXIT_FAILED, signal, ranMs: clock.monotonicMs() - startMs });
    });
  }

  #onMessage(message: unknown): void {
    const addresses = parseReady(message);
    if (!addresses) return;
    this.#hasServed = true;
    this.#ready.resolve(addresses);
  }

  /** Notifies this process that another process has ended and is being restarted. */
  sendRestart(number: number, endedAt: Date): void {
    this.#worker?.send(restartMessage(number, endedAt), undefined, () => {}); // Fails if the process is ending.
  }

  /**
   * Restarts the process after it has ended. A process that never served is not restarted: the settings or the machine
   * prevent it from running.
   */
  async #restart({ code, signal, ranMs }: { code: number; signal: string | null; ranMs: number }): Promise<void> {
    const { position: numbered, log } = this.#parts;
    if (this.#signal) return this.#end(code);
    if (!this.#hasServed) return this.#end(code || EXIT_FAILED);
    log.error('processes.ended', { ...numbered, code, signal });
    this.#parts.onEnded(numbered.number);
    await this.#forkAgain(ranMs);
  }

  /**
   * Tries again after the process could not be started. The other processes are not notified, because a notification
   * would extend the lease of this process. Its sessions would then be kept for longer than a restart may take.
   */
  async #retry(error: unknown): Promise<void> {
    const { position: numbered, log } = this.#parts;
    log.error('processes.not_started', { ...numbered, reason: reason(error) });
    if (this.#signal || !this.#hasServed) return this.#end(EXIT_FAILED);
    await this.#forkAgain(0);
  }

  async #forkAgain(ranMs: number): Promise<void> {
    const { clock } = this.#parts;
    this.#earlyExits = ranMs > STABLE_MS_MIN ? 0 : this.#earlyExits + 1;
    const waitMs = this.#earlyExits <= 1 ? 0 : Math.min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** (this.#earlyExits - 2));
    await clock.sleep(waitMs, this.#stopController.signal).catch(() => {});
    if (!this.#stopController.signal.aborted) this.#fork();
  }

  #end(code: number): void {
    this.#exitCode.resolve(code);
    this.#ready.resolve(undefined);
  }
}
