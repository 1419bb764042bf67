// Actions: calls that wait for the decision of a person.
import type { AccountId, ActionId, ApplicationId, HostId, InvocationId, KeyId, SessionId } from '../../../kit/ids.ts';
import type { JsonObject } from '../../../kit/json.ts';

/**
 * `awaiting_approval` and `approved` are open. `executing`, `succeeded`, `failed` and `ambiguous` have an invocation.
 * The last six states are final.
 */
export type ActionState =
  | 'awaiting_approval'
  | 'approved'
  | 'executing'
  | 'succeeded'
  | 'failed'
  | 'ambiguous'
  | 'refused'
  | 'expired'
  | 'cancelled';

export type ActionApprover = 'end_user' | 'member' | 'owner';

export interface ActionRow {
  readonly id: ActionId;
  readonly applicationId: ApplicationId;
  /** The agent key that prepared the Action. */
  readonly keyId: KeyId;
  readonly operationId: string;
  readonly operationRevision: number;
  readonly operationDigest: string;
  readonly effect: 'read' | 'write' | 'irreversible';
  readonly approver: ActionApprover;
  /** The end user whom the Action is for. */
  readonly providerId?: string;
  readonly subject?: string;
  readonly state: ActionState;
  /** The digest of the content that is to be approved. */
  readonly digest: string;
  /** A value that is equal for Actions that would do the same thing. */
  readonly likeness: Buffer;
  /** The content that is to be approved, sealed. Removed when the Action ends, or at `contentUntil`. */
  readonly sealedContent?: Buffer;
  readonly contentUntil?: Date;
  /** The reason that the agent gives. Not part of the content. */
  readonly reason?: string;
  readonly metadata?: JsonObject;
  /** The session that the Action's input names, if any. The host of that session executes the Action. */
  readonly sessionId?: SessionId;
  readonly idempotencyKey: string;
  readonly requestDigest: Buffer;
  readonly executesOnApproval: boolean;
  readonly notBefore?: Date;
  /** When the background task next tries to execute the Action. */
  readonly executeAt?: Date;
  /** The code of the fault that prevented the execution at the task's last attempt. */
  readonly heldBack?: string;
  readonly decision?: JsonObject;
  /** Why the Action was cancelled. */
  readonly why?: string;
  readonly invocationId?: InvocationId;
  readonly createdAt: Date;
  readonly expiresAt: Date;
  readonly endedAt?: Date;
}

export interface ActionLimits {
  /** The maximum number of open Actions per end user. */
  readonly endUserMax: number;
  /** The maximum number of open Actions per application. */
  readonly applicationMax: number;
}

export type ActionInsertOutcome =
  | 'inserted'
  | 'end_user_full'
  | 'application_full'
  /** The Action of an earlier request by the same agent key with the same idempotency key. */
  | { readonly existing: ActionRow }
  /** An open Action that would do the same thing. */
  | { readonly similar: ActionRow };

export interface EndUserName {
  readonly providerId: string;
  readonly subject: string;
}

export interface ActionFilter {
  readonly states?: readonly ActionState[];
  /** Only Actions that one of these end users may decide, or that name one of them. */
  readonly endUsers?: readonly EndUserName[];
  /** Only Actions older than this one. */
  readonly before?: ActionId;
  readonly limit: number;
}

export type ActionDecision =
  | { readonly state: 'approved'; readonly decision: JsonObject; readonly executeAt?: Date }
  | { readonly state: 'refused'; readonly decision: JsonObject };

export interface ActionRows {
  insert(row: ActionRow, limits: ActionLimits): Promise<ActionInsertOutcome>;
  get(application: ApplicationId, id: ActionId): Promise<ActionRow | undefined>;
  /** Returns an Action if the account is a member of its application. */
  forAccount(account: AccountId, id: ActionId): Promise<ActionRow | undefined>;
  /** Newest first. */
  list(application: ApplicationId, filter: ActionFilter): Promise<ActionRow[]>;
  /** awaiting_approval -> approved or refused. Undefined if the Action was already decided, or is no longer open. */
  decide(application: ApplicationId, id: ActionId, decision: ActionDecision, now: Date): Promise<ActionRow | undefined>;
  /** Open -> cancelled. Undefined if the Action is not open. */
  cancel(application: ApplicationId, id: ActionId, cancelReason: string, now: Date): Promise<ActionRow | undefined>;
  /** Cancels the open Actions of an operation. */
  cancelAll(application: ApplicationId, operationId: string, cancelReason: string, now: Date): Promise<ActionRow[]>;
  /** Cancels the open Actions for an end user. */
  cancelAllFor(application: ApplicationId, endUser: EndUserName, cancelReason: string, now: Date): Promise<ActionRow[]>;
  /** Locks the row until the end of the transaction. */
  lock(application: ApplicationId, id: ActionId): Promise<ActionRow | undefined>;
  /** approved -> executing. Undefined if the Action is not approved, not yet due, or has expired. */
  execute(
    application: ApplicationId,
    id: ActionId,
    invocation: InvocationId,
    now: Date,
  ): Promise<ActionRow | undefined>;
  /** Open -> expired, for Actions that have reached `expiresAt`. */
  expire(now: Date, batchSize: number): Promise<ActionRow[]>;
  /**
   * Approved Actions that the background task of this host should execute now. Leaves out Actions that name a session
   * on another host.
   */
  due(now: Date, host: HostId, batchSize: number): Promise<ActionRow[]>;
  /** Makes the background task try again at `executeAt`. */
  postpone(id: ActionId, executeAt: Date, heldBack: string): Promise<void>;
  /** Removes content whose `contentUntil` has passed. Returns the number of rows. */
  forgetContent(now: Date, batchSize: number): Promise<number>;
  /** Deletes Actions that ended before this time. Returns their number. */
  forget(endedBefore: Date, batchSize: number): Promise<number>;
}
