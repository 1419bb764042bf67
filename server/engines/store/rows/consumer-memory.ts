// The data that agents remember about a consumer, and the consents that the consumer has given.
import type { ConsentId, ConsumerId, KeyId } from '../../../kit/ids.ts';

export interface MemoryRow {
  readonly consumerId: ConsumerId;
  readonly key: string;
  /** Increases with each write to the consumer's memory, and is never used twice. */
  readonly version: number;
  readonly sealed: Buffer;
  readonly bytes: number;
  readonly updatedAt: Date;
  readonly updatedByKind: 'consumer' | 'agent_key';
  readonly updatedById: string;
}

export interface MemoryLimits {
  readonly items: number;
  readonly bytes: number;
}

export interface ConsentRow {
  readonly id: ConsentId;
  readonly consumerId: ConsumerId;
  /** Absent: every agent key of the application. */
  readonly keyId?: KeyId;
  /** Patterns for keys in the memory. A trailing `*` matches any characters. */
  readonly patterns: readonly string[];
  readonly access: 'read' | 'write';
  readonly createdAt: Date;
  readonly expiresAt?: Date;
  readonly revokedAt?: Date;
}

export interface ConsumerMemory {
  get(consumer: ConsumerId, key: string): Promise<MemoryRow | undefined>;
  /** Ordered by key. */
  list(
    consumer: ConsumerId,
    query: { readonly prefix: string; readonly after?: string; readonly limit: number },
  ): Promise<MemoryRow[]>;
  /**
   * Returns the version of the next write, and locks the consumer until the end of the transaction. Undefined for a
   * consumer who is deleted or linked.
   */
  nextVersion(consumer: ConsumerId): Promise<number | undefined>;
  /**
   * Call while holding the lock of `nextVersion`. `ifVersion`: the version that the entry must have; 0 if there must be
   * no entry; undefined to write unconditionally.
   */
  put(row: MemoryRow, ifVersion: number | undefined, limits: MemoryLimits): Promise<PutOutcome>;
  /** Returns the keys that were removed. */
  remove(consumer: ConsumerId, selection: { readonly key: string } | { readonly prefix: string }): Promise<string[]>;
  /**
   * Reads an entry for an agent key. The consent is checked in the same statement, so nothing is read without a consent
   * that is valid at that moment. `denied`: there is no such consent.
   */
  getWithConsent(
    consumer: ConsumerId,
    key: string,
    grantee: KeyId,
    now: Date,
  ): Promise<MemoryRow | 'denied' | undefined>;
  /**
   * Whether a valid consent allows this access. If called under the lock of `nextVersion`, the result stays valid until
   * the end of the transaction.
   */
  hasConsent(
    consumer: ConsumerId,
    key: string,
    grantee: KeyId,
    access: ConsentRow['access'],
    now: Date,
  ): Promise<boolean>;
  /** `gone`: the consumer is deleted or linked. */
  insertConsent(row: ConsentRow, limit: number, now: Date): Promise<'inserted' | 'limit_reached' | 'gone'>;
  /** Consents in effect, newest first. */
  consents(consumer: ConsumerId, now: Date): Promise<ConsentRow[]>;
  /** Revokes the consent. When this returns, no write that the consent allowed is in progress. */
  revokeConsent(consumer: ConsumerId, id: ConsentId, now: Date): Promise<boolean>;
}

/** `version`: the current version of the entry. It differs from `ifVersion`, so nothing was written. */
export type PutOutcome = 'written' | 'limit_reached' | { readonly version: number };
