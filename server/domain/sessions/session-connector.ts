// Authorizes connections to a session. A client needs the signing key in the session's connect address, or an agent key
// of the session's application that has the connect scope. A signing key is accepted only while the agent key that it
// was issued to is valid. Waits for a session that is still starting.
import type { EventRows } from '../../engines/store/rows/events.ts';
import type { SessionRow, SessionRows } from '../../engines/store/rows/sessions.ts';
import { isFault } from '../../kit/fault.ts';
import { isUuid, type KeyId, type SessionId } from '../../kit/ids.ts';
import type { Runtime } from '../../kit/runtime.ts';
import { fault, notFound, scopeMissing } from '../faults.ts';
import type { Callers, PresentedCredentials } from '../identity/callers.ts';
import type { KeyUses } from '../identity/key-uses.ts';
import { isExclusive, sessionExclusive } from './exclusive.ts';
import type { LiveSession, LiveSessions } from './live.ts';
import { hasEnded } from './session.ts';
import { CONNECT_SCOPE, type Signing } from './signing.ts';
import type { StartingSessions } from './starting.ts';

/** The credentials of a connecting client: the signing key in the address, or an agent key in the headers. */
export interface ConnectCredentials extends PresentedCredentials {
  readonly signingKey?: string | undefined;
  /** The pass with which the service itself connects to an exclusive session. */
  readonly pass?: string | undefined;
}

export interface ConnectParts extends Pick<Runtime, 'clock' | 'log'> {
  readonly rows: SessionRows;
  readonly events: Pick<EventRows, 'append'>;
  readonly liveSessions: LiveSessions;
  readonly starting: StartingSessions;
  readonly signing: Signing;
  readonly keyUses: Pick<KeyUses, 'assertActive'>;
  readonly callers: Pick<Callers, 'authenticate'>;
}

/** The session that was opened, and the agent key that authorized it. */
export interface ConnectGrant {
  readonly live: LiveSession;
  readonly keyId: KeyId;
}

export class SessionConnector {
  readonly #parts: ConnectParts;

  constructor(parts: ConnectParts) {
    this.#parts = parts;
  }

  /**
   * Returns the live session. Throws 401 for a bad key, 403 if the session is exclusive, 404 if it is unknown, 410 if
   * it has ended, 503 if it is not ready.
   */
  async open(id: string, credentials: ConnectCredentials): Promise<ConnectGrant> {
    const { row, keyId } = await this.#authorize(id, credentials);
    if (hasEnded(row) || row.end) throw sessionEnded(row);
    if (isExclusive(row) && !this.#parts.signing.isPass(row.id, credentials.pass ?? '')) throw sessionExclusive(row.id);
    const liveSession = this.#parts.liveSessions.get(row.id) ?? (await this.#parts.starting.wait(row.id));
    if (liveSession?.isOpen) return { live: liveSession, keyId };
    const currentRow = await this.#parts.rows.byId(row.id);
    if (!currentRow || hasEnded(currentRow) || currentRow.end) throw sessionEnded(currentRow ?? row);
    throw fault('capacity', `The browser of session ${id} is not ready.`, { advice: 'Try again in a few seconds.' });
  }

  /** Adds an event for an authorized client that was refused because of the client limit. */
  recordRefusal(liveSession: LiveSession, error: unknown): void {
    if (!isFault(error, 'client_limit')) return;
    const { events, clock, log } = this.#parts;
    const detail = { code: error.code, clients: Number(error.details?.used ?? liveSession.clients) };
    events
      .append(liveSession.id, { type: 'client.refused', at: clock.now(), actor: { kind: 'client' }, detail })
      .catch(error => log.warn('session.event_not_written', { sessionId: liveSession.id, error }));
  }

  /** The response of `/json/version`, with the address to connect to. */
  async discover(
    id: string,
    credentials: ConnectCredentials,
  ): Promise<{ Browser: string; 'Protocol-Version': string; webSocketDebuggerUrl: string }> {
    const { live, keyId } = await this.open(id, credentials);
    return {
      Browser: live.browser.version.product,
      'Protocol-Version': live.browser.version.protocolVersion,
      webSocketDebuggerUrl: this.#parts.signing.fieldsOf(live.id, keyId).connectUrl,
    };
  }

  async #authorize(id: string, credentials: ConnectCredentials): Promise<{ row: SessionRow; keyId: KeyId }> {
    const sessionId = isUuid(id) ? (id as SessionId) : undefined;
    if (credentials.signingKey !== undefined) {
      if (!sessionId) throw notFound('Session', id);
      const keyId = this.#parts.signing.agentKeyIdOf(sessionId, credentials.signingKey);
      if (!keyId)
        throw fault('invalid_credentials', 'The signingKey does not belong to this session.', {
          advice: 'Use the connectUrl exactly as it was returned.',
        });
      const row = requireSession(await this.#parts.rows.byId(sessionId), id);
      await this.#parts.keyUses.assertActive({ applicationId: row.applicationId, keyId });
      return { row, keyId };
    }
    if (!credentials.authorization && !credentials.apiKey)
      throw fault('missing_credentials', 'The request has neither a signingKey in its URL nor an agent key.', {
        advice: 'Use the connectUrl exactly as it was returned, or send Authorization: Bearer <agent key>.',
      });
    const caller = await this.#parts.callers.authenticate(credentials, 'agentKey');
    if (!caller.scopes.has(CONNECT_SCOPE)) throw scopeMissing([CONNECT_SCOPE]);
    const row = requireSession(sessionId && (await this.#parts.rows.get(caller.applicationId, sessionId)), id);
    return { row, keyId: caller.keyId };
  }
}

function requireSession(row: SessionRow | undefined, id: string): SessionRow {
  if (!row) throw notFound('Session', id);
  return row;
}

export const sessionEnded = (row: SessionRow) =>
  fault('session_ended', `Session ${row.id} has ended (${row.end?.reason ?? row.status}).`, {
    advice: 'An ended session cannot be resumed: create a new one.',
    details: { status: row.status, ...(row.end ? { endReason: row.end.reason } : {}) },
  });
