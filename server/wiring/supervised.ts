// One of several processes, as their supervisor sees it.
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
const STABLE_MS = 30_000;
const FAILED = 1;

export type StopSignal = 'SIGTERM' | 'SIGINT';

export interface SupervisedParts {
  readonly numbered: ProcessPosition;
  /** Variables that are added to the environment of the supervisor. */
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
  readonly #stopping = new AbortController();
  #worker: Worker | undefined;
  #signal: StopSignal | undefined;
  #hasServed = false;
  #deaths = 0;

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
    this.#stopping.abort(new Error('the processes stop'));
    if (this.#worker) this.#worker.process.kill(signal);
    else this.#end(0);
  }

  #fork(): void {
    const { numbered, env, clock, log } = this.#parts;
    const sinceMs = clock.monotonicMs();
    const worker = cluster.fork({ ...env, [PROCESS_VARIABLE]: `${numbered.number}/${numbered.of}` });
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
      void this.#restart({ code: code ?? FAILED, signal, ranMs: clock.monotonicMs() - sinceMs });
    });
  }

  #onMessage(message: unknown): void {
    const addresses = parseReady(message);
    if (!addresses) return;
    this.#hasServed = true;
    this.#ready.resolve(addresses);
  }

  /** Tells this process that another one has ended and is being restarted. */
  sendRestart(number: number, endedAt: Date): void {
    this.#worker?.send(restartMessage(number, endedAt), undefined, () => {}); // Fails if the process is ending.
  }

  /**
   * Restarts the process after it has ended. A process that never served is not restarted: its settings or its machine
   * do not allow it to run.
   */
  async #restart({ code, signal, ranMs }: { code: number; signal: string | null; ranMs: number }): Promise<void> {
    const { numbered, clock, log } = this.#parts;
    if (this.#signal) return this.#end(code);
    if (!this.#hasServed) return this.#end(code || FAILED);
    log.error('processes.ended', { ...numbered, code, signal });
    this.#parts.onEnded(numbered.number);
    this.#deaths = ranMs > STABLE_MS ? 0 : this.#deaths + 1;
    const waitMs = this.#deaths <= 1 ? 0 : Math.min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** (this.#deaths - 2));
    await clock.sleep(waitMs, this.#stopping.signal).catch(() => {});
    if (!this.#stopping.signal.aborted) this.#fork();
  }

  #end(code: number): void {
    this.#exitCode.resolve(code);
    this.#ready.resolve(undefined);
  }
}
