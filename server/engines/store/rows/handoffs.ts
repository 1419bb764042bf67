// Hand-offs: who has control of a session, or is asked to take control. At most one hand-off of a session is open.
import type { ApplicationId, ConsumerId, ConsumerSessionId, HandoffId, KeyId, SessionId } from '../../../kit/ids.ts';
import type { JsonObject } from '../../../kit/json.ts';

export type HandoffStatus =
  | 'requested'
  | 'claimed'
  | 'completed'
  | 'declined'
  | 'failed'
  | 'cancelled'
  | 'expired'
  | 'session_ended';

export interface HandoffRow {
  readonly id: HandoffId;
  readonly applicationId: ApplicationId;
  readonly sessionId: SessionId;
  /** The agent key that created the session. */
  readonly keyId?: KeyId;
  readonly origin: 'api' | 'cdp' | 'operation' | 'viewer';
  readonly status: HandoffStatus;
  readonly instructions: string;
  readonly reason: 'login' | 'otp' | 'captcha' | 'payment' | 'consent' | 'review' | 'other';
  readonly claimableBy: 'members' | 'link' | 'end_user' | 'viewer';
  /** The consumer that the hand-off names, if an end user may claim it. */
  readonly consumerId?: ConsumerId;
  readonly record: 'mask' | 'keep' | 'pause';
  readonly pageId?: string;
  readonly allowedOrigins?: readonly string[];
  /** The name that the requester chose for the events of the hand-off. */
  readonly callbackEvent?: string;
  readonly leaseSeconds: number;
  /** The fence of the session when the hand-off last changed. */
  readonly fence: number;
  readonly requesterKind: 'agent_key' | 'account' | 'client' | 'viewer';
  readonly requesterId?: string;
  readonly createdAt: Date;
  readonly expiresAt: Date;
  /** Hash of the secret in the claim link. Absent after too many attempts with a wrong secret. */
  readonly claimHash?: Buffer;
  readonly claimTries: number;
  /** Hash of the cookie of the browser that opened the claim link. */
  readonly claimBrowser?: Buffer;
  /** Identifies the live view of the person in control. */
  readonly holder?: string;
  readonly holderKind?: 'account' | 'link' | 'consumer' | 'viewer';
  readonly holderId?: string;
  /** For a consumer in control: the consumer session under which the hand-off was claimed. */
  readonly holderSession?: ConsumerSessionId;
  readonly leaseHash?: Buffer;
  readonly leaseExpiresAt?: Date;
  readonly claimedAt?: Date;
  /**
   * When the person whose control began at `claimedAt` gave it back, if the hand-off stayed open. A time before
   * `claimedAt` is ignored, because earlier versions of Berth do not clear the value when control is taken again.
   */
  readonly controlUntil?: Date;
  readonly endedAt?: Date;
  readonly note?: string;
  readonly evidence?: JsonObject;
  readonly url?: string;
}

/** `pageUrl`: the last URL that the session showed, if it is still stored. */
export type ListedHandoff = HandoffRow & { readonly pageUrl?: string };

/** Null removes a value. */
export type HandoffChange = Partial<
  Pick<HandoffRow, 'status' | 'fence' | 'claimedAt' | 'endedAt' | 'note' | 'evidence' | 'url' | 'holderKind'> & {
    readonly [Name in
      | ('claimHash' | 'holder' | 'holderId' | 'holderSession' | 'leaseHash' | 'leaseExpiresAt')
      | 'controlUntil']: HandoffRow[Name] | null;
  }
>;

export interface HandoffFilter {
  readonly limit: number;
  readonly before?: HandoffId;
  readonly status?: HandoffStatus;
  readonly session?: SessionId;
  readonly key?: KeyId;
}

export interface HandoffRows {
  get(application: ApplicationId, id: HandoffId): Promise<HandoffRow | undefined>;
  /**
   * Returns the open hand-off of a session. For callers that already have the id of the session, such as the live view
   * and CDP clients.
   */
  findOpen(session: SessionId): Promise<HandoffRow | undefined>;
  byLease(hash: Buffer): Promise<HandoffRow | undefined>;
  /** Newest first. */
  list(application: ApplicationId, filter: HandoffFilter): Promise<ListedHandoff[]>;
  /** Hand-offs that name the consumer, newest first. */
  ofConsumer(
    consumer: ConsumerId,
    filter: Pick<HandoffFilter, 'limit' | 'before' | 'status'>,
  ): Promise<ListedHandoff[]>;
  countOpenOfConsumer(consumer: ConsumerId): Promise<number>;
  /**
   * Open hand-offs whose consumer is deleted, and claimed hand-offs whose consumer has ended the consumer session under
   * which the hand-off was claimed.
   */
  listWithoutConsumer(): Promise<Array<{ readonly row: HandoffRow; readonly isDeleted: boolean }>>;
  /** Oldest first. */
  ofSession(application: ApplicationId, session: SessionId): Promise<HandoffRow[]>;
  /** Hand-offs in which somebody had control between `from` and `to`. Oldest first, at most a hundred. */
  listControlledBetween(session: SessionId, from: Date, to: Date): Promise<HandoffRow[]>;
  countOpen(application: ApplicationId): Promise<number>;
  /** Counts an attempt to use a claim link with a wrong secret. Once the limit is reached, no secret is accepted. */
  countWrongSecret(application: ApplicationId, id: HandoffId, limit: number): Promise<void>;
  /**
   * Binds the link to the first browser that opens it. The browser is identified by the hash of its cookie. False if
   * the link is already bound.
   */
  bindBrowser(application: ApplicationId, id: HandoffId, browser: Buffer): Promise<boolean>;
  insert(row: HandoffRow): Promise<void>;
  change(id: HandoffId, change: HandoffChange): Promise<HandoffRow | undefined>;
  /** Ends open hand-offs whose session has ended. Returns their number. */
  endForEndedSessions(now: Date): Promise<number>;
  /** Deletes hand-offs that ended before this time. */
  forget(endedBefore: Date, batchSize: number): Promise<number>;
}
