// Tokens of accounts and keys of applications.
import type { AccountId, ApplicationId, KeyId, TokenId } from '../../../kit/ids.ts';
import type { JsonObject } from '../../../kit/json.ts';

export interface CredentialRow {
  readonly name: string;
  /** The first characters of the credential, such as `bak_x7Qk`. They are shown in lists. */
  readonly prefix: string;
  /** SHA-256 of the whole credential. */
  readonly hash: Buffer;
  readonly scopes: readonly string[];
  readonly cidrAllow: readonly string[];
  readonly createdAt: Date;
  readonly expiresAt?: Date;
  readonly revokedAt?: Date;
  readonly lastUsedAt?: Date;
  readonly lastUsedIp?: string;
}

export interface TokenRow extends CredentialRow {
  readonly id: TokenId;
  readonly accountId: AccountId;
  readonly kind: 'personal' | 'developer';
  /** The applications for which the token is valid. Absent: all, including those created later. */
  readonly applicationIds?: readonly ApplicationId[];
  /** The token that issued this one. Absent if it was issued on the command line. */
  readonly issuedBy?: TokenId;
}

export interface TokenListPage {
  readonly limit: number;
  readonly before?: TokenId;
  /** Only this token and the tokens that it issued. */
  readonly of?: TokenId;
}

export interface Tokens {
  insert(row: TokenRow, limit: number): Promise<'inserted' | 'limit_reached'>;
  /** Valid tokens, and tokens that expired or were revoked less than 90 days ago, newest first. */
  list(account: AccountId, now: Date, page: TokenListPage): Promise<TokenRow[]>;
  get(account: AccountId, id: TokenId): Promise<TokenRow | undefined>;
  byHash(hash: Buffer): Promise<TokenRow | undefined>;
  /** Marks the token as revoked and notifies all processes, in one transaction. False if the token is not valid. */
  revoke(account: AccountId, id: TokenId, now: Date): Promise<boolean>;
  /** Records a use of the token. Returns true if this was the first use. */
  touch(id: TokenId, at: Date, ip: string): Promise<boolean>;
}

/** One operation that a key may call, and the limits for such calls. */
export interface GrantRow {
  readonly operationId: string;
  readonly revision?: number;
  readonly effect?: 'read';
  readonly input?: JsonObject;
  /** Stored credentials that a call may name. */
  readonly credentials?: readonly string[];
  readonly maxCallsPerDay?: number;
  readonly maxCostPerDay?: number;
}

export interface KeyRow extends CredentialRow {
  readonly id: KeyId;
  readonly applicationId: ApplicationId;
  readonly revision: number;
  readonly grants: readonly GrantRow[];
  /** The key that replaced this one when it was rotated. */
  readonly replacedBy?: KeyId;
}

export interface KeyChange {
  readonly name?: string;
  readonly grants?: readonly GrantRow[];
  readonly cidrAllow?: readonly string[];
  readonly expiresAt?: Date;
}

export interface Keys {
  insert(row: KeyRow, limit: number): Promise<'inserted' | 'limit_reached'>;
  list(application: ApplicationId, now: Date, page: { limit: number; before?: KeyId }): Promise<KeyRow[]>;
  get(application: ApplicationId, id: KeyId): Promise<KeyRow | undefined>;
  byHash(hash: Buffer): Promise<KeyRow | undefined>;
  /** Changes the key if its revision is still `revision`. */
  change(application: ApplicationId, id: KeyId, revision: number, change: KeyChange): Promise<KeyRow | undefined>;
  /** `shouldKeepConnections`: open connections of the key stay open. */
  revoke(
    application: ApplicationId,
    id: KeyId,
    now: Date,
    options?: { readonly shouldKeepConnections?: boolean },
  ): Promise<boolean>;
  /**
   * Inserts the new key and makes the old key expire at `oldKeyExpiresAt`, in one transaction. `not_rotatable`: the old
   * key is no longer valid or was already rotated.
   */
  rotate(
    oldKey: KeyId,
    successor: KeyRow,
    oldKeyExpiresAt: Date,
    limit: number,
  ): Promise<'rotated' | 'not_rotatable' | 'limit_reached'>;
  touch(id: KeyId, at: Date, ip: string): Promise<void>;
}
