// The API operations for agents: discover operations, invoke them, read and cancel invocations.
import type { EndUser } from '../../../contract/actions.ts';
import { PAGE_LIMIT_DEFAULT } from '../../../contract/common.ts';
import type { DiscoveryQuery } from '../../../contract/discovery.ts';
import {
  type AgentOperation,
  type AgentOperationList,
  INPUT_BYTES_MAX,
  type Invocation,
  type InvocationListQuery,
  type InvocationPage,
  type InvocationQuery,
  type InvokeOperation,
  METADATA_BYTES_MAX,
} from '../../../contract/invocations.ts';
import type { BrowserOperationId } from '../../../contract/managed-operations.ts';
import { isMemoryOperation } from '../../../contract/memory-operations.ts';
import type { SchemaIssue } from '../../engines/schemas/validate-job.ts';
import type { GrantRow, Keys } from '../../engines/store/rows/credentials.ts';
import type { CallLimits, InvocationRow, InvocationRows } from '../../engines/store/rows/invocations.ts';
import { digestOf, isInteroperable, NOT_INTEROPERABLE_TEXT } from '../../kit/canonical-json.ts';
import type { Clock } from '../../kit/clock.ts';
import {
  type ActionId,
  type ApplicationId,
  type ConsumerId,
  type HostId,
  type InvocationId,
  isUuid,
  newId,
  type ReceiptId,
} from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';
import type { CreditRates } from '../../kit/metered-cost.ts';
import type { Secret } from '../../kit/secret.ts';
import { TurnQueue } from '../../kit/turns.ts';
import {
  type CallableOperation,
  type Catalogue,
  type GrantedOperation,
  grantedOperationsOf,
  grantFor,
} from '../configured-operations/callable.ts';
import type { HttpOperations } from '../configured-operations/http-operations.ts';
import type { AgentMemory } from '../consumers/agent-memory.ts';
import { insufficientCredit } from '../credits/insufficient.ts';
import { fault, invalidRequest, notFound } from '../faults.ts';
import type { FileFinder, ServedFile } from '../files/served-file.ts';
import { requestDigest } from '../idempotency/request-digest.ts';
import type { AgentCaller } from '../identity/caller.ts';
import { type Cursors, type ListName, listPageOf } from '../identity/cursors.ts';
import { secondsToNextDay, startOfUtcDay } from '../limits/utc-day.ts';
import { credentialsIn } from '../stored-credentials/typed-credentials.ts';
import type { BrowserOperations } from './browser-operations.ts';
import type { GivenStep } from './browser-steps.ts';
import { estimatedUseOf, priceReservationOf, reservationOf } from './cost.ts';
import { matchesFilters } from './discovery.ts';
import type { Executions } from './executions.ts';
import type { InvocationFiles } from './files.ts';
import type { ManagedOperations } from './managed.ts';
import { filterOf, invocationView } from './view.ts';

/** How often the row of an invocation that is running in another process is read. */
const ROW_POLL_INTERVAL_MS = 150;
/**
 * Maximum number of equal calls for which a call waits, one after another. If all of them are refused, the call is
 * refused.
 */
const EQUAL_CALLS_MAX = 3;

export interface InvokeOptions {
  readonly idempotencyKey?: string;
  readonly waitSeconds: number;
  /** Aborted when the caller disconnects. The invocation continues. */
  readonly signal: AbortSignal;
}

export interface InvokedOperation {
  readonly invocation: Invocation;
  readonly isReplayed: boolean;
}

/** Identifies a call by an idempotency key or an Action, and contains the function that inserts its row. */
interface CallInsertion {
  readonly idempotencyKey?: string;
  readonly jobId?: ActionId;
  /** The end user for whom the Action is executed. */
  readonly endUser?: EndUser;
  readonly insert: InvocationRows['insert'];
}

export interface InvocationsParts {
  readonly rows: InvocationRows;
  readonly keys: Pick<Keys, 'get'>;
  readonly executions: Executions;
  readonly catalogue: Pick<Catalogue, 'all' | 'findById' | 'findRevision'>;
  readonly managed: Pick<ManagedOperations, 'assertInput'>;
  readonly http: Pick<HttpOperations, 'assertInput' | 'isConnected'>;
  readonly browser: Pick<BrowserOperations, 'assertInput' | 'isConnected'>;
  readonly memory: Pick<AgentMemory, 'assertInput' | 'findConsumerId'>;
  readonly files: Pick<InvocationFiles, 'outputWithLinks'> & { readonly find: FileFinder };
  readonly validate: (
    value: unknown,
    schemas: readonly object[],
    jobOwner: string,
  ) => Promise<readonly (readonly SchemaIssue[])[]>;
  readonly sealInput: (row: Pick<InvocationRow, 'id' | 'applicationId'>, input: JsonObject) => Promise<Buffer>;
  readonly openInput: (row: InvocationRow) => Promise<JsonObject>;
  readonly cursors: Cursors;
  readonly secret: Secret;
  /** The rates that are charged for sessions. */
  readonly rates: CreditRates;
  readonly host: HostId;
  readonly clock: Clock;
}

/** The invocation was refused before its start, and its row was deleted. */
class WithdrawnError extends Error {}

export class Invocations {
  readonly #parts: InvocationsParts;
  /** Equal concurrent calls are checked one after another, so that they do not fill the queue of the worker threads. */
  readonly #checks = new TurnQueue<string>();

  constructor(parts: InvocationsParts) {
    this.#parts = parts;
  }

  async discover(caller: AgentCaller, appId: string, query: DiscoveryQuery): Promise<AgentOperationList> {
    assertOwnApplication(caller, appId);
    const { cursors } = this.#parts;
    const { limit = PAGE_LIMIT_DEFAULT, cursor, ...filters } = query;
    const name = { list: `discovery ${JSON.stringify(filters)}`, owner: caller.keyId };
    const last = cursor === undefined ? '' : cursors.read(name, cursor);
    const matchingOperations = (await this.#listGranted(caller)).filter(
      ({ operation }) => operation.id > last && matchesFilters(operation, filters),
    );
    const rows = matchingOperations.slice(0, limit + 1).map(one => ({ id: one.operation.id, one }));
    const { data, ...more } = listPageOf(
      rows,
      limit,
      ({ one }) => one,
      id => cursors.after(name, id),
    );
    return { data: await Promise.all(data.map(one => this.#operationView(caller, one))), ...more };
  }

  /** Returns every operation that the key has a grant for. */
  async listCallable(caller: AgentCaller): Promise<readonly AgentOperation[]> {
    return Promise.all((await this.#listGranted(caller)).map(one => this.#operationView(caller, one)));
  }

  async readOperation(caller: AgentCaller, appId: string, operationId: string): Promise<AgentOperation> {
    assertOwnApplication(caller, appId);
    const operation = await this.#parts.catalogue.findById(caller.applicationId, operationId);
    const grant = operation && grantFor(await this.#grants(caller), operation);
    if (!operation || !grant) throw notFound('Operation', operationId);
    return this.#operationView(caller, { operation, grant });
  }

  async invoke(
    caller: AgentCaller,
    appId: string,
    operationId: string,
    request: InvokeOperation,
    options: InvokeOptions,
  ): Promise<InvokedOperation> {
    assertOwnApplication(caller, appId);
    const grantedOperation = await this.requireGranted(caller, operationId, request.revision);
    const { operation } = grantedOperation;
    if (operation.effect !== 'read' && options.idempotencyKey === undefined) throw keyRequired(operationId);
    const check = () => this.#assertInput(caller, grantedOperation, request);
    const { idempotencyKey } = options;
    await (idempotencyKey === undefined ? check() : this.#checks.run(`${caller.keyId} ${idempotencyKey}`, check));
    if (operation.approval !== 'none') throw approvalRequired(caller, operationId, operation.approval);
    return this.#run(caller, grantedOperation, request, options, {
      ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
      insert: (row, rates, limits) => this.#parts.rows.insert(row, rates, limits),
    });
  }

  /** Returns the published operation, and the grant of the key for it. */
  async requireGranted(caller: AgentCaller, operationId: string, revision?: number): Promise<GrantedOperation> {
    const [operation, grants] = await Promise.all([
      this.#parts.catalogue.findById(caller.applicationId, operationId),
      this.#grants(caller),
    ]);
    if (!operation) throw notFound('Operation', operationId);
    const grant = grantFor(grants, operation);
    if (!grant) throw notGranted(operationId);
    if (revision !== undefined && revision !== operation.revision)
      throw revisionConflict(operationId, operation.revision);
    return { operation, grant };
  }

  /**
   * Returns the operation and the grant for a revision that a person has approved. The operation must still be
   * published.
   */
  async requireGrantedRevision(caller: AgentCaller, operationId: string, revision: number): Promise<GrantedOperation> {
    const { catalogue } = this.#parts;
    const publishedOperation = await catalogue.findById(caller.applicationId, operationId);
    if (!publishedOperation) throw notFound('Operation', operationId);
    const operation =
      publishedOperation.revision === revision
        ? publishedOperation
        : await catalogue.findRevision(caller.applicationId, operationId, revision);
    if (!operation) throw revisionConflict(operationId, publishedOperation.revision);
    const grant = grantFor(await this.#grants(caller), operation);
    if (!grant) throw notGranted(operationId);
    return { operation, grant };
  }

  /** Whether the key has a grant for this revision, even if the operation has changed since. */
  async isGranted(caller: AgentCaller, operationId: string, revision: number): Promise<boolean> {
    const operation = await this.#parts.catalogue.findRevision(caller.applicationId, operationId, revision);
    return operation !== undefined && grantFor(await this.#grants(caller), operation) !== undefined;
  }

  /** Checks an input, and returns the micro-credits that a call with this input would hold. */
  async check(
    caller: AgentCaller,
    grantedOperation: GrantedOperation,
    request: InvokeOperation,
  ): Promise<{ readonly reserved: number }> {
    await this.#assertInput(caller, grantedOperation, request);
    return { reserved: amountToReserve(grantedOperation.operation, this.#parts.rates, request) };
  }

  /**
   * Runs a call that a person has approved. `insert` inserts the row unless the Action was executed before or may no
   * longer be executed.
   */
  async runApproved(
    caller: AgentCaller,
    grantedOperation: GrantedOperation,
    request: InvokeOperation,
    options: Omit<InvokeOptions, 'idempotencyKey'>,
    approvedCall: Pick<CallInsertion, 'insert' | 'endUser'> & { readonly jobId: ActionId },
  ): Promise<InvokedOperation> {
    await this.#checks.run(`action ${approvedCall.jobId}`, () => this.#assertInput(caller, grantedOperation, request));
    return this.#run(caller, grantedOperation, request, options, approvedCall);
  }

  /**
   * Returns the invocation of an Action, whichever key made the call. Undefined if the invocation was withdrawn; the
   * Action can then be executed again.
   * @throws Fault the refusal of that call, if nothing was started.
   */
  async ofAction(
    application: ApplicationId,
    id: InvocationId,
    options: InvokeOptions,
  ): Promise<Invocation | undefined> {
    const row = await this.#follow(application, id, options);
    return row && this.#viewOf(row);
  }

  /**
   * Runs the call, or follows the invocation of an equal call. If that invocation is withdrawn meanwhile, tries again.
   */
  async #run(
    caller: AgentCaller,
    grantedOperation: GrantedOperation,
    request: InvokeOperation,
    options: InvokeOptions,
    insertion: CallInsertion,
  ): Promise<InvokedOperation> {
    const { clock, executions } = this.#parts;
    for (let attempt = 0; attempt < EQUAL_CALLS_MAX; attempt++) {
      const id = newId<InvocationId>(clock.now());
      const { row, isExisting: isReplay } = await executions.runHeld(id, async () => {
        const insertResult = await this.#insert(caller, grantedOperation, id, request, insertion);
        if (!insertResult.isExisting) await this.#start(caller, grantedOperation, insertResult.row, request.input);
        return insertResult;
      });
      const followedRow = await this.#follow(caller.applicationId, row.id, options, !isReplay);
      if (followedRow) return { invocation: this.#viewOf(followedRow), isReplayed: isReplay };
      if (!isReplay) throw notFound('Invocation', row.id);
    }
    throw equalCallRefused();
  }

  /**
   * Waits for the start of the invocation, and then for its end. Undefined if it was withdrawn, because another process
   * refused its start. For `wasStartedHere`, see `#waitUntil`.
   */
  async #follow(
    application: ApplicationId,
    id: InvocationId,
    { waitSeconds, signal }: InvokeOptions,
    wasStartedHere = false,
  ): Promise<InvocationRow | undefined> {
    const { rows, executions } = this.#parts;
    await executions.whenStarted(id);
    const requireRow = async (): Promise<InvocationRow> => {
      const row = await rows.get(application, id);
      if (!row) throw new WithdrawnError();
      return row;
    };
    try {
      return await this.#waitUntil(requireRow, id, waitSeconds, signal, wasStartedHere);
    } catch (error) {
      if (error instanceof WithdrawnError) return undefined;
      throw error;
    }
  }

  async list(caller: AgentCaller, appId: string, query: InvocationListQuery): Promise<InvocationPage> {
    assertOwnApplication(caller, appId);
    const { limit = PAGE_LIMIT_DEFAULT, cursor } = query;
    const name: ListName = { list: 'invocations', owner: caller.keyId };
    const rows = await this.#parts.rows.list(caller.applicationId, {
      ...{ keyId: caller.keyId, limit: limit + 1 },
      ...filterOf(query),
      ...(cursor === undefined ? {} : { before: this.#parts.cursors.read<InvocationId>(name, cursor) }),
    });
    return listPageOf(
      rows,
      limit,
      row => this.#viewOf(row),
      last => this.#parts.cursors.after(name, last),
    );
  }

  async read(
    caller: AgentCaller,
    appId: string,
    id: string,
    { wait = 0, since = 'running' }: InvocationQuery,
    signal: AbortSignal,
  ): Promise<Invocation> {
    assertOwnApplication(caller, appId);
    // The status is `running` until the invocation ends. If `since` is another status, there is no change to wait for.
    const seconds = since === 'running' ? wait : 0;
    const row = await this.#waitUntil(() => this.#requireOwn(caller, id), id, seconds, signal);
    // Until the invocation ends, the input is stored for another attempt, and callers cannot read it.
    if (row.inputUntil === undefined || !row.sealedInput) return this.#viewOf(row);
    return { ...this.#viewOf(row), input: await this.#parts.openInput(row) };
  }

  /** Returns the first file of an invocation, for a caller that needs its bytes. */
  async file(caller: AgentCaller, id: string): Promise<ServedFile | undefined> {
    await this.#requireOwn(caller, id);
    return this.#parts.files.find(caller.applicationId, id);
  }

  async cancel(caller: AgentCaller, appId: string, id: string, signal: AbortSignal): Promise<Invocation> {
    assertOwnApplication(caller, appId);
    const { executions } = this.#parts;
    const row = await this.#requireOwn(caller, id);
    if (row.endedAt || !executions.cancel(row.id)) throw notCancellable(row);
    return this.#viewOf(
      await this.#waitUntil(() => this.#requireOwn(caller, row.id), row.id, CANCEL_WAIT_SECONDS, signal),
    );
  }

  async receiptStatus(jti: string): Promise<{ status: 'current' | 'unknown' }> {
    // The schema requires a UUID.
    return { status: (await this.#parts.rows.hasReceipt(jti as ReceiptId)) ? 'current' : 'unknown' };
  }

  async #listGranted(caller: AgentCaller): Promise<readonly GrantedOperation[]> {
    return grantedOperationsOf(await this.#parts.catalogue.all(caller.applicationId), await this.#grants(caller));
  }

  async #grants({ applicationId, keyId }: AgentCaller): Promise<readonly GrantRow[]> {
    return (await this.#parts.keys.get(applicationId, keyId))?.grants ?? [];
  }

  async #operationView(
    { keyId, applicationId }: AgentCaller,
    { operation, grant }: GrantedOperation,
  ): Promise<AgentOperation> {
    const { rows, clock } = this.#parts;
    const { input, credentials, maxCallsPerDay, maxCostPerDay } = grant;
    const limits = limitsOf(grant, clock.now());
    const { calls, cost } = limits
      ? await rows.callsSince(keyId, operation.id, limits.countedSince)
      : { calls: 0, cost: 0 };
    const { id, title, description, revision, digest, effect, approval, price } = operation;
    const { inputSchema, outputSchema, timeoutMs } = operation;
    const isReady = await this.#isConnected(operation, applicationId);
    return {
      ...{ id, title, description, revision, digest, effect, approval, inputSchema, outputSchema, timeoutMs },
      price: { ...price, ...(hasOwnSession(operation) ? { estimate: estimatedUseOf(timeoutMs) } : {}) },
      requires: { connection: isReady ? 'ready' : 'missing' },
      grant: {
        ...(input ? { input } : {}),
        ...(credentials ? { credentials: [...credentials] } : {}),
        ...(maxCallsPerDay === undefined ? {} : { remainingCallsToday: Math.max(0, maxCallsPerDay - calls) }),
        ...(maxCostPerDay === undefined ? {} : { remainingCostToday: Math.max(0, maxCostPerDay - cost) }),
      },
    };
  }

  async #isConnected(operation: CallableOperation, application: ApplicationId): Promise<boolean> {
    const { http, browser } = this.#parts;
    if (operation.kind === 'http') return http.isConnected(operation, application);
    return operation.kind !== 'browser' || browser.isConnected(operation, application);
  }

  async #assertInput(
    caller: AgentCaller,
    { operation, grant }: GrantedOperation,
    { input, metadata }: InvokeOperation,
  ): Promise<void> {
    if (Buffer.byteLength(JSON.stringify(input)) > INPUT_BYTES_MAX)
      throw invalidRequest([{ path: 'input', message: `is larger than ${INPUT_BYTES_MAX / 1024} KiB` }]);
    if (Buffer.byteLength(JSON.stringify(metadata ?? {})) > METADATA_BYTES_MAX)
      throw invalidRequest([{ path: 'metadata', message: `is larger than ${METADATA_BYTES_MAX} bytes` }]);
    // The approved digest and the receipt must identify exactly the value that was sent, so values that programs may
    // read differently are refused.
    if (!isInteroperable(input)) throw invalidRequest([{ path: 'input', message: NOT_INTEROPERABLE_TEXT }]);
    const schemas = [operation.inputSchema, ...(grant.input ? [grant.input] : [])];
    const [schemaIssues = [], grantIssues = []] = await this.#parts.validate(input, schemas, caller.applicationId);
    if (schemaIssues.length > 0) throw invalidRequest(schemaIssues.map(withInputPath));
    if (grantIssues.length > 0) throw inputNotGranted(grantIssues.map(withInputPath));
    if (operation.kind === 'http') this.#parts.http.assertInput(operation, input);
    else if (operation.kind === 'browser') this.#parts.browser.assertInput(operation, input);
    else if (isMemoryOperation(operation.id)) this.#parts.memory.assertInput(operation.id, input);
    else {
      this.#parts.managed.assertInput(caller, operation.id, input);
      assertCredentials(grant, operation.id, input);
    }
  }

  async #insert(
    caller: AgentCaller,
    { operation, grant }: GrantedOperation,
    id: InvocationId,
    request: InvokeOperation,
    { idempotencyKey, jobId, endUser, insert }: CallInsertion,
  ): Promise<{ row: InvocationRow; isExisting: boolean }> {
    const { clock, host, secret, sealInput, rates, memory } = this.#parts;
    const now = clock.now();
    const { applicationId, keyId } = caller;
    const namedEndUser = endUser ?? endUserIn(operation, request.input);
    const consumerId: ConsumerId | undefined =
      namedEndUser && (await memory.findConsumerId(applicationId, namedEndUser));
    const row: InvocationRow = {
      ...{ id, applicationId, keyId, hostId: host, operationId: operation.id, operationRevision: operation.revision },
      ...{
        kind: operation.kind,
        operationDigest: operation.digest,
        effect: operation.effect,
        state: 'accepted',
        attempts: 0,
        meters: {},
      },
      ...{ price: operation.price.microCredits, reserved: amountToReserve(operation, rates, request), captured: 0 },
      ...(request.maxCost === undefined ? {} : { maxCost: request.maxCost }),
      requestDigest: requestDigest(secret, { operation: operation.id, request }),
      sealedInput: await sealInput({ id, applicationId }, request.input),
      inputDigest: inputDigestOf(request.input),
      createdAt: now,
      ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
      ...(jobId === undefined ? {} : { jobId }),
      ...(consumerId === undefined ? {} : { consumerId }),
      ...(request.metadata ? { metadata: request.metadata } : {}),
    };
    const insertResult = await insert(row, rates, limitsOf(grant, now));
    if (insertResult === 'inserted') return { row, isExisting: false };
    if (insertResult === 'calls_used_up')
      throw callLimitReached(operation.id, grant.maxCallsPerDay ?? 0, secondsToNextDay(now));
    if ('spent' in insertResult)
      throw costLimitReached(row, grant.maxCostPerDay ?? 0, insertResult.spent, secondsToNextDay(now));
    if ('short' in insertResult) throw insufficientCredit(insertResult.short);
    if (jobId === undefined && !insertResult.existing.requestDigest.equals(row.requestDigest)) throw keyConflict();
    return { row: insertResult.existing, isExisting: true };
  }

  /**
   * Starts the invocation. If its session is refused, nothing was started: the row is withdrawn, and the idempotency
   * key can be used again.
   */
  async #start(
    caller: AgentCaller,
    { operation }: GrantedOperation,
    row: InvocationRow,
    input: JsonObject,
  ): Promise<void> {
    const { executions, rows, clock } = this.#parts;
    await executions.start(caller, row, operation, input, () => rows.withdraw(row.id, clock.now()));
  }

  /**
   * Returns the row of the invocation when it has ended, when the time is up, or when the caller has disconnected.
   * `wasStartedHere` means that the invocation was just started here for this caller. Its row is then not read before
   * it ends.
   */
  async #waitUntil(
    readRow: () => Promise<InvocationRow>,
    id: string,
    seconds: number,
    signal: AbortSignal,
    wasStartedHere = false,
  ): Promise<InvocationRow> {
    const { clock, executions } = this.#parts;
    const untilMs = clock.monotonicMs() + 1000 * seconds;
    if (wasStartedHere && seconds > 0 && executions.isRunning(id as InvocationId)) {
      const endedRow = await this.#waitForEnd(id as InvocationId, 1000 * seconds, signal);
      if (endedRow) return endedRow;
    }
    for (;;) {
      const isLeftToNextProcess = executions.isLeftToNextProcess(id as InvocationId);
      const row = await readRow();
      const remainingMs = untilMs - clock.monotonicMs();
      if (row.endedAt || remainingMs <= 0 || signal.aborted || isLeftToNextProcess) return row;
      await this.#waitForEnd(row.id, remainingMs, signal);
    }
  }

  /** Waits until the invocation may have ended. Returns its row if this process has just written the end. */
  async #waitForEnd(id: InvocationId, timeoutMs: number, signal: AbortSignal): Promise<InvocationRow | undefined> {
    const { clock, executions } = this.#parts;
    const isRunningHere = executions.isRunning(id);
    const wakeController = new AbortController();
    const pause = clock.sleep(
      isRunningHere ? timeoutMs : Math.min(timeoutMs, ROW_POLL_INTERVAL_MS),
      AbortSignal.any([signal, wakeController.signal]),
    );
    const timeoutPromise = pause.then(() => undefined).catch(() => undefined);
    const endedRow = await Promise.race([timeoutPromise, ...(isRunningHere ? [executions.whenEnded(id)] : [])]);
    wakeController.abort();
    return endedRow;
  }

  #viewOf(row: InvocationRow): Invocation {
    return invocationView(row, this.#parts.files.outputWithLinks(row));
  }

  /** Returns an invocation of the caller's key. Invocations of other keys are treated as not found. */
  async #requireOwn({ applicationId, keyId }: AgentCaller, id: string): Promise<InvocationRow> {
    const row = isUuid(id) ? await this.#parts.rows.get(applicationId, id as InvocationId) : undefined;
    if (row?.keyId !== keyId) throw notFound('Invocation', id);
    return row;
  }
}

/** Whether a call creates a session if its input names no session. */
const hasOwnSession = ({ kind, id }: CallableOperation): boolean =>
  kind !== 'http' && id !== 'browser.handoff' && !isMemoryOperation(id);

/** Returns the end user whose memory the operation uses, if any. */
const endUserIn = ({ kind, id }: CallableOperation, input: JsonObject): EndUser | undefined =>
  kind === 'managed' && isMemoryOperation(id)
    ? (input.endUser as unknown as EndUser) // Validated against the schema of the operation.
    : undefined;

/**
 * Returns the micro-credits to hold for a call. For a call that does not use a browser, this is the price of the call.
 */
function amountToReserve(
  operation: CallableOperation,
  rates: CreditRates,
  { input, maxCost }: InvokeOperation,
): number {
  const {
    kind,
    price: { microCredits },
    timeoutMs,
  } = operation;
  if (kind === 'http' || isMemoryOperation(operation.id)) return priceReservationOf(rates, microCredits, maxCost);
  // The steps of a configured operation come from its binding. A `steps` property of its input is unrelated to them.
  const stepInput = operation.kind === 'browser' ? { timeoutMs, steps: operation.definition.binding.steps } : input;
  return reservationOf(rates, microCredits, stepInput, maxCost);
}

function limitsOf({ maxCallsPerDay, maxCostPerDay }: GrantRow, now: Date): CallLimits | undefined {
  if (maxCallsPerDay === undefined && maxCostPerDay === undefined) return undefined;
  return {
    countedSince: startOfUtcDay(now),
    ...(maxCallsPerDay === undefined ? {} : { callsMax: maxCallsPerDay }),
    ...(maxCostPerDay === undefined ? {} : { costMax: maxCostPerDay }),
  };
}

const CANCEL_WAIT_SECONDS = 5;

function assertOwnApplication({ applicationId }: AgentCaller, appId: string): void {
  if (appId !== applicationId) throw notFound('Application', appId);
}

function inputDigestOf(input: JsonObject): string {
  try {
    return digestOf(input);
  } catch {
    throw invalidRequest([
      { path: 'input', message: 'contains a string that is not valid Unicode, or a number that is not finite' },
    ]);
  }
}

const withInputPath = ({ path, message }: SchemaIssue) => ({ path: path === '' ? 'input' : `input.${path}`, message });

/** Throws if the steps name a credential that the grant does not list. Only the grant can allow a credential. */
function assertCredentials({ credentials = [] }: GrantRow, id: BrowserOperationId, input: JsonObject): void {
  if (id !== 'browser.steps') return;
  const { steps } = input as { readonly steps: readonly GivenStep[] }; // Validated against the schema of the operation.
  const issues = steps.flatMap((step, index) =>
    credentialsIn([step])
      .filter(name => !credentials.includes(name))
      .map(name => ({
        path: `input.steps.${index}`,
        message: `names the credential ${name}, which the grant does not include`,
      })),
  );
  if (issues.length === 0) return;
  throw fault('input_not_granted', 'The steps name a credential that the grant of this agent key does not include.', {
    advice:
      'Read the operation: grant.credentials lists the credentials that the grant includes. An admin of the application can add others.',
    details: { issues },
  });
}

const notGranted = (id: string) =>
  fault('operation_not_granted', `This agent key has no grant for the operation ${id}.`, {
    advice: 'List the operations that the key has a grant for. An admin of the application can grant others.',
    details: { operationId: id },
  });

const keyRequired = (id: string) =>
  fault('idempotency_key_required', `The operation ${id} has side effects, so the call requires an Idempotency-Key.`, {
    advice: 'Send the header Idempotency-Key, and send the same value if you repeat the call.',
  });

const approvalRequired = ({ applicationId }: AgentCaller, id: string, approval: string) =>
  fault(
    'approval_required',
    `Each call of the operation ${id} must be approved (approver: ${approval}). Nothing was started.`,
    {
      advice: 'Prepare an Action with the same input, and execute it when it is approved.',
      details: { approval, prepareUrl: `/v1/agent/applications/${applicationId}/operations/${id}/prepare` },
    },
  );

const inputNotGranted = (issues: readonly { path: string; message: string }[]) =>
  fault(
    'input_not_granted',
    `The grant of this agent key does not allow the input: ${issues.map(({ path, message }) => `${path} ${message}`).join('; ')}.`,
    {
      advice: 'Read the operation: grant.input is the schema that the input must satisfy.',
      details: { issues },
    },
  );

const revisionConflict = (id: string, revision: number) =>
  fault(
    'revision_conflict',
    `The requested revision of the operation ${id} is not the current one, which is ${revision}. Nothing was started.`,
    {
      advice: 'Read the operation again and send its current revision, or omit the revision.',
      details: { revision },
    },
  );

const keyConflict = () =>
  fault('idempotency_conflict', 'This Idempotency-Key was already used with a different request.', {
    advice: 'Use a new key for a different request.',
  });

const equalCallRefused = () =>
  fault(
    'idempotency_conflict',
    'Identical requests were already in progress, but all of them were refused. Nothing was started.',
    {
      advice: 'Wait a moment, and send the request again.',
    },
  );

const callLimitReached = (id: string, limit: number, seconds: number) =>
  fault(
    'rate_limited',
    `The grant of this agent key allows ${limit} calls of ${id} per day, and all of them were used.`,
    {
      advice: 'Wait until midnight UTC, or ask an admin of the application for a higher limit.',
      details: { limit, used: limit, scope: 'credential', name: 'maxCallsPerDay', retryAfterSeconds: seconds },
    },
  );

const costLimitReached = ({ operationId: id, reserved }: InvocationRow, limit: number, used: number, seconds: number) =>
  fault(
    'spend_limit',
    `The grant of this agent key limits the cost of calls of ${id} to ${limit} micro-credits per day. ${used} are already used, and this call requires ${reserved}.`,
    {
      advice: 'Wait until midnight UTC, send a lower maxCost, or ask an admin of the application for a higher limit.',
      details: {
        ...{ limit, used, required: reserved, scope: 'credential', name: 'maxCostPerDay' },
        retryAfterSeconds: seconds,
      },
    },
  );

const notCancellable = ({ id, endedAt, effect }: InvocationRow) =>
  fault(
    'not_ready',
    endedAt
      ? `Invocation ${id} has already ended.`
      : `Invocation ${id} cannot be cancelled: its effect (${effect}) may have begun, or another process is running it.`,
    {
      advice: 'Read the invocation to see its status.',
    },
  );
