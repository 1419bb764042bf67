// The fence of each session, and the epoch that decides which links to the session are valid. The session's hand-offs
// record who has control.
import type { ApplicationId, SessionId } from '../../../kit/ids.ts';

export interface ControlRow {
  readonly sessionId: SessionId;
  readonly applicationId: ApplicationId;
  /** Increases each time control of the session changes. */
  readonly fence: number;
  /** Increases each time the links are revoked. */
  readonly linkEpoch: number;
}

export interface LockedFence {
  readonly fence: number;
  /** Whether the session is running and its end has not been decided. */
  readonly runs: boolean;
}

export interface ControlRows {
  ofSession(session: SessionId): Promise<ControlRow | undefined>;
  /** Locks the session's fence until the transaction ends. Undefined: the application has no such session. */
  lockFence(application: ApplicationId, session: SessionId): Promise<LockedFence | undefined>;
  setFence(session: SessionId, fence: number): Promise<void>;
  /** Returns the new epoch; undefined if the session does not exist. */
  revokeLinks(application: ApplicationId, session: SessionId): Promise<number | undefined>;
}
