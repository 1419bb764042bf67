// The authenticated caller of a request. Created by callers.ts, read by every operation.
import type { AccountId, ApplicationId, KeyId, TokenId } from '../../kit/ids.ts';

export interface AgentCaller {
  readonly kind: 'agentKey';
  readonly applicationId: ApplicationId;
  readonly keyId: KeyId;
  readonly scopes: ReadonlySet<string>;
}

export interface AccountCaller {
  readonly kind: 'account';
  readonly accountId: AccountId;
  readonly tokenId: TokenId;
  readonly scopes: ReadonlySet<string>;
  /** Absent: every application that the account is a member of. */
  readonly applicationIds?: ReadonlySet<ApplicationId>;
  /** Restrictions of the token. What it issues cannot be wider or live longer. */
  readonly cidrAllow: readonly string[];
  readonly expiresAt?: Date;
}

export type Caller = AgentCaller | AccountCaller;
export type CallerKind = Caller['kind'];
