// Lets an agent prepare, follow, execute and cancel Actions.
import { randomBytes } from 'node:crypto';
import {
  ACTION_SECONDS_DEFAULT,
  type Action,
  type ActionQuery,
  type ApproverKind,
  type EndUser,
  type ExecuteAction,
  OPEN_ACTIONS_PER_APPLICATION_MAX,
  OPEN_ACTIONS_PER_END_USER_MAX,
  type PrepareAction,
} from '../../../contract/actions.ts';
import type { Invocation } from '../../../contract/invocations.ts';
import type { ActionRow } from '../../engines/store/rows/actions.ts';
import type { Store } from '../../engines/store/store.ts';
import { addMs, type Clock } from '../../kit/clock.ts';
import { type ActionId, type ApplicationId, isUuid, newId, type SessionId } from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';
import type { Secret } from '../../kit/secret.ts';
import type { ChangeFollower } from '../change-follower.ts';
import type { GrantedOperation } from '../configured-operations/callable.ts';
import { fault, invalidRequest, limitReached, notFound, scopeMissing } from '../faults.ts';
import { requestDigest } from '../idempotency/request-digest.ts';
import type { AgentCaller } from '../identity/caller.ts';
import type { Invocations, InvokedOperation, InvokeOptions } from '../invocations/invocations.ts';
import { type ActionAudit, byAgent } from './action-audit.ts';
import type { EndUsers } from './approver.ts';
import { contentOf, digestOfContent, likenessDigestOf } from './content.ts';
import { plainReason } from './rendering.ts';
import type { SealedContent } from './sealed-content.ts';
import { assertNotOver, digestMismatch, isOpen, statusAt } from './state.ts';
import { actionView, approvalUrl } from './view.ts';

const LIMITS = { endUserMax: OPEN_ACTIONS_PER_END_USER_MAX, applicationMax: OPEN_ACTIONS_PER_APPLICATION_MAX } as const;
const NONCE_BYTES = 16;
const EXECUTE_SCOPE = 'actions:execute';

export interface AgentActionsParts {
  readonly store: Pick<Store, 'actions' | 'sessions' | 'atomically'>;
  readonly invocations: Pick<
    Invocations,
    'requireGranted' | 'requireGrantedRevision' | 'isGranted' | 'check' | 'runApproved' | 'ofAction'
  >;
  readonly content: SealedContent;
  readonly changeFollower: ChangeFollower;
  readonly audit: ActionAudit;
  /** Absent if the installation has no end users. An Action that an end user must approve is then refused. */
  readonly endUsers?: EndUsers;
  readonly clock: Clock;
  readonly secret: Secret;
  readonly publicUrl: string;
}

export type ExecuteOptions = Omit<InvokeOptions, 'idempotencyKey'>;

export class AgentActions {
  readonly #parts: AgentActionsParts;

  constructor(parts: AgentActionsParts) {
    this.#parts = parts;
  }

  async prepare(
    caller: AgentCaller,
    appId: string,
    operationId: string,
    request: PrepareAction,
    idempotencyKey: string | undefined,
  ): Promise<{ readonly action: Action; readonly isReplayed: boolean }> {
    assertOwnApplication(caller, appId);
    const { invocations, store, audit } = this.#parts;
    if (request.executeOnApproval && !caller.scopes.has(EXECUTE_SCOPE)) throw scopeMissing([EXECUTE_SCOPE]);
    const grantedOperation = await invocations.requireGranted(caller, operationId, request.revision);
    if (idempotencyKey === undefined) throw idempotencyKeyRequired();
    const approver = approverOf(grantedOperation, request.endUser);
    if (approver === 'end_user') await this.#assertEndUser(caller, request.endUser);
    const { input = {}, maxCost, metadata } = request;
    const { reserved } = await invocations.check(caller, grantedOperation, {
      input,
      ...(maxCost === undefined ? {} : { maxCost }),
      ...(metadata ? { metadata } : {}),
    });
    const row = await this.#newRow(caller, grantedOperation, approver, request, idempotencyKey, maxCost ?? reserved);
    const insertOutcome = await store.atomically(async trx => {
      const insertResult = await trx.actions.insert(row, LIMITS);
      if (insertResult === 'inserted') await audit.record('action.prepared', row, byAgent(caller), trx, { approver });
      return insertResult;
    });
    if (insertOutcome === 'application_full')
      throw limitReached(
        'open Actions in this application',
        OPEN_ACTIONS_PER_APPLICATION_MAX,
        'Wait until some of them end, or cancel one that is no longer needed.',
      );
    if (insertOutcome === 'end_user_full') throw tooManyOpenActions();
    if (insertOutcome !== 'inserted' && 'similar' in insertOutcome) throw alreadyPrepared(insertOutcome.similar);
    if (insertOutcome !== 'inserted' && !insertOutcome.existing.requestDigest.equals(row.requestDigest))
      throw idempotencyKeyConflict();
    if (insertOutcome !== 'inserted') return { action: await this.#view(insertOutcome.existing), isReplayed: true };
    return { action: await this.#view(row), isReplayed: false };
  }

  /** Returns an Action that the key has prepared, or for whose operation the key has a grant. */
  async read(
    caller: AgentCaller,
    appId: string,
    jobId: string,
    query: ActionQuery,
    signal: AbortSignal,
  ): Promise<Action> {
    assertOwnApplication(caller, appId);
    const row = await this.#get(caller, jobId);
    await this.#assertVisible(caller, row);
    return this.#view(await this.#waitForChange(caller, row, query, signal));
  }

  #waitForChange(caller: AgentCaller, row: ActionRow, { wait = 0, since }: ActionQuery, signal: AbortSignal) {
    const { changeFollower, clock } = this.#parts;
    const knownStatus = since ?? statusAt(row, clock.now());
    return changeFollower.awaitChange(
      row,
      {
        concerns: changedId => changedId === row.id,
        read: () => this.#get(caller, row.id),
        isChanged: currentRow => currentRow.endedAt !== undefined || statusAt(currentRow, clock.now()) !== knownStatus,
        changesAt: ({ expiresAt }) => expiresAt,
      },
      wait,
      signal,
    );
  }

  async cancel(caller: AgentCaller, appId: string, jobId: string): Promise<Action> {
    assertOwnApplication(caller, appId);
    const { store, audit, clock } = this.#parts;
    const row = await this.#get(caller, jobId);
    if (row.keyId !== caller.keyId) throw notFound('Action', jobId);
    const cancelledAction = await store.atomically(async trx => {
      const cancelledRow = await trx.actions.cancel(row.applicationId, row.id, 'caller', clock.now());
      if (cancelledRow) await audit.record('action.cancelled', cancelledRow, byAgent(caller), trx, { why: 'caller' });
      return cancelledRow;
    });
    if (cancelledAction) return this.#view(cancelledAction);
    const latestRow = await this.#get(caller, jobId);
    assertNotOver(latestRow, statusAt(latestRow, clock.now()));
    throw notCancellable(latestRow);
  }

  /**
   * Executes the Action if it is approved. If it has already been executed, returns the invocation of that execution.
   */
  async execute(
    caller: AgentCaller,
    appId: string,
    jobId: string,
    { digest }: ExecuteAction,
    options: ExecuteOptions,
  ): Promise<InvokedOperation> {
    assertOwnApplication(caller, appId);
    const initialRow = await this.#get(caller, jobId);
    await this.#assertVisible(caller, initialRow);
    if (digest !== initialRow.digest) throw digestMismatch(initialRow);
    const existingInvocation = await this.#executedInvocation(initialRow, options);
    if (existingInvocation) return { invocation: existingInvocation, isReplayed: true };
    // If the invocation was withdrawn, the state of the Action is `approved` again, so its row is read again.
    const row = initialRow.invocationId ? await this.#get(caller, jobId) : initialRow;
    this.#assertExecutable(row);
    const grantedOperation = await this.#requireGranted(caller, row);
    await this.#assertEndUserExists(row);
    const { input, bounds } = await this.#parts.content.require(row);
    const request = {
      ...{ input, maxCost: bounds.maxCost },
      ...(row.metadata ? { metadata: row.metadata as Record<string, string> } : {}), // Validated by the contract.
    };
    return this.#parts.invocations.runApproved(caller, grantedOperation, request, options, {
      jobId: row.id,
      ...(row.providerId === undefined || row.subject === undefined
        ? {}
        : { endUser: { providerId: row.providerId, subject: row.subject } }),
      insert: (invocation, rates, limits) =>
        this.#parts.store.atomically(async trx => {
          // Concurrent executions wait for this lock, and then find the invocation of the first execution.
          const lockedRow = await trx.actions.lock(row.applicationId, row.id);
          if (!lockedRow) throw notFound('Action', jobId);
          if (lockedRow.invocationId) {
            const existingRow = await trx.invocations.get(row.applicationId, lockedRow.invocationId);
            if (!existingRow) throw notFound('Invocation', lockedRow.invocationId);
            return { existing: existingRow };
          }
          this.#assertExecutable(lockedRow);
          const insertResult = await trx.invocations.insert(invocation, rates, limits);
          if (insertResult !== 'inserted') return insertResult;
          const executedRow = await trx.actions.execute(
            row.applicationId,
            row.id,
            invocation.id,
            this.#parts.clock.now(),
          );
          if (!executedRow) throw new Error(`the approved Action ${row.id} could not be marked as executed`);
          const details = { invocationId: invocation.id };
          await this.#parts.audit.record('action.executed', executedRow, byAgent(caller), trx, details);
          return insertResult;
        }),
    });
  }

  async #executedInvocation(
    { applicationId, invocationId }: ActionRow,
    options: ExecuteOptions,
  ): Promise<Invocation | undefined> {
    return invocationId === undefined
      ? undefined
      : this.#parts.invocations.ofAction(applicationId, invocationId, options);
  }

  /** @throws Fault unless the Action can be executed now. */
  #assertExecutable(row: ActionRow): void {
    const now = this.#parts.clock.now();
    const status = statusAt(row, now);
    assertNotOver(row, status);
    if (status === 'awaiting_approval') throw notApproved(row, approvalUrl(this.#parts.publicUrl, row));
    if (row.notBefore && row.notBefore > now) throw tooEarly(row, row.notBefore);
  }

  async #assertEndUser({ applicationId }: AgentCaller, endUser: EndUser | undefined): Promise<void> {
    const { endUsers } = this.#parts;
    if (!endUsers)
      throw fault('feature_unavailable', 'Approval by end users is not available on this installation.', {
        advice:
          'Omit endUser. If the operation requires the approval of an end user, set its approval to member or owner.',
      });
    if (!endUser)
      throw invalidRequest([{ path: 'endUser', message: 'is required, because an end user approves this operation' }]);
    if (!(await endUsers.canDecide(applicationId, endUser)))
      throw invalidRequest([{ path: 'endUser', message: 'does not exist in this application' }]);
  }

  /** @throws Fault `not_found` if the end user has been deleted since the approval. */
  async #assertEndUserExists({ applicationId, approver, providerId, subject }: ActionRow): Promise<void> {
    if (approver !== 'end_user' || providerId === undefined || subject === undefined) return;
    if (!(await this.#parts.endUsers?.canDecide(applicationId, { providerId, subject })))
      throw notFound('End user', subject);
  }

  /** Returns the grant of the key for the operation revision that the Action names. */
  #requireGranted(caller: AgentCaller, { operationId, operationRevision }: ActionRow): Promise<GrantedOperation> {
    return this.#parts.invocations.requireGrantedRevision(caller, operationId, operationRevision);
  }

  /** @throws Fault `not_found` unless the key has prepared the Action or has a grant for its operation. */
  async #assertVisible(caller: AgentCaller, { id, keyId, operationId, operationRevision }: ActionRow): Promise<void> {
    if (keyId === caller.keyId) return;
    if (!(await this.#parts.invocations.isGranted(caller, operationId, operationRevision)))
      throw notFound('Action', id);
  }

  async #get({ applicationId }: AgentCaller, jobId: string): Promise<ActionRow> {
    const row = isUuid(jobId) ? await this.#parts.store.actions.get(applicationId, jobId as ActionId) : undefined;
    if (!row) throw notFound('Action', jobId);
    return row;
  }

  async #view(row: ActionRow): Promise<Action> {
    const { content, clock, publicUrl } = this.#parts;
    return actionView(row, { publicUrl, now: clock.now(), content: await content.open(row) });
  }

  /**
   * Returns the id of the session that the input names, if that session exists. The id is stored in the row, because
   * the input itself is sealed.
   */
  async #findSessionId(application: ApplicationId, { sessionId }: JsonObject): Promise<SessionId | undefined> {
    if (typeof sessionId !== 'string' || !isUuid(sessionId)) return undefined;
    return (await this.#parts.store.sessions.get(application, sessionId.toLowerCase() as SessionId))?.id;
  }

  async #newRow(
    { applicationId, keyId }: AgentCaller,
    { operation }: GrantedOperation,
    approver: ApproverKind,
    request: PrepareAction,
    idempotencyKey: string,
    maxCost: number,
  ): Promise<ActionRow> {
    const { clock, secret, content } = this.#parts;
    const { input = {}, endUser, expiresIn = ACTION_SECONDS_DEFAULT, reason, metadata } = request;
    const now = clock.now();
    const id = newId<ActionId>(now);
    const expiresAt = addMs(now, expiresIn * 1000);
    const notBefore = notBeforeIn(request.notBefore, expiresAt);
    const cleanReason = reason === undefined ? '' : plainReason(reason);
    const sessionId = await this.#findSessionId(applicationId, input);
    const nonce = randomBytes(NONCE_BYTES).toString('base64url');
    const contentParts = { jobId: id, applicationId, operation, input, endUser, maxCost, notBefore, expiresAt, nonce };
    const actionContent = contentOf(contentParts);
    return {
      ...{ id, applicationId, keyId, operationId: operation.id, operationRevision: operation.revision },
      ...{ operationDigest: operation.digest, effect: operation.effect, approver, state: 'awaiting_approval' },
      ...(endUser ? { providerId: endUser.providerId, subject: endUser.subject } : {}),
      ...{ digest: digestOfContent(actionContent), likeness: likenessDigestOf(secret, contentParts) },
      sealedContent: await content.seal({ id, applicationId }, actionContent),
      ...(cleanReason === '' ? {} : { reason: cleanReason }),
      ...(sessionId === undefined ? {} : { sessionId }),
      ...(metadata ? { metadata } : {}),
      ...{ idempotencyKey, requestDigest: requestDigest(secret, { prepare: operation.id, request }) },
      ...{ executesOnApproval: request.executeOnApproval ?? false, createdAt: now, expiresAt },
      ...(notBefore ? { notBefore } : {}),
    };
  }
}

/** Returns who must approve. An agent may ask for approval even if the operation requires none. */
function approverOf({ operation: { approval } }: GrantedOperation, endUser: EndUser | undefined): ApproverKind {
  if (approval !== 'none') return approval;
  return endUser ? 'end_user' : 'member';
}

function notBeforeIn(text: string | undefined, expiresAt: Date): Date | undefined {
  if (text === undefined) return undefined;
  const notBefore = new Date(text);
  if (notBefore < expiresAt) return notBefore;
  throw invalidRequest([{ path: 'notBefore', message: `must be before the expiry (${expiresAt.toISOString()})` }]);
}

function assertOwnApplication({ applicationId }: AgentCaller, appId: string): void {
  if (appId !== applicationId) throw notFound('Application', appId);
}

const idempotencyKeyRequired = (): Error =>
  fault('idempotency_key_required', 'Preparing an Action requires an Idempotency-Key.', {
    advice: 'Send the header Idempotency-Key, and send the same value if you repeat the request.',
  });

const idempotencyKeyConflict = (): Error =>
  fault('idempotency_conflict', 'This Idempotency-Key was already used with a different request.', {
    advice: 'Use a new key for a different request.',
  });

const alreadyPrepared = ({ id, state }: ActionRow): Error =>
  fault('already_prepared', `An open Action with the same content already exists: ${id}.`, {
    advice: 'Wait for that Action to end, or cancel it.',
    details: { jobId: id, status: state },
  });

const tooManyOpenActions = (): Error =>
  fault('concurrency_limit', `The end user has ${OPEN_ACTIONS_PER_END_USER_MAX} open Actions, which is the limit.`, {
    advice: 'Wait until some of these Actions have been decided, or cancel some of them.',
    details: { limit: OPEN_ACTIONS_PER_END_USER_MAX, used: OPEN_ACTIONS_PER_END_USER_MAX, scope: 'end_user' },
  });

const notApproved = ({ id, approver }: ActionRow, url: string): Error =>
  fault(
    'approval_required',
    `The Action ${id} has not been approved yet (approver: ${approver}). Nothing was started.`,
    {
      advice: 'Send approvalUrl to the approver, and wait until the Action has the status approved.',
      details: { approval: approver, status: 'awaiting_approval', approvalUrl: url },
    },
  );

const tooEarly = ({ id }: ActionRow, notBefore: Date): Error =>
  fault('not_ready', `The Action ${id} cannot be executed before ${notBefore.toISOString()}.`, {
    advice: 'Execute the Action after that time.',
    details: { notBefore: notBefore.toISOString() },
  });

const notCancellable = ({ id, state }: ActionRow): Error =>
  fault('not_ready', `The Action ${id} can no longer be cancelled (status ${state}).`, {
    advice: 'Read the invocation of the Action to see its result.',
    details: { status: isOpen(state) ? 'awaiting_approval' : state },
  });
