// Invocations of operations.
import type {
  ActionId,
  ApplicationId,
  ConsumerId,
  HostId,
  InvocationId,
  KeyId,
  ReceiptId,
  SessionId,
} from '../../../kit/ids.ts';
import type { JsonObject } from '../../../kit/json.ts';
import type { CreditRates } from '../../../kit/metered-cost.ts';
import type { Shortage } from './credits.ts';

/** `accepted`: nothing has been started. `dispatched`: the effect may have begun. The other states are final. */
export type InvocationState = 'accepted' | 'dispatched' | 'succeeded' | 'failed' | 'ambiguous' | 'cancelled';

export interface InvocationRow {
  readonly id: InvocationId;
  readonly applicationId: ApplicationId;
  readonly keyId: KeyId;
  readonly hostId: HostId;
  readonly operationId: string;
  readonly kind: 'managed' | 'http' | 'browser';
  readonly operationRevision: number;
  readonly operationDigest: string;
  readonly effect: 'read' | 'write' | 'irreversible';
  readonly state: InvocationState;
  readonly idempotencyKey?: string;
  /** Digest of the request, to compare requests with the same idempotency key. */
  readonly requestDigest: Buffer;
  /**
   * The input, which is sealed because it may contain a password. Removed when the invocation ends, or at `inputUntil`.
   */
  readonly sealedInput?: Buffer;
  readonly inputUntil?: Date;
  readonly inputDigest: string;
  readonly output?: JsonObject;
  readonly outputDigest?: string;
  /** Whether the output does not match the operation's schema. The effect has happened nevertheless. */
  readonly outputInvalid?: boolean;
  /** When the output and its files are removed. */
  readonly outputUntil?: Date;
  readonly error?: JsonObject;
  readonly meters: JsonObject;
  readonly metadata?: JsonObject;
  readonly attempts: number;
  /** The maximum cost that the caller allows, in micro-credits. */
  readonly maxCost?: number;
  /**
   * The price in micro-credits that is charged if the invocation succeeds, in addition to the cost of the metered use.
   * Set when the invocation is admitted.
   */
  readonly price: number;
  /** Micro-credits that were held at the start, and those that were captured at the end. */
  readonly reserved: number;
  readonly captured: number;
  readonly sessionId?: SessionId;
  /** The Action that the invocation executes. At most one invocation executes an Action. */
  readonly jobId?: ActionId;
  /** The end user that the invocation is for, or whose memory it reads or writes. */
  readonly consumerId?: ConsumerId;
  readonly receiptId?: ReceiptId;
  readonly receipt?: string;
  readonly createdAt: Date;
  readonly startedAt?: Date;
  readonly endedAt?: Date;
}

/** The values that are written when an invocation ends, in one statement with its receipt. */
export interface InvocationEnd {
  readonly state: 'succeeded' | 'failed' | 'ambiguous' | 'cancelled';
  readonly output?: JsonObject;
  readonly outputDigest?: string;
  readonly outputInvalid?: boolean;
  readonly outputUntil?: Date;
  readonly error?: JsonObject;
  readonly meters: JsonObject;
  /**
   * The micro-credits to capture, at most those that were held. Any remaining held credit is released. Absent: the
   * whole amount stays held.
   */
  readonly captured?: number;
  /** When the input is removed. Absent: immediately. */
  readonly inputUntil?: Date;
  /** When the credit that is still held is given back. */
  readonly heldUntil?: Date;
  readonly receiptId: ReceiptId;
  readonly receipt: string;
  readonly endedAt: Date;
}

export interface InvocationFilter {
  /** Absent: invocations by every key of the application. */
  readonly keyId?: KeyId;
  readonly operationId?: string;
  readonly states?: readonly InvocationState[];
  /** The invocation that executes this Action. */
  readonly jobId?: ActionId;
  readonly createdAfter?: Date;
  readonly createdBefore?: Date;
  /** Invocations older than this one. */
  readonly before?: InvocationId;
  readonly limit: number;
}

/** Limits on the calls of one operation by one key since `countedSince`. */
export interface CallLimits {
  readonly countedSince: Date;
  readonly callsMax?: number;
  /** Micro-credits. */
  readonly costMax?: number;
}

/**
 * The calls of one operation by one key, and their cost in micro-credits. For a call that has not been settled, the
 * cost is the amount held for it.
 */
export interface CallTotals {
  readonly calls: number;
  readonly cost: number;
}

export type InvocationInsertOutcome =
  | 'inserted'
  | 'calls_used_up'
  /**
   * The amount to be held, together with the cost of the earlier calls, exceeds `costMax`. `spent` is the cost of the
   * earlier calls.
   */
  | { readonly spent: number }
  /** The account has less credit than must be held for the invocation. */
  | { readonly short: Shortage }
  /** The invocation of an earlier request by the same agent key with the same idempotency key. */
  | { readonly existing: InvocationRow };

export interface InvocationRows {
  /**
   * Inserts an accepted invocation. With `limits`, the key is locked, so that concurrent inserts count each other. The
   * credit in `reserved` is held at `rates` in the same transaction.
   */
  insert(row: InvocationRow, rates: CreditRates, limits?: CallLimits): Promise<InvocationInsertOutcome>;
  /**
   * Deletes an accepted invocation that was refused before its start, so that its idempotency key can be used again.
   * The credit that was held for it is released.
   */
  withdraw(id: InvocationId, at: Date): Promise<void>;
  get(application: ApplicationId, id: InvocationId): Promise<InvocationRow | undefined>;
  list(application: ApplicationId, filter: InvocationFilter): Promise<InvocationRow[]>;
  /** Invocations that have a receipt and name the consumer, newest first. */
  ofConsumer(
    consumer: ConsumerId,
    page: { readonly before?: InvocationId; readonly limit: number },
  ): Promise<InvocationRow[]>;
  callsSince(key: KeyId, operationId: string, since: Date): Promise<CallTotals>;
  /**
   * Moves the invocation from `accepted` or `dispatched` to `dispatched`, and counts the attempt. Must be committed
   * before the first byte of an effect is sent. Undefined if the invocation has ended.
   */
  dispatch(id: InvocationId, startedAt: Date, session: SessionId | undefined): Promise<InvocationRow | undefined>;
  /**
   * Ends the invocation, settles its credit, and removes its input unless `inputUntil` is set. Undefined if it has
   * already ended.
   */
  end(id: InvocationId, end: InvocationEnd): Promise<InvocationRow | undefined>;
  /** Invocations of this host that have not ended, oldest first. */
  listOpen(host: HostId, batchSize: number): Promise<InvocationRow[]>;
  hasReceipt(id: ReceiptId): Promise<boolean>;
  /** Invocations with output that is due for removal. */
  listOutputDue(now: Date, batchSize: number): Promise<InvocationRow[]>;
  forgetOutput(id: InvocationId): Promise<void>;
  /** Removes inputs whose `inputUntil` has passed. Returns their number. */
  forgetInputs(now: Date, batchSize: number): Promise<number>;
  /** Deletes invocations that ended before this time. Returns their number. */
  forget(endedBefore: Date, batchSize: number): Promise<number>;
}
