// Device authorizations: requests by programs, and the decisions of people about them.
import type { AccountId, ApplicationId, DeviceAuthorizationId, TokenId } from '../../../kit/ids.ts';
import type { TokenRow } from './credentials.ts';

export interface DeviceAuthorizationRow {
  readonly id: DeviceAuthorizationId;
  /** SHA-256 of the device code. */
  readonly deviceCodeHash: Buffer;
  /** Keyed digest of the user code. The code is so short that a plain digest could be reversed. */
  readonly userCodeHash: Buffer;
  readonly clientId: string;
  readonly deviceName?: string;
  /** The requested scopes; after approval, the granted ones. */
  readonly scopes: readonly string[];
  /** The PKCE challenge, method S256 (RFC 7636). */
  readonly codeChallenge?: string;
  /** Whatever its status, the authorization expires at `expiresAt`. */
  readonly status: 'pending' | 'claimed' | 'approved' | 'redeemed' | 'denied';
  readonly requestedIp: string;
  readonly userAgent?: string;
  readonly intervalSeconds: number;
  readonly startedAt: Date;
  readonly expiresAt: Date;
  /** When the token was last requested, not counting requests before the end of the interval. */
  readonly polledAt?: Date;
  /** When the state was last read, not counting reads that came too soon. */
  readonly stateReadAt?: Date;
  /** The account that has claimed the authorization. */
  readonly accountId?: AccountId;
  /** Set when the authorization is approved. */
  readonly applicationIds?: readonly ApplicationId[];
  /** Set when the authorization is redeemed for a token. */
  readonly tokenId?: TokenId;
}

export type DeviceDecision =
  | { readonly status: 'denied' }
  | {
      readonly status: 'approved';
      readonly scopes: readonly string[];
      readonly applicationIds: readonly ApplicationId[];
    };

/** The change that a token request makes to the authorization. */
export type TokenRequestEffect =
  | { readonly kind: 'nothing' }
  /** Records the time of the request. */
  | { readonly kind: 'count' }
  | { readonly kind: 'slow_down'; readonly intervalSeconds: number }
  | { readonly kind: 'redeem'; readonly token: TokenRow }
  | { readonly kind: 'revoke'; readonly token: TokenId };

export interface DeviceAuthorizationRows {
  /**
   * `code_taken`: the user code exists already. `limit_reached`: there are already `unexpiredMax` authorizations that
   * have not expired.
   */
  insert(row: DeviceAuthorizationRow, unexpiredMax: number): Promise<'inserted' | 'code_taken' | 'limit_reached'>;
  byDeviceCode(hash: Buffer): Promise<DeviceAuthorizationRow | undefined>;
  /**
   * Claims an authorization that has not expired, or returns one that the account has already claimed. `isFirst`:
   * whether this call has claimed it. Undefined if there is no such authorization, or another account has claimed it.
   */
  claim(
    userCode: Buffer,
    account: AccountId,
    now: Date,
  ): Promise<{ row: DeviceAuthorizationRow; isFirst: boolean } | undefined>;
  /** An authorization that is not expired and is claimed by the account. */
  getClaimed(userCode: Buffer, account: AccountId, now: Date): Promise<DeviceAuthorizationRow | undefined>;
  /**
   * False if the account has not claimed the authorization, or if the authorization was already decided or has expired.
   */
  decide(id: DeviceAuthorizationId, account: AccountId, now: Date, decision: DeviceDecision): Promise<boolean>;
  /** Records a read of the state. False if the last read was after `since`. */
  recordStateRead(id: DeviceAuthorizationId, now: Date, since: Date): Promise<boolean>;
  /**
   * Locks the row, calls `decideEffect`, and carries out what it returns, in one transaction. `limit_reached`: the
   * account has too many valid tokens, and nothing was changed.
   */
  collect<Verdict extends TokenRequestEffect>(
    deviceCode: Buffer,
    now: Date,
    decideEffect: (row: DeviceAuthorizationRow | undefined) => Verdict,
    tokensMax: number,
  ): Promise<{ readonly row?: DeviceAuthorizationRow; readonly verdict: Verdict | 'limit_reached' }>;
  /** Removes authorizations that expired before this time. Returns the number of rows. */
  removeExpired(before: Date): Promise<number>;
}
