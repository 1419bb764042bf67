// Requests with an idempotency key take effect once. The first request runs. Equal requests with the same key get its
// response for 24 hours, and different requests with the same key are refused. The row is written before the effect. It
// contains the data of the response and never a secret.

import { randomUUID } from 'node:crypto';
import type { IdempotencyRow, IdempotencyRows, IdempotencyRun } from '../../engines/store/rows/idempotency.ts';
import { addMs, type Clock } from '../../kit/clock.ts';
import type { AccountId, ApplicationId, HostId, SessionId } from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';
import type { Secret } from '../../kit/secret.ts';
import { fault } from '../faults.ts';
import { requestDigest } from './request-digest.ts';

export type { IdempotencyRun };

const RETENTION_MS = 24 * 60 * 60_000;
/** Maximum time that an identical request waits for the first request. */
const WAIT_MAX_MS = 30_000;
/** Interval at which the state of a first request in another process is read. */
const POLL_INTERVAL_MS = 250;
const SWEEP_BATCH_SIZE = 1_000;

export interface WriteRequest {
  readonly owner: AccountId | ApplicationId;
  readonly key: string;
  readonly operation: string;
  readonly path: string;
  readonly body: unknown;
  /**
   * Whether the effect is written in one transaction with the row, so that an interrupted run has written either the
   * whole effect or nothing.
   */
  readonly isAtomic: boolean;
}

/**
 * The data from which the response to an identical request is made. If `kept` is missing, the first run was interrupted
 * after it had created the session.
 */
export interface FirstRunResult {
  readonly sessionId?: SessionId;
  readonly kept?: JsonObject;
}

export interface IdempotencyParts {
  readonly rows: IdempotencyRows;
  /**
   * Id of this host. A run with this id that this process has not started belongs to an earlier process, and has
   * ended.
   */
  readonly host: HostId;
  /** Whether a host is still running. The runs of a host that is not running have ended. */
  readonly isLiving: (host: HostId) => boolean;
  readonly secret: Secret;
  readonly clock: Clock;
}

interface RunningRequest {
  /** The digest of the running request. Absent while its row is being read. */
  digest?: Buffer;
  readonly endPromise: Promise<void>;
}

export class Idempotency {
  readonly #parts: IdempotencyParts;
  readonly #runningRequests = new Map<string, RunningRequest>();

  constructor(parts: IdempotencyParts) {
    this.#parts = parts;
  }

  /**
   * Returns a run, which the caller must end, or the stored result of an identical request. Waits for an identical
   * request that is running.
   */
  async begin(write: WriteRequest, signal: AbortSignal): Promise<{ run: Run } | { again: FirstRunResult }> {
    const { clock } = this.#parts;
    const deadlineMs = clock.monotonicMs() + WAIT_MAX_MS;
    const row = this.#row(write);
    for (;;) {
      const runningRequest = this.#runningRequests.get(runKey(row));
      if (runningRequest?.digest && !runningRequest.digest.equals(row.requestDigest)) throw requestMismatch();
      const beginResult = runningRequest ? 'runs' : await this.#begin(row, write.isAtomic);
      if (beginResult === 'free') continue;
      if (beginResult !== 'runs') return beginResult;
      const leftMs = deadlineMs - clock.monotonicMs();
      if (leftMs <= 0) throw stillRunning();
      await this.#pause(
        runningRequest?.endPromise,
        runningRequest ? leftMs : Math.min(leftMs, POLL_INTERVAL_MS),
        signal,
      );
    }
  }

  /**
   * Returns a digest that is the same for identical requests. It is used to recognize identical creates that have no
   * idempotency key.
   */
  digestOf(operation: string, body: unknown): Buffer {
    return requestDigest(this.#parts.secret, [operation, body]);
  }

  /** Deletes keys that are older than 24 hours. */
  async sweep(): Promise<{ swept: number }> {
    return { swept: await this.#parts.rows.sweep(this.#parts.clock.now(), SWEEP_BATCH_SIZE) };
  }

  async #begin(
    row: IdempotencyRow,
    isAtomic: boolean,
  ): Promise<{ run: Run } | { again: FirstRunResult } | 'runs' | 'free'> {
    const { promise: whenEnded, resolve: end } = Promise.withResolvers<void>();
    const forget = (): void => {
      this.#runningRequests.delete(runKey(row));
      end();
    };
    const runningRequest: RunningRequest = { endPromise: whenEnded };
    this.#runningRequests.set(runKey(row), runningRequest);
    try {
      const insertResult = await this.#parts.rows.begin(row);
      if ('began' in insertResult) {
        runningRequest.digest = row.requestDigest;
        return { run: new Run(row, this.#parts.rows, forget) };
      }
      const outcome = await this.#outcomeOf(insertResult.existing, row, isAtomic);
      forget();
      return outcome;
    } catch (error) {
      forget();
      throw error;
    }
  }

  async #outcomeOf(
    existingRow: IdempotencyRow,
    { requestDigest }: IdempotencyRow,
    isAtomic: boolean,
  ): Promise<{ again: FirstRunResult } | 'runs' | 'free'> {
    const { sessionId, kept, hostId } = existingRow;
    if (!existingRow.requestDigest.equals(requestDigest)) throw requestMismatch();
    const sessionField = sessionId ? { sessionId } : {};
    if (kept) return { again: { ...sessionField, kept } };
    if (hostId !== this.#parts.host && this.#parts.isLiving(hostId)) return 'runs';
    if (sessionId) return { again: sessionField };
    if (!isAtomic) throw firstRunInterrupted();
    await this.#parts.rows.release(existingRow);
    return 'free';
  }

  /** Sleeps until the first request has ended or the caller has disconnected, but for at most `ms` milliseconds. */
  async #pause(whenEnded: Promise<void> | undefined, ms: number, signal: AbortSignal): Promise<void> {
    const timeoutController = new AbortController();
    const timeout = this.#parts.clock.sleep(ms, AbortSignal.any([signal, timeoutController.signal])).catch(() => {});
    await Promise.race(whenEnded ? [timeout, whenEnded] : [timeout]);
    timeoutController.abort(new Error('no longer waiting'));
    if (signal.aborted) throw stillRunning();
  }

  #row({ owner, key, operation, path, body }: WriteRequest): IdempotencyRow {
    const { secret, host, clock } = this.#parts;
    const now = clock.now();
    return {
      owner,
      keyDigest: requestDigest(secret, ['key', key]),
      run: randomUUID(),
      requestDigest: requestDigest(secret, [operation, path, body]),
      operation,
      hostId: host,
      createdAt: now,
      expiresAt: addMs(now, RETENTION_MS),
    };
  }
}

/** The run of the first request with a key. The caller must call exactly one of `keep`, `release` and `abandon`. */
export class Run {
  readonly row: IdempotencyRun;
  readonly #rows: IdempotencyRows;
  readonly #forget: () => void;

  constructor(row: IdempotencyRun, rows: IdempotencyRows, forget: () => void) {
    this.row = row;
    this.#rows = rows;
    this.#forget = forget;
  }

  /** Called if the request took effect. Identical requests then get a response made from `storedResponse`. */
  keep(storedResponse: JsonObject): Promise<void> {
    return this.#end(() => this.#rows.keep(this.row, storedResponse));
  }

  /** Called if the request was refused and had no effect. The key can then be used again. */
  release(): Promise<void> {
    return this.#end(() => this.#rows.release(this.row));
  }

  /**
   * Called if it is unknown whether the request took effect. The row then determines the response to identical
   * requests, as after a crash.
   */
  abandon(): void {
    this.#forget();
  }

  async #end(write: () => Promise<void>): Promise<void> {
    try {
      await write();
    } finally {
      this.#forget();
    }
  }
}

const runKey = ({ owner, keyDigest }: IdempotencyRun): string => `${owner}:${keyDigest.toString('hex')}`;

const requestMismatch = (): Error =>
  fault('idempotency_conflict', 'This Idempotency-Key was already used with a different request.', {
    advice: 'Use a new key for a new request. This request had no effect.',
  });

const stillRunning = (): Error =>
  fault('idempotency_conflict', 'The first request with this Idempotency-Key is still running.', {
    advice: 'Send the same request with the same key again later. This request had no effect.',
  });

const firstRunInterrupted = (): Error =>
  fault(
    'idempotency_conflict',
    'The first request with this Idempotency-Key was interrupted, and may have taken effect.',
    {
      advice: 'Check whether the first request took effect. If not, send the request with a new key.',
    },
  );
