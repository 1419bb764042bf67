// Runs invocations. The state `dispatched` is committed before a call sends anything that may have an effect, so after
// a crash the row shows whether the effect may have happened. The end and its receipt are written in one statement.
import type { InvocationError } from '../../../contract/invocations.ts';
import type { ManagedOperationId } from '../../../contract/managed-operations.ts';
import { isMemoryOperation } from '../../../contract/memory-operations.ts';
import type { DriveFailed } from '../../engines/driver/command.ts';
import type { KeyRow } from '../../engines/store/rows/credentials.ts';
import type { HandoffRows } from '../../engines/store/rows/handoffs.ts';
import type { InvocationEnd, InvocationRow, InvocationRows } from '../../engines/store/rows/invocations.ts';
import { digestOf } from '../../kit/canonical-json.ts';
import { addMs } from '../../kit/clock.ts';
import { isFault, reason } from '../../kit/fault.ts';
import {
  type ActionId,
  type ApplicationId,
  type InvocationId,
  type KeyId,
  newId,
  type ReceiptId,
  type SessionId,
} from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';
import { type CreditRates, type MeteredUse, meteredCost, secondsRoundedUp } from '../../kit/metered-cost.ts';
import type { Runtime } from '../../kit/runtime.ts';
import { withTimeout } from '../../kit/wait.ts';
import type { CallableOperation, Catalogue, HttpCallable } from '../configured-operations/callable.ts';
import type { HttpOperations } from '../configured-operations/http-operations.ts';
import { inputRetention } from '../configured-operations/retention.ts';
import type { AgentMemory } from '../consumers/agent-memory.ts';
import { fault } from '../faults.ts';
import { type AgentCaller, agentCallerOf } from '../identity/caller.ts';
import { statusOf } from '../identity/credential-rules.ts';
import type { BrowserOperations } from './browser-operations.ts';
import { captureAmountOf } from './cost.ts';
import { type InvocationFiles, OUTPUT_RETENTION_MS } from './files.ts';
import type { ManagedOperations } from './managed.ts';
import type { Outcome, PreparedCall, SuccessfulOutcome, Upstream } from './prepared.ts';
import { RECEIPT_TYPE, receiptPayload } from './receipt.ts';

/** Maximum number of attempts of an invocation whose effect is `read`. */
const ATTEMPTS_MAX = 3;
/**
 * Maximum number of attempts of any other invocation. A second attempt is made only if it sends the same idempotency
 * key, by which the called service recognizes the repetition.
 */
const KEYED_ATTEMPTS_MAX = 2;
/** How long a stopping service waits for effects in progress, so that their outcomes become known. */
const SHUTDOWN_GRACE_MS = 5_000;
const RECOVERY_BATCH_SIZE = 10;
/** After this many unexpected errors during its recovery, an invocation ends. */
const RECOVERIES_MAX = 5;
const COST_CHECK_INTERVAL_MS = 250;
/** Credit that is held for an unknown outcome is given back after this time. */
const UNKNOWN_OUTCOME_HOLD_MS = 30 * 24 * 3_600_000;

export interface ExecutionsParts extends Pick<Runtime, 'clock' | 'log' | 'host'> {
  readonly rows: InvocationRows;
  readonly keys: { get(application: ApplicationId, id: KeyId): Promise<KeyRow | undefined> };
  readonly catalogue: Pick<Catalogue, 'findRevision'>;
  readonly managed: Pick<ManagedOperations, 'prepare' | 'releaseLeftoverSessions'>;
  readonly http: Pick<HttpOperations, 'prepare'>;
  readonly browser: Pick<BrowserOperations, 'prepare'>;
  readonly memory: Pick<AgentMemory, 'prepare'>;
  /** Returns the part of a receipt that describes the end user whom the call names, if any. */
  readonly endUserOf: (row: InvocationRow) => Promise<JsonObject | undefined>;
  readonly files: Pick<InvocationFiles, 'keep'>;
  readonly sign: (typ: string, payload: Uint8Array) => Promise<string>;
  readonly openInput: (row: InvocationRow) => Promise<JsonObject>;
  readonly isDriveFailed: (error: unknown) => error is DriveFailed;
  readonly issuer: string;
  /** Returns the part of a receipt that describes the Action that the invocation executes. */
  readonly receiptOf: (action: ActionId, application: ApplicationId) => Promise<JsonObject>;
  readonly handoffs: Pick<HandoffRows, 'listControlledBetween'>;
  /** The rates that are charged for sessions. */
  readonly rates: CreditRates;
  /** The bytes that a session has transferred over the network. Undefined if the session has ended. */
  readonly bytesOf: (session: SessionId) => number | undefined;
}

interface RunningInvocation {
  /**
   * Resolves when the call has started or ended. Rejects with the refusal if nothing was started and the row was
   * removed.
   */
  readonly started: PromiseWithResolvers<void>;
  /**
   * Resolves with the ended row when the end has been written. Resolves with undefined if the end was not written, or
   * not by this process.
   */
  readonly ended: PromiseWithResolvers<InvocationRow | undefined>;
  readonly abortController: AbortController;
  readonly effect: InvocationRow['effect'];
  readonly isResumable: boolean;
  /** Whether the effect may have begun. */
  mayHaveBegun: boolean;
}

interface Ending {
  readonly row: InvocationRow;
  readonly end: Omit<InvocationEnd, 'receipt' | 'receiptId'>;
  readonly recorded?: boolean;
  readonly upstream?: Partial<Upstream>;
}

/** The fault for a call that is stopped before its start. A call that has started is left to the next process. */
const serviceStopping = () =>
  fault('service_stopping', 'The service is stopping. Nothing was started.', {
    advice: 'Send the request again in a few seconds, with the same Idempotency-Key if it had one.',
  });

class CancelledError extends Error {}
class CostLimitError extends Error {}

export class Executions {
  readonly #parts: ExecutionsParts;
  readonly #runningInvocations = new Map<InvocationId, RunningInvocation>();
  /** Invocations that are being inserted and started. */
  readonly #heldIds = new Set<InvocationId>();
  /** How many times the recovery of each invocation has failed unexpectedly. */
  readonly #failureCounts = new Map<InvocationId, number>();
  /**
   * The last known byte count of the session of each call. Used when the session has ended and its bytes can no longer
   * be read.
   */
  readonly #lastBytes = new WeakMap<object, number>();
  /** The endings that have not been written yet, because the database did not respond. */
  readonly #unwrittenEndings = new Map<InvocationId, Ending>();
  #isClosed = false;

  constructor(parts: ExecutionsParts) {
    this.#parts = parts;
  }

  /** Runs `work`, which inserts and starts an invocation. Meanwhile, `recover` ignores this invocation. */
  async runHeld<T>(id: InvocationId, work: () => Promise<T>): Promise<T> {
    this.#heldIds.add(id);
    try {
      return await work();
    } finally {
      this.#heldIds.delete(id);
    }
  }

  /**
   * Starts an accepted invocation. Throws a `Fault` if the session for it is refused. In that case, nothing was started
   * and the row is still `accepted`. If `undo` is given, it then removes the row, and `whenStarted` rejects with the
   * refusal.
   */
  async start(
    caller: AgentCaller,
    row: InvocationRow,
    operation: CallableOperation,
    input: JsonObject,
    undo?: () => Promise<void>,
  ): Promise<void> {
    const runningInvocation = createRunningInvocation(row);
    this.#runningInvocations.set(row.id, runningInvocation);
    try {
      await this.#begin(caller, row, operation, input, runningInvocation, undo);
      runningInvocation.started.resolve();
    } catch (error) {
      if (undo) runningInvocation.started.reject(error);
      else runningInvocation.started.resolve();
      throw error;
    }
  }

  /** Begins the invocation, or ends it if it was cancelled before its effect could begin. */
  async #begin(
    caller: AgentCaller,
    row: InvocationRow,
    operation: CallableOperation,
    input: JsonObject,
    runningInvocation: RunningInvocation,
    undo?: () => Promise<void>,
  ): Promise<void> {
    const { abortController, ended } = runningInvocation;
    const finish = (endedRow?: InvocationRow): void => {
      this.#runningInvocations.delete(row.id);
      ended.resolve(endedRow);
    };
    try {
      // `close` stopped only the calls that were running when it was called.
      if (this.#isClosed) throw serviceStopping();
      const preparedCall = await this.#prepare(caller, row, operation, input, abortController.signal);
      const dispatchedRow = await this.#dispatch(row, preparedCall, runningInvocation).catch(async error => {
        const sessionRelease = this.#release(preparedCall);
        // A cancellation does not wait for the end of the session.
        if (!(error instanceof CancelledError)) await sessionRelease;
        throw error;
      });
      if (dispatchedRow) void this.#run(dispatchedRow, preparedCall, abortController).then(finish, () => finish());
      else await this.#release(preparedCall).finally(() => finish());
    } catch (error) {
      const { reason: abortReason } = abortController.signal;
      if (abortReason instanceof CancelledError) return finish(await this.#endCancelled(row, operation, abortReason));
      try {
        await undo?.();
      } finally {
        finish();
      }
      throw error;
    }
  }

  #prepare(
    caller: AgentCaller,
    row: InvocationRow,
    operation: CallableOperation,
    input: JsonObject,
    signal: AbortSignal,
  ): Promise<PreparedCall> {
    const { managed, http, browser, memory } = this.#parts;
    switch (operation.kind) {
      case 'http':
        return http.prepare(operation, row, input);
      case 'browser':
        return browser.prepare(caller, operation, row, input, signal);
      case 'managed':
        if (isMemoryOperation(operation.id)) return memory.prepare(caller, operation.id, input);
        return managed.prepare(caller, operation.id, row.id, input, signal);
    }
  }

  /** Commits that the effect may begin, unless the invocation was cancelled or the service was stopped meanwhile. */
  async #dispatch(
    { id }: InvocationRow,
    { session }: PreparedCall,
    runningInvocation: RunningInvocation,
  ): Promise<InvocationRow | undefined> {
    runningInvocation.abortController.signal.throwIfAborted();
    runningInvocation.mayHaveBegun = true;
    return this.#parts.rows.dispatch(id, this.#parts.clock.now(), session?.id);
  }

  /**
   * Ends an invocation that was cancelled before this attempt began. Its state is then `failed` if an earlier attempt
   * has run, and `cancelled` otherwise.
   */
  #endCancelled(
    row: InvocationRow,
    operation: CallableOperation,
    { message }: CancelledError,
  ): Promise<InvocationRow | undefined> {
    const error = errorOf('cancelled', message, true);
    const outcome =
      row.state === 'accepted'
        ? ({ state: 'cancelled', error: { ...error, phase: 'before' } } as const)
        : ({ state: 'failed', error } as const);
    return this.#end({ row, end: this.#endOf(row, outcome, inputRetentionOf(operation)) });
  }

  /**
   * Resolves when the invocation has ended, with its row if this process wrote the end. Resolves at once if the
   * invocation is not running in this process.
   */
  whenEnded(id: InvocationId): Promise<InvocationRow | undefined> {
    return this.#runningInvocations.get(id)?.ended.promise ?? Promise.resolve(undefined);
  }

  /**
   * Resolves when the invocation has been started, or has ended. Resolves at once if it is not running in this process.
   * @throws Fault the refusal, if nothing was started and the row was removed.
   */
  async whenStarted(id: InvocationId): Promise<void> {
    await this.#runningInvocations.get(id)?.started.promise;
  }

  /** Whether the invocation is left to the next process, because this process is stopping. */
  isLeftToNextProcess(id: InvocationId): boolean {
    return this.#isClosed && !this.#runningInvocations.has(id);
  }

  isRunning(id: InvocationId): boolean {
    return this.#runningInvocations.has(id);
  }

  /**
   * Stops an invocation of this process. The invocation ends as cancelled if nothing was started, otherwise as failed.
   * Returns false if the invocation is not running here, or if an effect other than `read` may have begun.
   */
  cancel(id: InvocationId): boolean {
    const runningInvocation = this.#runningInvocations.get(id);
    if (!runningInvocation || (runningInvocation.mayHaveBegun && runningInvocation.effect !== 'read')) return false;
    runningInvocation.abortController.abort(new CancelledError('The invocation was cancelled.'));
    return true;
  }

  /** Ends an invocation that has not started, or that is not running anywhere. */
  async endUnstarted(
    row: InvocationRow,
    state: 'failed' | 'ambiguous' | 'cancelled',
    error: InvocationError,
    options: Pick<PreparedCall, 'inputKeptMs'> = {},
  ): Promise<void> {
    await this.#end({ row, end: this.#endOf(row, { state, error }, options) });
  }

  /**
   * A clock task: writes ends that could not be written before, and takes over invocations that an earlier process left
   * unfinished.
   */
  async recover(): Promise<{ recovered: number }> {
    for (const ending of [...this.#unwrittenEndings.values()]) await this.#write(ending);
    if (this.#isClosed) return { recovered: 0 };
    // An invocation that ends or begins while the rows are read must not be run again. The state in its row prevents a
    // second effect in any case.
    const trackedBefore = this.#trackedIds();
    const openRows = await this.#parts.rows.listOpen(this.#parts.host, RECOVERY_BATCH_SIZE + trackedBefore.length);
    const trackedIds = new Set([...trackedBefore, ...this.#trackedIds()]);
    const leftoverRows = openRows.filter(({ id }) => !trackedIds.has(id)).slice(0, RECOVERY_BATCH_SIZE);
    for (const row of leftoverRows) await this.#tryToRecover(row);
    return { recovered: leftoverRows.length };
  }

  #trackedIds(): InvocationId[] {
    return [...this.#runningInvocations.keys(), ...this.#heldIds, ...this.#unwrittenEndings.keys()];
  }

  /**
   * Waits a short time for effects in progress. Invocations that are still running afterwards are left to the next
   * process, which repeats those with the effect `read`.
   */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const stop = (one: RunningInvocation): void => one.abortController.abort(serviceStopping());
    const runningInvocations = [...this.#runningInvocations.values()];
    for (const one of runningInvocations.filter(({ effect, isResumable }) => effect === 'read' || isResumable))
      stop(one);
    const effectfulInvocations = runningInvocations.filter(
      ({ effect, isResumable }) => effect !== 'read' && !isResumable,
    );
    const effectsEnded = Promise.all(effectfulInvocations.map(({ ended }) => ended.promise)).then(() => {});
    if (effectfulInvocations.length > 0)
      await withTimeout(SHUTDOWN_GRACE_MS, 'effects in progress', () => effectsEnded).catch(() => {});
    for (const one of effectfulInvocations) stop(one);
  }

  /**
   * An invocation whose recovery fails unexpectedly must not block those after it, and ends after RECOVERIES_MAX tries.
   */
  async #tryToRecover(row: InvocationRow): Promise<void> {
    try {
      await this.#recoverInvocation(row);
      this.#failureCounts.delete(row.id);
    } catch (error) {
      if (isFault(error) || this.#isClosed) throw error;
      this.#parts.log.error('invocation.not_recovered', { invocationId: row.id, reason: reason(error) });
      const failureCount = (this.#failureCounts.get(row.id) ?? 0) + 1;
      this.#failureCounts.set(row.id, failureCount);
      if (failureCount < RECOVERIES_MAX) return;
      this.#failureCounts.delete(row.id);
      const mayHaveBegun = row.state === 'dispatched' && row.effect !== 'read';
      const [state, endError] = mayHaveBegun
        ? (['ambiguous', UNKNOWN_OUTCOME_ERROR] as const)
        : (['failed', NOT_STARTED_ERROR] as const);
      await this.endUnstarted(row, state, endError, await this.#retentionFor(row));
    }
  }

  /** Returns how long the input is kept. If the operation cannot be read either, the input is not kept. */
  async #retentionFor({ applicationId, operationId, operationRevision }: InvocationRow) {
    const revision = this.#parts.catalogue.findRevision(applicationId, operationId, operationRevision);
    const operation = await revision.catch(() => undefined);
    return operation ? inputRetentionOf(operation) : {};
  }

  async #recoverInvocation(row: InvocationRow): Promise<void> {
    const { keys, managed, log, clock, catalogue } = this.#parts;
    const key = await keys.get(row.applicationId, row.keyId);
    const operation = await catalogue.findRevision(row.applicationId, row.operationId, row.operationRevision);
    const hasIdempotencyKey = operation?.kind === 'http' && sendsIdempotencyKey(operation);
    const endOptions = operation ? inputRetentionOf(operation) : {};
    const mayRunAgain = isResumable(row) || (hasIdempotencyKey && row.attempts < KEYED_ATTEMPTS_MAX);
    if (row.state === 'dispatched' && row.effect !== 'read' && !mayRunAgain)
      return this.endUnstarted(row, 'ambiguous', UNKNOWN_OUTCOME_ERROR, endOptions);
    if (row.attempts >= ATTEMPTS_MAX && !isResumable(row))
      return this.endUnstarted(row, 'failed', INTERRUPTED_ERROR, endOptions);
    // An invocation that cannot be run again ends as failed, or with an unknown outcome if its effect may have begun.
    const endState = row.state === 'dispatched' && row.effect !== 'read' ? 'ambiguous' : 'failed';
    if (!key || statusOf(key, clock.now()) !== 'active')
      return this.endUnstarted(row, endState, KEY_INACTIVE_ERROR, endOptions);
    if (!operation) return this.endUnstarted(row, endState, REVISION_CHANGED_ERROR);
    const caller = callerOf(key);
    log.info('invocation.run_again', { invocationId: row.id, attempts: row.attempts });
    if (operation.kind !== 'http') await managed.releaseLeftoverSessions(caller, row.id);
    const input = await this.#openInput(row);
    if (!input) return this.endUnstarted(row, endState, INPUT_UNREADABLE_ERROR, endOptions);
    try {
      await this.start(caller, row, operation, input);
    } catch (error) {
      // A service that stops leaves the invocation to the next process.
      if (!isFault(error) || this.#isClosed) throw error;
      const refusalError: InvocationError = { ...errorOf(error.code, error.message, false), phase: 'before' };
      await this.endUnstarted(row, endState, refusalError, endOptions);
    }
  }

  /**
   * Returns undefined if the input can never be opened. Throws a Fault if the database does not respond. The next run
   * of `recover` then tries again.
   */
  #openInput(row: InvocationRow): Promise<JsonObject | undefined> {
    return this.#parts.openInput(row).catch(error => {
      if (isFault(error)) throw error;
      this.#parts.log.error('invocation.input_unreadable', { invocationId: row.id, reason: reason(error) });
      return undefined;
    });
  }

  /** Runs the invocation. Returns the ended row if the end was written. */
  async #run(
    row: InvocationRow,
    prepared: PreparedCall,
    abortController: AbortController,
  ): Promise<InvocationRow | undefined> {
    const recorded = prepared.session ? { recorded: prepared.session.recorded } : {};
    const { signal } = abortController;
    const endController = new AbortController();
    void this.#watchCost(row, prepared, abortController, endController.signal);
    try {
      const outcome = await this.#storeOutput(row, await rejectOnAbort(signal, () => prepared.run(row, signal)));
      const upstream = outcome.upstream ? { upstream: outcome.upstream } : {};
      const endedRow = await this.#end({ row, end: this.#endOf(row, outcome, prepared), ...recorded, ...upstream });
      return endedRow && outcome.state === 'succeeded' && outcome.isNotKept
        ? { ...endedRow, output: outcome.output }
        : endedRow;
    } catch (error) {
      if (this.#isClosed) return undefined;
      // A call that is stopped at its cost limit has failed, even if it had an effect. After the start, only a call
      // with the effect `read` can be cancelled.
      const state = row.effect === 'read' || error instanceof CostLimitError ? 'failed' : 'ambiguous';
      const end = this.#endOf(row, { state, error: this.#failure(error) }, prepared);
      return await this.#end({ row, end, ...recorded });
    } finally {
      endController.abort();
      // If the service is stopping, the session is left to the next process, like the invocation.
      if (!this.#isClosed) void this.#release(prepared);
    }
  }

  /** Stores the files of the outcome, and returns the outcome with them in its output. */
  async #storeOutput(row: InvocationRow, outcome: Outcome): Promise<Outcome> {
    if (outcome.state !== 'succeeded') return outcome;
    const { file, files, ...rest } = outcome;
    if (!file && !files) return outcome;
    const artifacts = await this.#parts.files.keep(row, files ?? (file ? [file] : []));
    const [artifact = null] = artifacts;
    return { ...rest, output: { ...rest.output, ...(files ? { artifacts } : { artifact }) } };
  }

  #endOf(
    row: InvocationRow,
    outcome: Outcome | { readonly state: 'cancelled'; readonly error: InvocationError },
    { session, inputKeptMs }: Partial<PreparedCall> = {},
  ): Ending['end'] {
    const { clock, rates } = this.#parts;
    const { state } = outcome;
    const endedAt = clock.now();
    const meteredUse = this.#meteredUseOf(session, endedAt);
    const phaseField = outcome.state === 'succeeded' ? {} : { phase: outcome.error.phase };
    const { reserved, price } = row;
    const captured = captureAmountOf(rates, { state, metered: meteredUse, reserved, price, ...phaseField });
    return {
      ...{
        state,
        endedAt,
        meters: { ...row.meters, browserSeconds: meteredUse.seconds, egressBytes: meteredUse.bytes },
      },
      ...(inputKeptMs === undefined ? {} : { inputUntil: addMs(endedAt, inputKeptMs) }),
      ...(captured === undefined ? { heldUntil: addMs(endedAt, UNKNOWN_OUTCOME_HOLD_MS) } : { captured }),
      ...(outcome.state === 'succeeded'
        ? outputOf(outcome, endedAt)
        : { error: { ...outcome.error, details: outcome.error.details ?? {} } }),
    };
  }

  /**
   * Returns the metered use of the call. The use of a session that the caller named is not metered here, because that
   * session is charged separately.
   */
  #meteredUseOf(session: PreparedCall['session'], until: Date): MeteredUse {
    if (!session?.ownSessionSince) return { seconds: 0, bytes: 0 };
    const bytes = this.#parts.bytesOf(session.id) ?? this.#lastBytes.get(session) ?? 0;
    this.#lastBytes.set(session, bytes);
    return { seconds: secondsRoundedUp(session.ownSessionSince, until), bytes };
  }

  /** Stops the call as soon as its metered cost exceeds the amount that is held for it, not counting its price. */
  async #watchCost(
    row: InvocationRow,
    { session }: PreparedCall,
    abortController: AbortController,
    endSignal: AbortSignal,
  ): Promise<void> {
    const { clock, rates } = this.#parts;
    if (row.reserved === 0 || !session?.ownSessionSince) return;
    while (!endSignal.aborted) {
      if (meteredCost(rates, this.#meteredUseOf(session, clock.now())) > row.reserved - row.price)
        return abortController.abort(
          new CostLimitError(
            `The call was stopped, because its cost reached the limit of ${row.reserved} micro-credits. Set a higher maxCost, or a longer time limit if the call has no maxCost.`,
          ),
        );
      await clock.sleep(COST_CHECK_INTERVAL_MS, endSignal).catch(() => {}); // Rejects when the call is over.
    }
  }

  #end(ending: Ending): Promise<InvocationRow | undefined> {
    this.#unwrittenEndings.set(ending.row.id, ending);
    return this.#write(ending);
  }

  /**
   * Writes the end of an invocation. If this fails, the clock task tries again. Returns the ended row if the end was
   * written now.
   */
  async #write({ row, end, recorded, upstream }: Ending): Promise<InvocationRow | undefined> {
    const { rows, sign, issuer, log, clock, receiptOf, endUserOf, handoffs } = this.#parts;
    try {
      const receiptId = newId<ReceiptId>(clock.now());
      const { state, endedAt, outputDigest, error, meters, captured } = end;
      const errorCode = error && typeof error.code === 'string' ? error.code : undefined;
      const endUser = await endUserOf(row);
      const payload = receiptPayload(row, {
        ...{ receiptId, issuer, endedAt, status: state, meters },
        ...(captured === undefined ? {} : { captured }),
        ...(outputDigest === undefined ? {} : { outputDigest }),
        ...(errorCode === undefined ? {} : { errorCode }),
        ...(recorded === undefined ? {} : { recorded }),
        ...(row.sessionId === undefined
          ? {}
          : { handoffs: await handoffs.listControlledBetween(row.sessionId, row.startedAt ?? row.createdAt, endedAt) }),
        ...(row.jobId === undefined ? {} : { action: await receiptOf(row.jobId, row.applicationId) }),
        ...(upstream === undefined ? {} : { upstream }),
        ...(endUser === undefined ? {} : { endUser }),
      });
      const endedRow = await rows.end(row.id, { ...end, receiptId, receipt: await sign(RECEIPT_TYPE, payload) });
      this.#unwrittenEndings.delete(row.id);
      return endedRow;
    } catch (error) {
      log.warn('invocation.end_not_written', { invocationId: row.id, reason: reason(error) });
      return undefined;
    }
  }

  #failure(error: unknown): InvocationError {
    if (error instanceof CancelledError) return errorOf('cancelled', error.message, true);
    if (error instanceof CostLimitError) return errorOf('cost_limit', error.message, false);
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

  async #release(prepared: PreparedCall): Promise<void> {
    await prepared.release().catch(error => {
      if (!isFault(error, 'session_not_running'))
        this.#parts.log.warn('invocation.not_released', { sessionId: prepared.session?.id, reason: reason(error) });
    });
  }
}

/**
 * Whether the invocation waits for a hand-off, which is stored in a row. If so, the next process continues the wait,
 * however often the service restarts.
 */
const isResumable = ({ kind, operationId }: InvocationRow): boolean =>
  kind === 'managed' && operationId === ('browser.handoff' satisfies ManagedOperationId);

function createRunningInvocation(row: InvocationRow): RunningInvocation {
  const started = Promise.withResolvers<void>();
  started.promise.catch(() => {}); // Prevents an unhandled rejection if no caller waits for the start.
  return {
    ...{ started, ended: Promise.withResolvers<InvocationRow | undefined>(), abortController: new AbortController() },
    ...{ effect: row.effect, isResumable: isResumable(row), mayHaveBegun: row.state === 'dispatched' },
  };
}

const inputRetentionOf = (operation: CallableOperation): Pick<PreparedCall, 'inputKeptMs'> =>
  operation.kind === 'managed' ? {} : inputRetention(operation.definition.retention);

const sendsIdempotencyKey = ({ definition }: HttpCallable): boolean =>
  definition.binding.idempotencyHeader !== undefined;

const outputOf = (
  { output, outputDigest, outputUntil, outputInvalid, isNotKept }: SuccessfulOutcome,
  endedAt: Date,
) => ({
  ...(isNotKept
    ? {}
    : {
        ...{ output, outputDigest: outputDigest ?? digestOf(output) },
        outputUntil: outputUntil ?? addMs(endedAt, OUTPUT_RETENTION_MS),
      }),
  ...(outputInvalid ? { outputInvalid } : {}),
});

const errorOf = (code: string, message: string, retryable: boolean): InvocationError => ({
  ...{ code, message, retryable, phase: 'during' },
});

const INTERRUPTED_ERROR: InvocationError = {
  ...errorOf('interrupted', 'The service stopped while the operation was running.', true),
};
const NOT_STARTED_ERROR: InvocationError = {
  ...errorOf('internal', 'The operation could not be started.', false),
  phase: 'before',
};
const UNKNOWN_OUTCOME_ERROR: InvocationError = errorOf(
  'upstream_ambiguous',
  'The service stopped while the operation was running. It is not known whether the operation took effect.',
  false,
);
const KEY_INACTIVE_ERROR: InvocationError = {
  ...errorOf('invalid_credentials', 'The agent key expired or was revoked before the operation started.', false),
  phase: 'before',
};
const INPUT_UNREADABLE_ERROR: InvocationError = {
  ...errorOf('internal', 'The stored input of the call can no longer be read.', false),
  phase: 'before',
};
const REVISION_CHANGED_ERROR: InvocationError = {
  ...errorOf('revision_conflict', 'The revision of the operation changed when the service was upgraded.', true),
  phase: 'before',
};

/** Returns the caller for an agent key, for calls that are made outside a request. */
export const callerOf = (row: KeyRow): AgentCaller => ({ ...agentCallerOf(row), source: { ip: '' } });

/**
 * Rejects with the signal's reason as soon as it is aborted. If it is aborted already, throws the reason and does not
 * begin the work.
 */
function rejectOnAbort<T>(signal: AbortSignal, begin: () => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  const work = begin();
  const { promise, reject } = Promise.withResolvers<never>();
  const stop = (): void => reject(signal.reason);
  signal.addEventListener('abort', stop, { once: true });
  return Promise.race([work, promise]).finally(() => signal.removeEventListener('abort', stop));
}
