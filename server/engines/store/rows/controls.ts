// Who controls a session, and which links to it stand.
import type { ApplicationId, SessionId } from '../../../kit/ids.ts';

export interface ControlRow {
  readonly sessionId: SessionId;
  readonly applicationId: ApplicationId;
  /** Grows with every change of hands. */
  readonly fence: number;
  /** Grows when the links that were given out are revoked. */
  readonly linkEpoch: number;
  /** The person who drives; both or neither. */
  readonly holder?: string;
  readonly expiresAt?: Date;
}

export interface ControlRows {
  of(session: SessionId): Promise<ControlRow | undefined>;
  /** Undefined when somebody else holds it, or the session does not run. */
  take(
    application: ApplicationId,
    session: SessionId,
    holder: string,
    now: Date,
    expiresAt: Date,
  ): Promise<ControlRow | undefined>;
  /** False when this holder holds it no more under this fence. */
  renew(session: SessionId, holder: string, fence: number, now: Date, expiresAt: Date): Promise<boolean>;
  /** False when it had changed hands already. */
  end(session: SessionId, fence: number): Promise<boolean>;
  /** The new epoch; undefined for a session that is not there. */
  revokeLinks(application: ApplicationId, session: SessionId): Promise<number | undefined>;
}
