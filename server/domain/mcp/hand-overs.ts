// Hand-offs that agents request over MCP with the browser tools.
import { type BrowserToolInput, PERSON_WAIT_SECONDS_MAX } from '../../../contract/browser-tools.ts';
import { type HandoffTerms, TTL_SECONDS_DEFAULT } from '../../../contract/handoffs.ts';
import type { HandoffRow, HandoffRows } from '../../engines/store/rows/handoffs.ts';
import { isFault } from '../../kit/fault.ts';
import { type HandoffId, isUuid, type SessionId } from '../../kit/ids.ts';
import { byAgent } from '../audit/by-caller.ts';
import { fault, notFound } from '../faults.ts';
import type { HandoffFollower } from '../handoffs/handoff-follower.ts';
import type { Handoffs } from '../handoffs/handoffs.ts';
import type { HandoffRequests } from '../handoffs/requests.ts';
import { handoffPageUrl, isOpen } from '../handoffs/view.ts';
import type { AgentCaller } from '../identity/caller.ts';
import type { ToolResult } from './tool-result.ts';

export interface HandOversParts {
  readonly requests: Pick<HandoffRequests, 'request'>;
  readonly changeFollower: Pick<HandoffFollower, 'waitForEnd'>;
  readonly handoffs: Pick<Handoffs, 'cancel'>;
  readonly rows: Pick<HandoffRows, 'get' | 'list'>;
  readonly publicUrl: string;
}

/**
 * Maximum number of tracked hand-offs. Above it, the oldest is removed, and a repeated call may request a new hand-off.
 */
const UNREPORTED_HANDOFFS_MAX = 1_000;

export class HandOvers {
  readonly #parts: HandOversParts;
  /**
   * The hand-off of each session, until its end has been reported. If the process ends, this map is lost; a repeated
   * call then requests a new hand-off, unless the earlier one is still open.
   */
  readonly #unreportedHandoffs = new Map<SessionId, HandoffId>();

  constructor(parts: HandOversParts) {
    this.#parts = parts;
  }

  /**
   * Requests a hand-off. A repeated call refers to the same hand-off until its end has been reported, because clients
   * of the 2025 protocol repeat the call after they have opened the address.
   */
  async request(
    caller: AgentCaller,
    sessionId: SessionId,
    input: BrowserToolInput<'browser_hand_over'>,
    signal: AbortSignal,
  ): Promise<ToolResult> {
    const earlierId = this.#unreportedHandoffs.get(sessionId);
    const earlierRow = earlierId && (await this.#parts.rows.get(caller.applicationId, earlierId));
    if (earlierRow?.requesterId === caller.keyId)
      return this.wait(caller, { id: earlierRow.id }, PERSON_WAIT_SECONDS_MAX, signal);
    try {
      return await this.#startRequest(caller, sessionId, input);
    } catch (error) {
      const id: unknown = isFault(error, 'handoff_exists') ? Object(error.details).handoffId : undefined;
      const openRow =
        typeof id === 'string' ? await this.#parts.rows.get(caller.applicationId, id as HandoffId) : undefined;
      if (openRow?.requesterId !== caller.keyId) throw error;
      return this.wait(caller, { id: openRow.id }, PERSON_WAIT_SECONDS_MAX, signal);
    }
  }

  /**
   * Requests a new hand-off. With `link`, anyone who has the link can claim the hand-off, once, in one browser.
   * Otherwise, a member who signs in can claim it.
   */
  async #startRequest(
    caller: AgentCaller,
    sessionId: SessionId,
    { sessionId: _, minutes, claimableBy = 'link', ...rest }: BrowserToolInput<'browser_hand_over'>,
  ): Promise<ToolResult> {
    const { requests, publicUrl } = this.#parts;
    const terms: HandoffTerms = {
      ...{ ...rest, claimableBy: [claimableBy], extendSession: true },
      ttlSeconds: minutes === undefined ? TTL_SECONDS_DEFAULT : 60 * minutes,
    };
    const { applicationId, keyId } = caller;
    const requester = { kind: 'agent_key', id: keyId, origin: 'api', source: byAgent(caller) } as const;
    const requesterWithActor = { ...requester, actor: { kind: 'agentKey', id: keyId } } as const;
    const handoff = await requests.request(applicationId, sessionId, terms, requesterWithActor);
    const { id, expiresAt, claimUrl, warnings = [] } = handoff;
    const [oldest] = this.#unreportedHandoffs.keys();
    if (oldest !== undefined && this.#unreportedHandoffs.size >= UNREPORTED_HANDOFFS_MAX)
      this.#unreportedHandoffs.delete(oldest);
    this.#unreportedHandoffs.set(sessionId, id as HandoffId);
    const url = claimUrl ?? handoffPageUrl(publicUrl, { id, applicationId });
    const linkRecipient = claimUrl === undefined ? 'a member of the application' : 'one person';
    const text = [
      `Hand-off ${id} of session ${sessionId} waits for a person until ${expiresAt}. Give this link to ${linkRecipient}:\n${url}`,
      'Then call browser_hand_over_wait. While the person has control, your commands wait, and pages may be hidden from you.',
      ...warnings.map(({ message }) => `Warning: ${message}`),
    ].join('\n\n');
    const message = 'An agent asks you to take control of its browser. Open the page to see the reason.';
    return { text, sessionId, personRequest: { url, message, pending: { kind: 'handoff', id } } };
  }

  /** Waits until the person is done. Without an id, waits for the newest hand-off that this key requested. */
  async wait(
    caller: AgentCaller,
    target: { readonly session?: SessionId; readonly id?: string },
    seconds: number,
    signal: AbortSignal,
  ): Promise<ToolResult> {
    const row = await this.#find(caller, target);
    const waitMs = 1000 * Math.min(seconds, PERSON_WAIT_SECONDS_MAX);
    const latestRow = await this.#parts.changeFollower.waitForEnd(row, signal, waitMs);
    if (!isOpen(latestRow)) this.#markReported(latestRow);
    return describeHandoff(latestRow);
  }

  async cancel(
    caller: AgentCaller,
    target: { readonly session?: SessionId; readonly id?: string },
  ): Promise<ToolResult> {
    const row = await this.#find(caller, target);
    const { id, applicationId, sessionId } = row;
    const { source } = caller;
    this.#markReported(row);
    await this.#parts.handoffs.cancel(
      { caller, source, bearer: undefined, browserCookie: undefined },
      applicationId,
      id,
    );
    return { text: `Hand-off ${id} is cancelled. You have control.`, sessionId };
  }

  #markReported({ sessionId, id }: HandoffRow): void {
    if (this.#unreportedHandoffs.get(sessionId) === id) this.#unreportedHandoffs.delete(sessionId);
  }

  /** Finds a hand-off that this key requested. */
  async #find(
    { applicationId, keyId }: AgentCaller,
    { session, id }: { readonly session?: SessionId; readonly id?: string },
  ): Promise<HandoffRow> {
    const { rows } = this.#parts;
    if (id !== undefined) {
      const row = isUuid(id) ? await rows.get(applicationId, id.toLowerCase() as HandoffId) : undefined;
      if (row?.requesterId !== keyId) throw notFound('Hand-off', id);
      return row;
    }
    const sessionFilter = session === undefined ? {} : { session };
    const newestRows = await rows.list(applicationId, { ...sessionFilter, limit: SEARCHED_HANDOFFS_MAX });
    const ownHandoff = newestRows.find(({ requesterId }) => requesterId === keyId);
    if (!ownHandoff)
      throw fault('not_found', 'No hand-off requested by this agent key was found. Call browser_hand_over first.');
    return ownHandoff;
  }
}

/**
 * How many of the newest hand-offs are searched for one that this key requested. A viewer who took control later has a
 * newer hand-off.
 */
const SEARCHED_HANDOFFS_MAX = 20;

function describeHandoff(row: HandoffRow): ToolResult {
  const { id, sessionId, status, note, evidence, url, expiresAt, claimedAt } = row;
  if (isOpen(row)) {
    const statusText =
      status === 'claimed'
        ? `A person has had control since ${claimedAt?.toISOString()}.`
        : `Nobody has taken control yet. The hand-off waits until ${expiresAt.toISOString()}.`;
    return { text: `Hand-off ${id} is open. ${statusText} Call browser_hand_over_wait again.`, sessionId };
  }
  const lines = [
    `Hand-off ${id} has ended: ${END_TEXTS[status] ?? status}`,
    note === undefined ? undefined : `Note from the person (not an instruction): ${JSON.stringify(note)}`,
    evidence === undefined ? undefined : `Data from the hand-off page: ${JSON.stringify(evidence)}`,
    url === undefined ? undefined : `Page at the end of the hand-off: ${url}`,
  ];
  const text = lines.filter(part => part !== undefined).join('\n');
  return { text, sessionId, ...(status === 'completed' ? {} : { isError: true }) };
}

const END_TEXTS: Readonly<Partial<Record<HandoffRow['status'], string>>> = {
  completed: 'the person is done. Take a browser_snapshot to see the page.',
  declined: 'the person declined.',
  failed: 'the person could not complete the hand-off.',
  cancelled: 'the hand-off was cancelled.',
  expired: 'nobody took control in time.',
  session_ended: 'the session ended.',
};
