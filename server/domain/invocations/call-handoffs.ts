// Hand-offs that calls request: the operation `browser.handoff`, and the step `handoff` of other calls.
import type { Static } from 'typebox';
import type { HandoffTerms } from '../../../contract/handoffs.ts';
import type { InvocationError } from '../../../contract/invocations.ts';
import type { MANAGED_OPERATIONS } from '../../../contract/managed-operations.ts';
import type { HandoffRow, HandoffRows } from '../../engines/store/rows/handoffs.ts';
import { isFault } from '../../kit/fault.ts';
import type { ApplicationId, HandoffId, InvocationId, SessionId } from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';
import { byAgent } from '../audit/by-caller.ts';
import { notFound } from '../faults.ts';
import type { HandoffFollower } from '../handoffs/handoff-follower.ts';
import type { HandoffRequests } from '../handoffs/requests.ts';
import type { AgentCaller } from '../identity/caller.ts';
import type { Sessions } from '../sessions/api.ts';
import type { GivenStep } from './browser-steps.ts';
import type { Outcome, PreparedCall, UnsuccessfulOutcome } from './prepared.ts';

type Input = Static<(typeof MANAGED_OPERATIONS)['browser.handoff']['input']>;

export interface CallHandoffsParts {
  readonly sessions: Pick<Sessions, 'read'>;
  readonly requests: Pick<HandoffRequests, 'assertPossible' | 'request'>;
  readonly handoffFollower: Pick<HandoffFollower, 'waitForEnd'>;
  readonly rows: Pick<HandoffRows, 'get'>;
}

export class CallHandoffs {
  readonly #parts: CallHandoffsParts;

  constructor(parts: CallHandoffsParts) {
    this.#parts = parts;
  }

  /**
   * Prepares the call. Throws a `Fault` if the hand-off is refused. If an earlier attempt was interrupted, continues
   * with its hand-off, which is still waiting or has ended.
   */
  async prepare(caller: AgentCaller, id: InvocationId, callInput: JsonObject): Promise<PreparedCall> {
    const { sessions, requests } = this.#parts;
    const { sessionId, ...terms } = callInput as Input; // Validated against the schema of the operation.
    const session = await sessions.read(caller, sessionId.toLowerCase());
    if (!(await this.#handoffOfCall(caller.applicationId, id)))
      await requests.assertPossible(caller.applicationId, session.id, terms);
    return {
      session: { id: session.id as SessionId, recorded: session.browserSettings?.recordSession !== false },
      run: (_, signal) => this.#run(caller, id, session.id as SessionId, terms, signal),
      release: async () => {},
    };
  }

  /**
   * Performs the `handoff` step of a call. Returns the hand-off when it has ended. Throws a `Fault` if the hand-off is
   * refused.
   */
  async step(caller: AgentCaller, session: SessionId, step: GivenStep, signal: AbortSignal): Promise<HandoffRow> {
    const { instructions = '', reason, ttlSeconds, leaseSeconds, allowedOrigins, record } = step;
    const terms: HandoffTerms = {
      ...{ instructions, extendSession: true },
      ...(reason === undefined ? {} : { reason }),
      ...(ttlSeconds === undefined ? {} : { ttlSeconds }),
      ...(leaseSeconds === undefined ? {} : { leaseSeconds }),
      ...(allowedOrigins === undefined ? {} : { allowedOrigins }),
      ...(record === undefined ? {} : { record }),
    };
    return this.#requestHandoff(caller, session, terms, signal);
  }

  async #run(
    caller: AgentCaller,
    id: InvocationId,
    session: SessionId,
    terms: HandoffTerms,
    signal: AbortSignal,
  ): Promise<Outcome> {
    try {
      return outcomeOf(await this.#requestHandoff(caller, session, terms, signal, handoffIdOf(id)));
    } catch (error) {
      if (!isFault(error)) throw error;
      // Another hand-off was requested first, or the session has ended.
      return failedOutcome({ code: error.code, message: error.message, retryable: false, phase: 'before' });
    }
  }

  async #requestHandoff(
    caller: AgentCaller,
    session: SessionId,
    terms: HandoffTerms,
    signal: AbortSignal,
    id?: HandoffId,
  ): Promise<HandoffRow> {
    const { requests, rows, handoffFollower } = this.#parts;
    const { applicationId, keyId } = caller;
    let row = id && (await rows.get(applicationId, id));
    if (!row) {
      const requester = { kind: 'agent_key', id: keyId, origin: 'operation', source: byAgent(caller) } as const;
      const requestedBy = { ...requester, actor: { kind: 'agentKey', id: keyId } } as const;
      const requestedHandoff = await requests.request(applicationId, session, terms, requestedBy, id);
      row = await rows.get(applicationId, requestedHandoff.id as HandoffId);
      if (!row) throw notFound('Hand-off', requestedHandoff.id);
    }
    const endedRow = await handoffFollower.waitForEnd(row, signal);
    signal.throwIfAborted();
    return endedRow;
  }

  #handoffOfCall(application: ApplicationId, id: InvocationId): Promise<HandoffRow | undefined> {
    return this.#parts.rows.get(application, handoffIdOf(id));
  }
}

/**
 * Returns the id of the hand-off that `browser.handoff` requests. It is the id of the call, so that the next process
 * can find the hand-off.
 */
const handoffIdOf = (id: InvocationId): HandoffId => id as string as HandoffId;

function outcomeOf(row: HandoffRow): Outcome {
  const { id, status, note, evidence, url } = row;
  if (status !== 'completed' && status !== 'declined' && status !== 'failed') return undecidedOutcome(row);
  return {
    state: 'succeeded',
    output: {
      ...{ handoffId: id, outcome: status },
      ...(note === undefined ? {} : { note }),
      ...(evidence === undefined ? {} : { evidence }),
      ...(url === undefined ? {} : { url }),
    },
  };
}

/**
 * Returns the failure of a call whose hand-off was not completed. Undefined if the person has completed it; the steps
 * then continue.
 */
export function handoffFailureOf(row: HandoffRow, step: number): UnsuccessfulOutcome | undefined {
  const { id: handoffId, status, note } = row;
  if (status === 'completed') return undefined;
  const { error } =
    status === 'declined' || status === 'failed'
      ? failedOutcome(UNSUCCESSFUL_HANDOFF_ERRORS[status])
      : undecidedOutcome(row);
  const details = { step, handoffId, ...(note === undefined ? {} : { note }) };
  return failedOutcome({ ...error, message: `Step ${step} (handoff): ${error.message}`, details });
}

function undecidedOutcome({ status }: HandoffRow): UnsuccessfulOutcome {
  if (status === 'expired') return failedOutcome(HANDOFF_EXPIRED);
  return failedOutcome(status === 'cancelled' ? HANDOFF_CANCELLED : SESSION_ENDED_FIRST);
}

const failedOutcome = (error: InvocationError): UnsuccessfulOutcome => ({ state: 'failed', error });

const handoffError = (code: string, message: string, retryable: boolean): InvocationError => ({
  ...{ code, message, retryable, phase: 'during' },
});

const UNSUCCESSFUL_HANDOFF_ERRORS = {
  declined: handoffError('handoff_declined', 'The person declined the hand-off.', false),
  failed: handoffError('handoff_failed', 'The person could not complete the hand-off.', false),
} as const;
const HANDOFF_EXPIRED = handoffError('handoff_expired', 'Nobody took control of the browser in time.', true);
const HANDOFF_CANCELLED = handoffError('handoff_cancelled', 'The hand-off was cancelled.', false);
const SESSION_ENDED_FIRST = handoffError('session_not_running', 'The session ended before the hand-off did.', false);
