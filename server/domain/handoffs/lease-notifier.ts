// Reports a change of control in the audit log, as an event of the session, and to the clients of the agent. If an entry
// or an event cannot be written, this is noted in the server log.
import type { AuditAction } from '../../../contract/audit.ts';
import type { Actor, SessionEventType } from '../../engines/store/rows/events.ts';
import type { HandoffRow } from '../../engines/store/rows/handoffs.ts';
import type { AtomicTables } from '../../engines/store/store.ts';
import { reason } from '../../kit/fault.ts';
import type { SessionId } from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';
import type { AuditSource, Detail } from '../audit/audit.ts';
import type { LeaseParts } from './lease-parts.ts';

/** An event for the clients of the agent. */
export interface Notice {
  readonly method: string;
  readonly params: JsonObject;
}

export class LeaseNotifier {
  readonly #parts: LeaseParts;
  readonly #session: SessionId;
  readonly #agentListeners = new Set<(notice: Notice) => void>();

  constructor(parts: LeaseParts, session: SessionId) {
    this.#parts = parts;
    this.#session = session;
  }

  onNotice(listener: (notice: Notice) => void): { close(): void } {
    this.#agentListeners.add(listener);
    return { close: () => void this.#agentListeners.delete(listener) };
  }

  close(): void {
    this.#agentListeners.clear();
  }

  /** Writes an audit entry. Called in the transaction of the change. */
  audit(
    trx: AtomicTables,
    action: AuditAction,
    row: HandoffRow,
    source: AuditSource,
    details: Readonly<Record<string, Detail>> = {},
  ): Promise<void> {
    const holderFields = row.holderKind
      ? { holderKind: row.holderKind, ...(row.holderId ? { holder: row.holderId } : {}) }
      : {};
    return this.#parts.audit.record(
      {
        ...{ ...source, action, applicationId: row.applicationId, outcome: 'success' },
        target: { kind: 'handoff', id: row.id },
        details: { sessionId: row.sessionId, fence: row.fence, ...holderFields, ...details },
      },
      trx,
    );
  }

  /** Records an event of the session. Called after the commit. */
  recordEvent(type: SessionEventType, detail: JsonObject, actor: Actor = { kind: 'viewer' }): void {
    const { events, clock, log } = this.#parts;
    events
      .append(this.#session, { type, at: clock.now(), actor, detail })
      .catch(error => log.warn('session.event_not_written', { sessionId: this.#session, error }));
  }

  notifyAgents(method: string, params: JsonObject): void {
    const notice: Notice = { method, params };
    for (const notify of [...this.#agentListeners]) notify(notice);
  }

  logWriteFailure(error: unknown): void {
    this.#parts.log.warn('control.end_not_written', { sessionId: this.#session, reason: reason(error) });
  }
}

/** Fields that every event about a hand-off contains. */
export const eventFields = (row: HandoffRow): JsonObject => ({ ...handoffFields(row), fence: row.fence });

/** Fields that identify the hand-off for the agent. */
export const handoffFields = ({ id, callbackEvent }: HandoffRow): JsonObject => ({
  handoffId: id,
  ...(callbackEvent === undefined ? {} : { callbackEvent }),
});

export const viewerOf = ({ holderId }: HandoffRow): Actor => ({
  kind: 'viewer',
  ...(holderId === undefined ? {} : { id: holderId }),
});
