// Runs invocations. The dispatch line: `dispatched` is committed before the first byte of an effect, so after a crash the row
// says whether the effect may have happened. An end and its receipt are one statement.
import type { InvocationError } from '../../../contract/invocations.ts';
import type { DriveFailed } from '../../engines/driver/command.ts';
import type { KeyRow } from '../../engines/store/rows/credentials.ts';
import type { InvocationEnd, InvocationRow, InvocationRows } from '../../engines/store/rows/invocations.ts';
import { digestOf } from '../../kit/canonical-json.ts';
import { plus } from '../../kit/clock.ts';
import { isFault, reason } from '../../kit/fault.ts';
import {
  type ApplicationId,
  type InvocationId,
  type KeyId,
  newId,
  type ReceiptId,
  type SessionId,
} from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';
import { type CreditRates, type Metered, meteredCost, startedSeconds } from '../../kit/metered-cost.ts';
import type { Runtime } from '../../kit/runtime.ts';
import type { AgentCaller } from '../identity/caller.ts';
import { statusOf } from '../identity/credential-rules.ts';
import type { CallableOperation } from './callable.ts';
import { CALLABLE } from './callable.ts';
import { capturedOf } from './cost.ts';
import { type InvocationFiles, OUTPUT_MS } from './files.ts';
import type { ManagedOperations, Place } from './managed.ts';
import { RECEIPT_TYPE, receiptPayload } from './receipt.ts';

/** An invocation whose effect is `read` is run at most this often. */
const ATTEMPTS_MAX = 3;
const RECOVERED_AT_ONCE = 10;
const COST_LOOK_MS = 250;
/** What an unknown outcome holds is given back after this time. */
const HELD_UNKNOWN_MS = 30 * 24 * 3_600_000;

export interface ExecutionsParts extends Pick<Runtime, 'clock' | 'log' | 'host'> {
  readonly rows: InvocationRows;
  readonly keys: { get(application: ApplicationId, id: KeyId): Promise<KeyRow | undefined> };
  readonly managed: ManagedOperations;
  readonly files: Pick<InvocationFiles, 'keep'>;
  readonly sign: (typ: string, payload: Uint8Array) => Promise<string>;
  readonly openInput: (row: InvocationRow) => Promise<JsonObject>;
  readonly isDriveFailed: (error: unknown) => error is DriveFailed;
  readonly issuer: string;
  /** What sessions cost. */
  readonly rates: CreditRates;
  /** The bytes that a session moved over the network. Undefined: it has ended. */
  readonly bytesOf: (session: SessionId) => number | undefined;
}

interface Running {
  /** Resolves when the end is written. */
  readonly ended: Promise<void>;
  readonly abort: AbortController;
}

interface Ending {
  readonly row: InvocationRow;
  readonly end: Omit<InvocationEnd, 'receipt' | 'receiptId'>;
  readonly recorded: boolean | undefined;
}

class Cancelled extends Error {}
class CostLimit extends Error {}

export class Executions {
  readonly #parts: ExecutionsParts;
  readonly #running = new Map<InvocationId, Running>();
  /** Invocations whose row is being inserted. */
  readonly #held = new Set<InvocationId>();
  /** Ends that could not be written because the database did not respond. */
  readonly #unwritten = new Map<InvocationId, Ending>();
  #isClosed = false;

  constructor(parts: ExecutionsParts) {
    this.#parts = parts;
  }

  /** Inserts and starts an invocation, which `recover` leaves alone meanwhile. */
  async holding<T>(id: InvocationId, work: () => Promise<T>): Promise<T> {
    this.#held.add(id);
    try {
      return await work();
    } finally {
      this.#held.delete(id);
    }
  }

  /**
   * Starts an accepted invocation. Throws the refusal of its session; then nothing was started, and the row is still
   * `accepted`.
   */
  async start(caller: AgentCaller, row: InvocationRow, operation: CallableOperation, input: JsonObject): Promise<void> {
    const abort = new AbortController();
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    this.#running.set(row.id, { ended, abort });
    const done = (): void => {
      this.#running.delete(row.id);
      resolve();
    };
    try {
      const { managed, rows, clock } = this.#parts;
      const place = await managed.place(caller, row.id, input, abort.signal);
      const dispatched = await rows.dispatch(row.id, clock.now(), place.sessionId).catch(async error => {
        await this.#release(caller, place);
        throw error;
      });
      if (dispatched) void this.#run(caller, dispatched, operation, input, place, abort).finally(done);
      else await this.#release(caller, place).finally(done);
    } catch (error) {
      done();
      throw error;
    }
  }

  /** Resolves when the invocation has ended, or at once if it does not run in this process. */
  ended(id: InvocationId): Promise<void> {
    return this.#running.get(id)?.ended ?? Promise.resolve();
  }

  isRunning(id: InvocationId): boolean {
    return this.#running.has(id);
  }

  /** Stops an invocation of this process; it ends as failed. */
  cancel(id: InvocationId): void {
    this.#running.get(id)?.abort.abort(new Cancelled('The invocation was cancelled.'));
  }

  /** Ends an invocation that has not started, or that runs nowhere. */
  async endWithout(row: InvocationRow, state: InvocationEnd['state'], error: InvocationError): Promise<void> {
    await this.#end({ row, end: this.#endOf(state, row, { error: { ...error } }), recorded: undefined });
  }

  /** A clock task: writes ends that could not be written, and takes up what an earlier process has left. */
  async recover(): Promise<{ recovered: number }> {
    for (const ending of [...this.#unwritten.values()]) await this.#write(ending);
    const open = await this.#parts.rows.open(this.#parts.host, RECOVERED_AT_ONCE + this.#running.size);
    const isElsewhere = ({ id }: InvocationRow): boolean =>
      !this.#running.has(id) && !this.#held.has(id) && !this.#unwritten.has(id);
    const left = open.filter(isElsewhere).slice(0, RECOVERED_AT_ONCE);
    for (const row of left) await this.#takeUp(row);
    return { recovered: left.length };
  }

  /** What runs is left to the next process, which runs reads again. */
  close(): void {
    this.#isClosed = true;
    for (const { abort } of this.#running.values()) abort.abort(new Error('the service is stopping'));
  }

  async #takeUp(row: InvocationRow): Promise<void> {
    const { keys, managed, log, clock } = this.#parts;
    const key = await keys.get(row.applicationId, row.keyId);
    const operation = CALLABLE.find(one => one.id === row.operationId && one.revision === row.operationRevision);
    const hasBegun = row.state === 'dispatched';
    if (hasBegun && row.effect !== 'read') return this.endWithout(row, 'ambiguous', INTERRUPTED);
    if (row.attempts >= ATTEMPTS_MAX) return this.endWithout(row, 'failed', INTERRUPTED);
    if (!key || statusOf(key, clock.now()) !== 'active') return this.endWithout(row, 'failed', KEY_ENDED);
    if (!operation) return this.endWithout(row, 'failed', CHANGED);
    const caller = callerOf(key);
    log.info('invocation.run_again', { invocationId: row.id, attempts: row.attempts });
    await managed.releaseLeft(caller, row.id);
    try {
      await this.start(caller, row, operation, await this.#parts.openInput(row));
    } catch (error) {
      if (!isFault(error)) throw error;
      await this.endWithout(row, 'failed', { ...errorOf(error.code, error.message, false), phase: 'before' });
    }
  }

  async #run(
    caller: AgentCaller,
    row: InvocationRow,
    operation: CallableOperation,
    input: JsonObject,
    place: Place,
    abort: AbortController,
  ): Promise<void> {
    const { recorded } = place;
    const over = new AbortController();
    void this.#watchCost(row, place, abort, over.signal);
    try {
      const produced = await abortable(abort.signal, this.#parts.managed.run(caller, operation.id, input, place));
      const { file } = produced;
      const artifact = file && (await this.#parts.files.keep(row.applicationId, row.id, file.bytes, file.mimeType));
      const output: JsonObject = artifact ? { ...produced.output, artifact } : produced.output;
      const end = this.#endOf('succeeded', row, { output, place });
      await this.#end({ row, end, recorded });
    } catch (error) {
      if (this.#isClosed) return;
      await this.#end({ row, end: this.#endOf('failed', row, { error: this.#failure(error), place }), recorded });
    } finally {
      over.abort();
      // A service that is stopping leaves the session to the next one, as it leaves the invocation.
      if (!this.#isClosed) void this.#release(caller, place);
    }
  }

  #endOf(
    state: InvocationEnd['state'],
    row: InvocationRow,
    { output, error, place }: { output?: JsonObject; error?: InvocationError; place?: Place },
  ): Ending['end'] {
    const { clock, rates } = this.#parts;
    const endedAt = clock.now();
    const metered = this.#meteredOf(place, endedAt);
    const phase = error === undefined ? {} : { phase: error.phase };
    const captured = capturedOf(rates, { state, metered, reserved: row.reserved, ...phase });
    return {
      ...{ state, endedAt, meters: { ...row.meters, browserSeconds: metered.seconds, egressBytes: metered.bytes } },
      ...(captured === undefined ? { heldUntil: plus(endedAt, HELD_UNKNOWN_MS) } : { captured }),
      ...(output ? { output, outputDigest: digestOf(output), outputUntil: plus(endedAt, OUTPUT_MS) } : {}),
      ...(error ? { error: { ...error, details: error.details ?? {} } } : {}),
    };
  }

  /** A session that the caller named pays for itself. */
  #meteredOf(place: Place | undefined, until: Date): Metered {
    if (!place?.isOwn) return { seconds: 0, bytes: 0 };
    return { seconds: startedSeconds(place.startedAt, until), bytes: this.#parts.bytesOf(place.sessionId) ?? 0 };
  }

  /** Stops the call as soon as it costs more than it holds. */
  async #watchCost(row: InvocationRow, place: Place, abort: AbortController, over: AbortSignal): Promise<void> {
    const { clock, rates } = this.#parts;
    if (row.reserved === 0 || !place.isOwn) return;
    while (!over.aborted) {
      if (meteredCost(rates, this.#meteredOf(place, clock.now())) > row.reserved)
        return abort.abort(new CostLimit(`The call reached its limit of ${row.reserved} micro-credits.`));
      await clock.sleep(COST_LOOK_MS, over).catch(() => {}); // Rejects when the call is over.
    }
  }

  async #end(ending: Ending): Promise<void> {
    this.#unwritten.set(ending.row.id, ending);
    await this.#write(ending);
  }

  /** Tried again by the task if it fails. */
  async #write({ row, end, recorded }: Ending): Promise<void> {
    const { rows, sign, issuer, log, clock } = this.#parts;
    try {
      const receiptId = newId<ReceiptId>(clock.now());
      const { state, endedAt, outputDigest, error, meters, captured } = end;
      const errorCode = error && typeof error.code === 'string' ? error.code : undefined;
      const payload = receiptPayload(row, {
        ...{ receiptId, issuer, endedAt, status: state, meters },
        ...(captured === undefined ? {} : { captured }),
        ...(outputDigest === undefined ? {} : { outputDigest }),
        ...(errorCode === undefined ? {} : { errorCode }),
        ...(recorded === undefined ? {} : { recorded }),
      });
      await rows.end(row.id, { ...end, receiptId, receipt: await sign(RECEIPT_TYPE, payload) });
      this.#unwritten.delete(row.id);
    } catch (error) {
      log.warn('invocation.end_not_written', { invocationId: row.id, reason: reason(error) });
    }
  }

  #failure(error: unknown): InvocationError {
    if (error instanceof Cancelled) return errorOf('cancelled', error.message, true);
    if (error instanceof CostLimit) return errorOf('cost_limit', error.message, false);
    if (isFault(error)) return errorOf(error.code, error.message, false);
    if (!this.#parts.isDriveFailed(error)) {
      this.#parts.log.error('invocation.failed', { error });
      return errorOf('internal', 'The service failed unexpectedly.', true);
    }
    const { why, message, details } = error;
    if (why === 'page') return { ...errorOf('page_failed', message, true), details };
    if (why === 'timeout' || why === 'too_long') return errorOf('timeout', message, true);
    if (why === 'command') return errorOf('not_possible', message, false);
    return errorOf('browser_lost', message, true);
  }

  async #release(caller: AgentCaller, place: Place): Promise<void> {
    await this.#parts.managed.release(caller, place).catch(error => {
      if (!isFault(error, 'session_not_running'))
        this.#parts.log.warn('invocation.not_released', { sessionId: place.sessionId, reason: reason(error) });
    });
  }
}

const errorOf = (code: string, message: string, retryable: boolean): InvocationError => ({
  ...{ code, message, retryable, phase: 'during' },
});

const INTERRUPTED: InvocationError = {
  ...errorOf('interrupted', 'The service ended while the operation was under way.', true),
};
const KEY_ENDED: InvocationError = {
  ...errorOf('invalid_credentials', 'The agent key ended before the operation was run.', false),
  phase: 'before',
};
const CHANGED: InvocationError = {
  ...errorOf('revision_conflict', 'The operation has another revision since the service was upgraded.', true),
  phase: 'before',
};

/** The caller of an earlier process. */
const callerOf = ({ id, applicationId, scopes }: KeyRow): AgentCaller => ({
  ...{ kind: 'agentKey', applicationId, keyId: id, scopes: new Set(scopes) },
  source: { ip: '' },
});

/** Rejects with the signal's reason as soon as it is aborted. */
function abortable<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  signal.throwIfAborted();
  const { promise, reject } = Promise.withResolvers<never>();
  const stop = (): void => reject(signal.reason);
  signal.addEventListener('abort', stop, { once: true });
  return Promise.race([work, promise]).finally(() => signal.removeEventListener('abort', stop));
}
