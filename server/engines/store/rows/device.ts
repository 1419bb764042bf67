// Device authorizations: what programs asked for, and what people decided.
import type { AccountId, ApplicationId, DeviceAuthorizationId, TokenId } from '../../../kit/ids.ts';
import type { TokenRow } from './credentials.ts';

export interface DeviceRow {
  readonly id: DeviceAuthorizationId;
  /** SHA-256 of the device code. */
  readonly deviceCodeHash: Buffer;
  /** Keyed digest of the user code, which is too short for a plain one. */
  readonly userCodeHash: Buffer;
  readonly clientId: string;
  readonly deviceName?: string;
  /** Asked for; once approved, granted. */
  readonly scopes: readonly string[];
  /** S256, as RFC 7636 has it. */
  readonly codeChallenge?: string;
  /** It expires by the clock, whatever stands here. */
  readonly status: 'pending' | 'claimed' | 'approved' | 'redeemed' | 'denied';
  readonly requestedIp: string;
  readonly userAgent?: string;
  readonly intervalSeconds: number;
  readonly startedAt: Date;
  readonly expiresAt: Date;
  /** The last request for the token that was not too soon. */
  readonly polledAt?: Date;
  /** The last read of the state that was not too soon. */
  readonly stateReadAt?: Date;
  /** Who has claimed it. */
  readonly accountId?: AccountId;
  /** Once approved. */
  readonly applicationIds?: readonly ApplicationId[];
  /** Once redeemed. */
  readonly tokenId?: TokenId;
}

export type DeviceDecision =
  | { readonly status: 'denied' }
  | {
      readonly status: 'approved';
      readonly scopes: readonly string[];
      readonly applicationIds: readonly ApplicationId[];
    };

/** What a request for the token does. */
export type Collection =
  | { readonly does: 'nothing' }
  /** Its time is kept. */
  | { readonly does: 'count' }
  | { readonly does: 'slow_down'; readonly intervalSeconds: number }
  | { readonly does: 'redeem'; readonly token: TokenRow }
  | { readonly does: 'revoke'; readonly token: TokenId };

export interface DeviceRows {
  /** `code_taken`: the user code exists. `limit_reached`: so many are not expired. */
  insert(row: DeviceRow, livingMax: number): Promise<'inserted' | 'code_taken' | 'limit_reached'>;
  byDeviceCode(hash: Buffer): Promise<DeviceRow | undefined>;
  /** One that is not expired, for the account that has claimed it or, if nobody has, claims it by this. */
  claim(userCode: Buffer, account: AccountId, now: Date): Promise<{ row: DeviceRow; isFirst: boolean } | undefined>;
  /** One that this account has claimed and that is not expired. */
  claimed(userCode: Buffer, account: AccountId, now: Date): Promise<DeviceRow | undefined>;
  /** False if it is not claimed by this account any more, was decided, or has expired. */
  decide(id: DeviceAuthorizationId, account: AccountId, now: Date, decision: DeviceDecision): Promise<boolean>;
  /** Keeps the time of a read of the state. False if there was one after `since`. */
  readState(id: DeviceAuthorizationId, now: Date, since: Date): Promise<boolean>;
  /**
   * Holds the row while `judge` decides from it, then carries that out in the same transaction. `limit_reached`: the account has
   * so many valid tokens, and nothing was done.
   */
  collect<Verdict extends Collection>(
    deviceCode: Buffer,
    now: Date,
    judge: (row: DeviceRow | undefined) => Verdict,
    tokensMax: number,
  ): Promise<{ readonly row?: DeviceRow; readonly verdict: Verdict | 'limit_reached' }>;
  /** Those that expired before this time. Returns how many. */
  removeExpired(before: Date): Promise<number>;
}
