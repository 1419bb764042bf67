// Who asks, after the credential was checked. Made by callers.ts; read by every domain verb.
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
  /** Absent: every application the account is a member of. */
  readonly applicationIds?: ReadonlySet<ApplicationId>;
  /** From where and until when the token may be used: what it issues is bound by both. */
  readonly cidrAllow: readonly string[];
  readonly expiresAt?: Date;
}

export type Caller = AgentCaller | AccountCaller;
export type CallerKind = Caller['kind'];
