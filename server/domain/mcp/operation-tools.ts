// Offers operations as MCP tools: calls them, prepares calls for approval, and waits while a person approves a call or
// has control of a browser.
import { createHash, randomUUID } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import type { Action, EndUser } from '../../../contract/actions.ts';
import { PERSON_WAIT_SECONDS_MAX } from '../../../contract/browser-tools.ts';
import type { AgentOperation, Invocation } from '../../../contract/invocations.ts';
import type { HandoffRows } from '../../engines/store/rows/handoffs.ts';
import { isFault } from '../../kit/fault.ts';
import type { SessionId } from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';
import type { AgentActions } from '../actions/agent-actions.ts';
import { scopeMissing } from '../faults.ts';
import type { Handoffs } from '../handoffs/handoffs.ts';
import { handoffPageUrl } from '../handoffs/view.ts';
import type { AgentCaller } from '../identity/caller.ts';
import type { Invocations } from '../invocations/invocations.ts';
import { type PendingWork, type PersonAnswer, refusedResult, type ToolImage, type ToolResult } from './tool-result.ts';

/** How long to wait for a call. Longer than most calls take. */
const CALL_WAIT_MAX_SECONDS = 55;
/** A hand-off that a step requests is noticed within this time. */
const POLL_INTERVAL_SECONDS = 2;
/** How long to wait for the end of a call whose hand-off was cancelled. */
const END_WAIT_MAX_SECONDS = 5;
const IMAGE_BYTES_MAX = 8 * 1024 ** 2;
/**
 * The maximum number of remembered calls that wait for a person. Above it, the oldest call is removed. If the removed
 * call is repeated, the repetition counts as a new call.
 */
const WAITING_INVOCATIONS_MAX = 1_000;

export interface OperationCall {
  readonly input: JsonObject;
  /** Identifies the call, if the client may send it again. */
  readonly idempotencyKey?: string;
  /** The end user who must approve the call. Only for operations that end users approve. */
  readonly endUser?: EndUser;
  readonly signal: AbortSignal;
}

export interface OperationToolsParts {
  readonly invocations: Pick<Invocations, 'listCallable' | 'invoke' | 'read' | 'file'>;
  readonly actions: Pick<AgentActions, 'prepare' | 'read' | 'execute' | 'cancel'>;
  readonly handoffs: Pick<Handoffs, 'cancel'>;
  readonly rows: Pick<HandoffRows, 'findOpen'>;
  readonly publicUrl: string;
}

export class OperationTools {
  readonly #parts: OperationToolsParts;
  /**
   * The invocations that wait for a person, by the digest of their call. A client of the 2025 protocol repeats the call
   * when the person is done. If another process gets the repeated call, that process treats it as a new call.
   */
  readonly #waitingInvocations = new Map<string, string>();

  constructor(parts: OperationToolsParts) {
    this.#parts = parts;
  }

  async listGranted(caller: AgentCaller): Promise<readonly AgentOperation[]> {
    return caller.scopes.has('operations:invoke') ? this.#parts.invocations.listCallable(caller) : [];
  }

  /** Calls an operation. A refusal is returned as a result that describes it for the model. */
  call(caller: AgentCaller, operation: AgentOperation, call: OperationCall): Promise<ToolResult> {
    return catchRefusals(async () => {
      if (operation.approval !== 'none') return this.#prepare(caller, operation, call);
      const { input, signal } = call;
      const digest = digestOf(caller, operation, input);
      const waitingId = call.idempotencyKey === undefined ? this.#waitingInvocations.get(digest) : undefined;
      if (waitingId !== undefined) return this.#continue(caller, waitingId, digest, signal);
      const key = call.idempotencyKey ?? (operation.effect === 'read' ? undefined : randomUUID());
      const options = { signal, ...(key === undefined ? {} : { idempotencyKey: key }) };
      const mayAskPerson = operation.effect !== 'read';
      const { invocation } = await this.#parts.invocations.invoke(
        caller,
        caller.applicationId,
        operation.id,
        { input },
        { ...options, waitSeconds: mayAskPerson ? POLL_INTERVAL_SECONDS : CALL_WAIT_MAX_SECONDS },
      );
      const outcome = mayAskPerson ? await this.#waitForOutcome(caller, invocation, signal) : invocation;
      return this.#noteWaiting(digest, invocation.id, await this.#resultOf(caller, outcome));
    });
  }

  /** Continues a call after the person was shown the address to open. */
  resume(
    caller: AgentCaller,
    { kind, id }: PendingWork,
    answer: PersonAnswer,
    signal: AbortSignal,
  ): Promise<ToolResult> {
    return catchRefusals(async () => {
      if (answer === 'accept') return this.#waitForResult(caller, kind, id, PERSON_WAIT_SECONDS_MAX, signal);
      if (kind === 'action') {
        await this.#parts.actions.cancel(caller, caller.applicationId, id);
        return {
          text: 'The person did not open the page, so the call was cancelled. Nothing was done.',
          isError: true,
        };
      }
      const runningInvocation = await this.#read(caller, id, 0, signal);
      const openHandoff =
        runningInvocation.sessionId === undefined
          ? undefined
          : await this.#handoffOf(runningInvocation.sessionId, caller);
      if (openHandoff) {
        const canceller = { caller, source: caller.source, bearer: undefined, browserCookie: undefined };
        await this.#parts.handoffs.cancel(canceller, caller.applicationId, openHandoff.id);
      }
      this.#forgetWaiting(id);
      return this.#resultOf(caller, await this.#read(caller, id, END_WAIT_MAX_SECONDS, signal));
    });
  }

  /** Implements the tool `berth_result`. */
  result(
    caller: AgentCaller,
    { jobId, invocationId, seconds = PERSON_WAIT_SECONDS_MAX }: ResultInput,
    signal: AbortSignal,
  ): Promise<ToolResult> {
    return catchRefusals(async () => {
      if (jobId !== undefined && invocationId === undefined)
        return this.#waitForResult(caller, 'action', jobId.toLowerCase(), seconds, signal);
      if (invocationId !== undefined && jobId === undefined)
        return this.#waitForResult(caller, 'invocation', invocationId.toLowerCase(), seconds, signal);
      return { text: 'Pass either jobId or invocationId.', isError: true };
    });
  }

  async #waitForResult(
    caller: AgentCaller,
    kind: PendingWork['kind'],
    id: string,
    seconds: number,
    signal: AbortSignal,
  ): Promise<ToolResult> {
    if (kind === 'action') return this.#waitForDecision(caller, id, seconds, signal);
    const invocation = await this.#read(caller, id, seconds, signal);
    if (invocation.endedAt) this.#forgetWaiting(id);
    return this.#resultOf(caller, invocation);
  }

  // ---- calls that a person approves ---------------------------------------------------------------------------------

  async #prepare(caller: AgentCaller, { id }: AgentOperation, call: OperationCall): Promise<ToolResult> {
    for (const scope of ['actions:prepare', 'actions:execute'] as const)
      if (!caller.scopes.has(scope)) throw scopeMissing([scope]);
    const { input, endUser, idempotencyKey = randomUUID(), signal } = call;
    const request = { input, ...(endUser ? { endUser } : {}) };
    const { actions } = this.#parts;
    try {
      const { action } = await actions.prepare(caller, caller.applicationId, id, request, idempotencyKey);
      return approvalResult(action);
    } catch (error) {
      // The call is a repetition. Some clients repeat a call after the person has opened the address, and a model may
      // repeat it too.
      const jobId = isFault(error, 'already_prepared') ? Object(error.details).jobId : undefined;
      if (typeof jobId !== 'string') throw error;
      return this.#waitForDecision(caller, jobId, PERSON_WAIT_SECONDS_MAX, signal);
    }
  }

  /** Waits for the decision on an Action, and executes the Action if it was approved. */
  async #waitForDecision(
    caller: AgentCaller,
    jobId: string,
    seconds: number,
    signal: AbortSignal,
  ): Promise<ToolResult> {
    const { actions } = this.#parts;
    const query = { wait: Math.min(seconds, PERSON_WAIT_SECONDS_MAX), since: 'awaiting_approval' } as const;
    const action = await actions.read(caller, caller.applicationId, jobId, query, signal);
    if (action.status === 'awaiting_approval') return { text: approvalResult(action).text };
    if (!caller.scopes.has('actions:execute')) throw scopeMissing(['actions:execute']);
    const { digest } = action;
    const options = { waitSeconds: CALL_WAIT_MAX_SECONDS, signal };
    const { invocation } = await actions.execute(caller, caller.applicationId, jobId, { digest }, options);
    return this.#resultOf(caller, invocation);
  }

  // ---- repeated calls -----------------------------------------------------------------------------------------------

  /** Waits for an invocation that an earlier, identical call has started. */
  async #continue(caller: AgentCaller, id: string, digest: string, signal: AbortSignal): Promise<ToolResult> {
    this.#waitingInvocations.delete(digest);
    const invocation = await this.#read(caller, id, PERSON_WAIT_SECONDS_MAX, signal);
    return this.#noteWaiting(digest, id, await this.#resultOf(caller, invocation));
  }

  #noteWaiting(digest: string, id: string, result: ToolResult): ToolResult {
    if (!result.personRequest) return result;
    this.#waitingInvocations.set(digest, id);
    const [oldestDigest] = this.#waitingInvocations.keys();
    if (this.#waitingInvocations.size > WAITING_INVOCATIONS_MAX && oldestDigest !== undefined)
      this.#waitingInvocations.delete(oldestDigest);
    return result;
  }

  /** Removes an invocation that no longer waits for a repeated call. A later identical call starts a new invocation. */
  #forgetWaiting(id: string): void {
    for (const [digest, waitingId] of this.#waitingInvocations)
      if (waitingId === id) this.#waitingInvocations.delete(digest);
  }

  // ---- invocations --------------------------------------------------------------------------------------------------

  #read(caller: AgentCaller, id: string, seconds: number, signal: AbortSignal): Promise<Invocation> {
    return this.#parts.invocations.read(caller, caller.applicationId, id, { wait: seconds }, signal);
  }

  /** Returns the invocation when it has ended, when it has requested a hand-off, or when the time is up. */
  async #waitForOutcome(caller: AgentCaller, startedInvocation: Invocation, signal: AbortSignal): Promise<Invocation> {
    let currentInvocation = startedInvocation;
    for (
      let waitedSeconds = 0;
      waitedSeconds < CALL_WAIT_MAX_SECONDS && !currentInvocation.endedAt && !signal.aborted;
      waitedSeconds += POLL_INTERVAL_SECONDS
    ) {
      if (currentInvocation.sessionId !== undefined && (await this.#handoffOf(currentInvocation.sessionId, caller)))
        return currentInvocation;
      currentInvocation = await this.#read(caller, currentInvocation.id, POLL_INTERVAL_SECONDS, signal);
    }
    return currentInvocation;
  }

  /** The open hand-off that a call of this key requested. */
  async #handoffOf(session: string, { keyId }: AgentCaller) {
    const openHandoff = await this.#parts.rows.findOpen(session as SessionId);
    return openHandoff?.origin === 'operation' && openHandoff.requesterId === keyId ? openHandoff : undefined;
  }

  async #resultOf(caller: AgentCaller, invocation: Invocation): Promise<ToolResult> {
    const { id, status, output, error, sessionId } = invocation;
    const facts = { invocationId: id, status, output, error };
    if (status !== 'running') {
      const image = await this.#imageOf(caller, invocation);
      const text = JSON.stringify(facts, null, 2);
      return { text, ...(image ? { image } : {}), ...(status === 'succeeded' ? {} : { isError: true }) };
    }
    const openHandoff = sessionId === undefined ? undefined : await this.#handoffOf(sessionId, caller);
    const url = openHandoff && handoffPageUrl(this.#parts.publicUrl, openHandoff);
    const factsText = JSON.stringify({ ...facts, ...(url === undefined ? {} : { handoffUrl: url }) }, null, 2);
    const nextStepText = `Call berth_result with this invocationId.`;
    if (url === undefined) return { text: `${factsText}\n\nThe invocation has not ended. ${nextStepText}` };
    return {
      text: `${factsText}\n\nA member of the application must take control of the browser at handoffUrl. ${nextStepText}`,
      personRequest: { url, message: HAND_OFF_MESSAGE, pending: { kind: 'invocation', id } },
    };
  }

  /** Returns the image that the invocation produced, for models that accept images. */
  async #imageOf(caller: AgentCaller, { id, output = {} }: Invocation): Promise<ToolImage | undefined> {
    if (!('artifact' in output)) return undefined;
    const file = await this.#parts.invocations.file(caller, id);
    if (!file?.mimeType.startsWith('image/') || file.size > IMAGE_BYTES_MAX) return undefined;
    const openedFile = await file.open();
    return openedFile && { bytes: await buffer(openedFile.body), mimeType: file.mimeType };
  }
}

const digestOf = ({ keyId }: AgentCaller, { id }: AgentOperation, input: unknown): string =>
  createHash('sha256')
    .update(JSON.stringify([keyId, id, input]))
    .digest('hex');

export interface ResultInput {
  readonly jobId?: string;
  readonly invocationId?: string;
  readonly seconds?: number;
}

const HAND_OFF_MESSAGE =
  'An agent asks a member of the application to take control of its browser. Open the page to see the reason.';

function approvalResult({ jobId, status, approver, approvalUrl, expiresAt }: Action): ToolResult {
  const facts = JSON.stringify({ jobId, status, approver, approvalUrl, expiresAt }, null, 2);
  const message =
    'An agent requests your approval for a call. Open the page to read the call, and to approve or refuse it.';
  return {
    text: `${facts}\n\nNothing was done. Give approvalUrl to a person who may approve (${approver}), then call berth_result with this jobId.`,
    personRequest: { url: approvalUrl, message, pending: { kind: 'action', id: jobId } },
  };
}

async function catchRefusals(work: () => Promise<ToolResult>): Promise<ToolResult> {
  try {
    return await work();
  } catch (error) {
    if (isFault(error) && error.code !== 'internal') return refusedResult(error);
    throw error;
  }
}
