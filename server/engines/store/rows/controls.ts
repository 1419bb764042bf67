// Who controls a session, and which of its links are valid.
import type { ApplicationId, SessionId } from '../../../kit/ids.ts';

export interface ControlRow {
  readonly sessionId: SessionId;
  readonly applicationId: ApplicationId;
  /** Increases each time control changes. */
  readonly fence: number;
  /** Increases each time the links are revoked. */
  readonly linkEpoch: number;
  /** Identifies the person in control. Set together with the expiry, or both are absent. */
  readonly holder?: string;
  readonly expiresAt?: Date;
}

export interface ControlRows {
  of(session: SessionId): Promise<ControlRow | undefined>;
  /** Undefined if another person is in control, or the session is not running. */
  take(
    application: ApplicationId,
    session: SessionId,
    holder: string,
    now: Date,
    expiresAt: Date,
  ): Promise<ControlRow | undefined>;
  /** False if this person no longer has control under this fence. */
  renew(session: SessionId, holder: string, fence: number, now: Date, expiresAt: Date): Promise<boolean>;
  /** False if control has changed since. */
  end(session: SessionId, fence: number): Promise<boolean>;
  /** Returns the new epoch; undefined if the session does not exist. */
  revokeLinks(application: ApplicationId, session: SessionId): Promise<number | undefined>;
}
